package import BlueCapDBus
package import Foundation
import BlueCapFutures
import BlueCapReactor

/// Receives what a ``DaemonLink`` reports, on its loop.
protocol DaemonLinkHandler: AnyObject {
    func availabilityChanged(_ availability: Availability)
    /// One change of the tree. The values are those after the whole message.
    func treeChanged(_ change: Change)
    /// All messages that had arrived together are processed.
    func batchEnded()
}

/// A connection to the bus of a `bluetoothd`, the tree of the daemon's objects, and the calls of its methods.
///
/// It connects, watches the daemon, keeps the ``ObjectTree`` current, and starts again when daemon or bus return.
///
/// The tree is the only copy of what BlueZ reports. The loop alone changes it, and holds ``treeLock`` while it does; so the
/// loop reads it without the lock, and every other thread with it (``readDevice(_:_:)``).
///
/// Unchecked `Sendable`: the tree is protected as said, and all other mutable state is used on ``loop`` only.
package final class DaemonLink: @unchecked Sendable {
    /// One connection to the bus, with its subscriptions.
    private struct BusConnection {
        let connection: Connection
        /// Differs from that of each earlier connection.
        let number: UInt64
        var subscriptions: [CancelHandle] = []
    }

    /// Seconds that most calls may take: they change something in the daemon or the controller, not on the air.
    package static let defaultTimeout = 10.0
    /// Seconds for `GetManagedObjects`, which carries everything that BlueZ knows: in a busy place several megabytes.
    private static let loadTimeout = 30.0

    let loop: any EventLoop
    private let address: BusAddress
    private let lastID = Locked<UInt64>(0)
    /// Behind a pointer: for a variable the runtime would check at each access that no other one overlaps.
    private let tree: UnsafeMutablePointer<ObjectTree>
    /// A leaf: no other lock is taken and no foreign code runs while it is held.
    private let treeLock: Locked<UnsafeMutablePointer<ObjectTree>>

    // On the loop only.
    private var machine = DaemonMachine()
    private var bus: BusConnection?
    private let timer: LoopTimer
    /// Set from ``start(_:)`` to ``stop()``; during that time both retain each other.
    @exclusivity(unchecked) private var handler: (any DaemonLinkHandler)?
    private var noteStore: (any BondNoteStore)?
    /// Empty, with the memory for the changes of the next signal.
    @exclusivity(unchecked) private var spareChanges: [Change] = []
    /// Whether `GetDiscoveryFilters` was called for this daemon.
    private var hasAskedForFilters = false

    init(address: BusAddress, loop: any EventLoop) {
        self.address = address
        self.loop = loop
        timer = LoopTimer(on: loop)
        tree = .allocate(capacity: 1)
        tree.initialize(to: ObjectTree())
        treeLock = Locked(tree)
    }

    deinit {
        tree.deinitialize(count: 1)
        tree.deallocate()
    }

    /// A number that nothing else of this link has. Any thread.
    func makeID() -> UInt64 {
        lastID.withLock { id in
            id += 1
            return id
        }
    }

    func requireLoop() {
        assert(loop.isCurrent, "This belongs on the client's loop: wrap it in client.loop.post { … }.")
    }

    // MARK: Beginning and end; on the loop

    var availability: Availability { machine.availability }
    /// The unique name of the daemon that the tree is read from; `nil` if there is none.
    var owner: String? {
        switch machine.state {
        case .loading(let owner, _), .waitingToLoad(let owner), .ready(let owner): owner
        case .idle, .connecting, .waitingForBus, .watching, .absent, .refused: nil
        }
    }
    var isStopped: Bool { machine.state == .idle }
    /// The connection to the bus, while there is one.
    var connection: Connection? { bus?.connection }
    /// The number of the connection; replies to a call over an earlier one are of no interest.
    var connectionNumber: UInt64? { bus?.number }

    func start(_ handler: any DaemonLinkHandler) {
        self.handler = handler
        perform(machine.start())
    }

    func stop() {
        perform(machine.stop())
        handler = nil
    }

    private func perform(_ effects: [DaemonMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .openBus: openBus()
            case .closeBus: closeBus()
            case .watchDaemon: watchDaemon()
            case .load(let load): requestObjects(load)
            case .clearTree:
                hasAskedForFilters = false
                change { $0.clear(into: &$1) }
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in self.map { $0.perform($0.machine.timerFired()) } }
            case .cancelTimer: timer.cancel()
            case .report(let availability): handler?.availabilityChanged(availability)
            }
        }
    }

    private func openBus() {
        let number = makeID()
        let connection = Connection.open(address, loop: loop) { [weak self] state in
            guard let self, connectionNumber == number else { return }
            switch state {
            case .opened:
                perform(machine.busOpened())
            case .closed(let error):
                bus = nil
                perform(machine.busClosed(error))
            }
        }
        bus = BusConnection(connection: connection, number: number)
        // The connection holds the link until it is closed, as its subscriptions do.
        connection.onBatchEnd { self.handler?.batchEnded() }
    }

    /// Closes the connection when the last message (perhaps `StopDiscovery`) has reached the bus, at the latest in a second.
    private func closeBus() {
        guard let bus else { return }
        self.bus = nil
        let connection = bus.connection
        for subscription in bus.subscriptions { subscription.cancel() }
        let limit = loop.schedule(after: 1) { connection.close() }
        let loop = loop
        connection.whenDrained {
            loop.cancel(limit)
            connection.close()
        }
    }

    /// Adds three match rules, however many devices there are; with the one for the name, four.
    ///
    /// The subscriptions hold the link, without the cost of a weak reference for each signal; ``closeBus()`` cancels them.
    private func watchDaemon() {
        guard let connection, let number = connectionNumber else { return }
        let signals: [(interface: String, member: String?)] = [
            (BlueZName.properties, "PropertiesChanged"),
            ("org.freedesktop.DBus.ObjectManager", nil),
            // From 5.83 on; earlier ones send no signal of this interface.
            (BlueZName.device, "Disconnected"),
        ]
        let subscriptions = signals.map { interface, member in
            let rule = MatchRule(sender: BlueZName.service, interface: interface, member: member)
            return connection.subscribe(rule) { signal in self.change { $0.apply(signal, into: &$1) } }
        }
        let owner = connection.watchName(BlueZName.service) { [weak self] owner in
            guard let self, connectionNumber == number else { return }
            perform(machine.ownerChanged(owner))
        }
        bus?.subscriptions = subscriptions + [owner]
    }

    private func requestObjects(_ load: DaemonMachine.LoadID) {
        getObjects { [weak self] result in
            // A reply that the machine does not wait for any more describes a daemon that is gone.
            guard let self, machine.isWaiting(for: load) else { return }
            switch result {
            case .success(let reply):
                change { $0.load(reply, into: &$1) }
                perform(machine.loadReplied(load, error: nil))
            case .failure(let error):
                perform(machine.loadReplied(load, error: error))
            }
        }
    }

    /// Reads all objects again if the tree is complete. Differences are reported as any change is.
    func reload() {
        guard case .ready = machine.state else { return }
        let state = machine.state
        getObjects { [weak self] result in
            // After a failure the tree remains valid: signals keep it current all the time.
            guard let self, machine.state == state, case .success(let reply) = result else { return }
            change { $0.load(reply, into: &$1) }
        }
    }

    private func getObjects(_ completion: @escaping @Sendable (Result<Message, DBusError>) -> Void) {
        guard let bus else { return }
        let message = Message.call(
            destination: BlueZName.service, path: .root, interface: "org.freedesktop.DBus.ObjectManager",
            member: "GetManagedObjects")
        bus.connection.call(message, timeout: Self.loadTimeout) { [weak self] result in
            guard self?.connectionNumber == bus.number else { return }
            completion(
                result.flatMap { reply in
                    reply.hasSignature("a{oa{sa{sv}}}")
                        ? .success(reply)
                        : .failure(.unexpected(reply, to: "GetManagedObjects", instead: "a{oa{sa{sv}}}"))
                })
        }
    }

    // MARK: The tree

    /// The daemon's objects; on the loop only.
    var objects: ObjectTree {
        _read { yield tree.pointee }
    }

    /// Reads a device in place; `nil` if BlueZ has no such device. Any thread.
    ///
    /// A device that BlueZ has just removed can be read until the observers have received the removal.
    ///
    /// - Parameter body: Runs under the tree's lock: it takes no other lock and calls no code of a user.
    // Inlinable, as `ObjectTree.read`.
    @inlinable
    package func readDevice<R>(_ key: ObjectKey, _ body: (borrowing Device1) -> R?) -> R? {
        var result: R?
        withDevice(key) { result = body($0) }
        return result
    }

    @usableFromInline
    func withDevice(_ key: ObjectKey, _ body: (borrowing Device1) -> Void) {
        treeLock.withLock { $0.pointee.withDevice(key, body) }
    }

    /// Whether BlueZ has a device: one whose removal has not been reported yet is not meant. Any thread.
    package func hasDevice(_ key: ObjectKey) -> Bool { treeLock.withLock { $0.pointee.contains(key) } }

    /// The properties of an adapter; `nil` if BlueZ has no such adapter. Any thread.
    package func adapter(_ key: ObjectKey) -> Adapter1? { treeLock.withLock { $0.pointee[adapter: key] } }

    /// Reads each device of an adapter in place. Any thread; the same rules hold for `body`.
    package func forEachDevice(on adapter: ObjectKey, _ body: (ObjectKey, borrowing Device1) -> Void) {
        treeLock.withLock { $0.pointee.forEachDevice(on: adapter, body) }
    }

    /// Returns the newest value of a characteristic or a descriptor; see ``ObjectTree/value(of:)``. Any thread.
    package func value(of key: AttributeKey) -> Data? { treeLock.withLock { $0.pointee.value(of: key) } }

    /// Stores a value that has not come over the bus. On the loop only.
    func keepValue(_ value: Data, of key: AttributeKey) {
        treeLock.withLock { $0.pointee.keepValue(value, of: key) }
    }

    /// Changes the tree and reports the changes. On the loop only, and never inside a report.
    func change(_ body: (inout ObjectTree, inout [Change]) -> Void) {
        var changes: [Change] = []
        swap(&changes, &spareChanges)
        treeLock.withLock { body(&$0.pointee, &changes) }
        keepChangedNotes()
        var mustSweep = false
        for change in changes {
            switch change {
            case .adapterAdded(let adapter), .adapterChanged(let adapter, _): learnFilters(of: adapter)
            case .deviceRemoved, .attributeRemoved: mustSweep = true
            case .adapterRemoved, .deviceAdded, .deviceChanged, .attributeAdded, .attributeChanged: break
            }
            handler?.treeChanged(change)
        }
        if mustSweep { treeLock.withLock { $0.pointee.sweep() } }
        changes.removeAll(keepingCapacity: changes.capacity <= 64)
        spareChanges = changes
    }

    // MARK: Notes about bonds; on the loop

    /// Keeps the notes about bonds beyond the process. Only the first store of a link counts.
    package func keepNotes(in store: any BondNoteStore) {
        loop.perform { [self] in
            guard noteStore == nil else { return }
            noteStore = store
            let notes = store.read()
            treeLock.withLock { $0.pointee.addNotes(notes) }
        }
    }

    /// Changes the note about the bond of a device that BlueZ has, or has had; not inside a report.
    package func changeNote(about device: ObjectKey, _ body: (inout BondNote) -> Void) {
        requireLoop()
        change { $0.changeNote(about: device, into: &$1, body) }
    }

    /// How many successive links of a device have ended before they were encrypted.
    package func shortLinks(of device: ObjectKey) -> Int { objects.note(about: device)?.shortLinks ?? 0 }

    private func keepChangedNotes() {
        guard !objects.changedNotes.isEmpty else { return }
        for (old, new) in objects.changedNotes { noteStore?.replace(old, by: new) }
        treeLock.withLock { $0.pointee.changedNotes = [] }
    }

    // MARK: Versions

    /// Calls `GetDiscoveryFilters` if an adapter's properties leave the daemon's version open: once, and after a failure
    /// again at the adapter's next change. Nothing waits for the reply.
    private func learnFilters(of adapter: ObjectKey) {
        guard !hasAskedForFilters, objects[adapter: adapter]?.isUnclear(objects.hints) == true else { return }
        hasAskedForFilters = true
        let number = connectionNumber
        call(adapter, interface: BlueZName.adapter, member: "GetDiscoveryFilters") { [weak self] result in
            guard let self, connectionNumber == number, hasAskedForFilters else { return }
            guard case .success(let reply) = result else {
                hasAskedForFilters = false
                return
            }
            var reader = reply.reader
            guard let keys = reader.strings() else { return }
            change { tree, changes in tree.learn(into: &changes) { $0.discoveryFilters = Set(keys) } }
        }
    }

    // MARK: Calls; on the loop

    /// Calls a method of one of the daemon's objects. On the loop only, as `completion` is, which comes exactly once.
    package func call(
        _ object: ObjectKey, interface: String, member: String, timeout: Double = DaemonLink.defaultTimeout,
        body: (inout MessageWriter) -> Void = { _ in },
        completion: @escaping BlueZCompletion<Message>
    ) {
        call(
            path: object.objectPath, interface: interface, member: member, timeout: timeout, body: body,
            completion: completion)
    }

    /// The same for an object that is not in the tree.
    func call(
        path: ObjectPath, interface: String, member: String, timeout: Double = DaemonLink.defaultTimeout,
        body: (inout MessageWriter) -> Void = { _ in },
        completion: @escaping BlueZCompletion<Message>
    ) {
        requireLoop()
        guard let connection else { return loop.post { completion(.failure(BlueZError(.closed))) } }
        let message = Message.call(
            destination: BlueZName.service, path: path, interface: interface, member: member, body: body)
        connection.call(message, timeout: timeout) { completion($0.mapError(BlueZError.init)) }
    }

    /// Reads a property from the daemon. `completion` comes exactly once, at the latest after `timeout` seconds.
    func getProperty(
        _ name: String, of interface: String = BlueZName.device, at path: ObjectPath, timeout: Double = 5,
        completion: @escaping BlueZCompletion<Message>
    ) {
        call(
            path: path, interface: BlueZName.properties, member: "Get", timeout: timeout,
            body: {
                $0.string(interface)
                $0.string(name)
            }, completion: completion)
    }

    /// Reads all properties of an adapter or a device. `completion` comes exactly once.
    package func getProperties(of object: ObjectKey, completion: @escaping BlueZCompletion<Message>) {
        call(
            object, interface: BlueZName.properties, member: "GetAll",
            body: { $0.string(object.isDevice ? BlueZName.device : BlueZName.adapter) }, completion: completion)
    }

    /// Sets a property of an adapter or a device. `completion` comes exactly once.
    package func setProperty(
        _ name: String, _ signature: String, of object: ObjectKey, completion: @escaping BlueZCompletion<Void>,
        value: (inout MessageWriter) -> Void
    ) {
        call(
            object, interface: BlueZName.properties, member: "Set",
            body: {
                $0.string(object.isDevice ? BlueZName.device : BlueZName.adapter)
                $0.string(name)
                $0.variant(signature, value)
            }, completion: { completion($0.map { _ in }) })
    }

    /// Whether a call comes from the daemon whose objects are in the tree.
    func isFromDaemon(_ invocation: Invocation) -> Bool { invocation.sender == owner }
}

extension ObjectKey {
    var objectPath: ObjectPath { ObjectPath(stringLiteral: path) }
}

extension DBusError {
    static let foreignCaller = DBusError(
        name: DBusError.Name.accessDenied, message: "Only bluetoothd may call this object.")
}

/// What belongs to an object of this process that `bluetoothd` calls.
protocol DaemonCallee {
    var daemon: DaemonLink { get }

    /// Reports what `bluetoothd` sent over sockets before the call that is handled next.
    func catchUp()
}

extension DaemonCallee {
    func catchUp() {}
}

extension InterfaceTable.Method where Target: DaemonCallee {
    /// A method that only `bluetoothd` may call. Any program on the bus could.
    static func ofDaemon(
        _ name: StaticString, in inputs: InterfaceTable.Arguments = [:], out outputs: InterfaceTable.Arguments = [:],
        handler: @escaping @Sendable (Target, Invocation) -> Void
    ) -> Self {
        .init(name, in: inputs, out: outputs) { target, invocation in
            guard target.daemon.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
            target.catchUp()
            handler(target, invocation)
        }
    }
}

/// The names that calls to `bluetoothd` begin with.
enum BlueZName {
    static let service = "org.bluez"
    static let owner: StaticString = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let properties = "org.freedesktop.DBus.Properties"
}

extension BlueZError {
    package static let noSuchObject = BlueZError(
        name: DBusError.Name.unknownObject, message: "bluetoothd does not have this object any more.")
}

/// A timer of a machine. Starting it again or releasing it cancels the earlier run.
///
/// On the loop only, and unchecked because of that.
final class LoopTimer: @unchecked Sendable {
    private let loop: any EventLoop
    private var id: TimerID?

    init(on loop: any EventLoop) { self.loop = loop }

    var isRunning: Bool { id != nil }

    func start(after seconds: Double, _ work: @escaping @Sendable () -> Void) {
        cancel()
        id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            id = nil
            work()
        }
    }

    func cancel() {
        if let id { loop.cancel(id) }
        id = nil
    }
}

extension Result {
    /// The error; `nil` after a success.
    package var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
