import DBus
import Foundation
import Futures
package import Reactor

/// This process's one link to the `bluetoothd` of a bus, shared by all managers that use that bus.
///
/// It connects, watches the daemon, keeps an ``ObjectTree`` current, shares one discovery session per adapter among any
/// number of scans, and starts over by itself when daemon or bus come back. Nothing is done before the first observer is
/// added and nothing is left behind after the last one has gone.
///
/// The tree is the only copy of what BlueZ reports. The loop alone changes it, and holds ``treeLock`` while it does; so the
/// loop reads it without the lock, and every other thread with it (``readDevice(_:_:)``).
///
/// Unchecked `Sendable`: the tree is protected as said, and all other mutable state is used on ``loop`` only.
package final class BlueZClient: @unchecked Sendable {
    package let loop: any EventLoop
    let address: BusAddress

    /// Behind a pointer: for a variable the runtime would check at each access that no other one overlaps.
    private let tree: UnsafeMutablePointer<ObjectTree>
    /// A leaf: no other lock is taken and no foreign code runs while it is held.
    private let treeLock = Locked<Void>(())

    // All below: on the loop only.
    var daemon = DaemonMachine()
    var link: Link?
    let daemonTimer: LoopTimer
    /// Runs from the last observer's departure on, until everything is closed.
    private let leaveTimer: LoopTimer
    var sessions: [ObjectKey: DiscoverySession] = [:]
    var scans: [ScanID: ScanEntry] = [:]
    /// Kept as long as the client, since their requests may be answered late.
    var connectSessions: [ObjectKey: ConnectSession] = [:]
    /// Who in this process is subscribed to a characteristic: BlueZ knows us as one subscriber.
    var notifyHolders: [AttributeKey: Set<ObjectIdentifier>] = [:]
    var notifyStarts: [AttributeKey: NotifyStart] = [:]
    /// Sockets of notifications, which all in this process have together.
    var notifySockets: [AttributeKey: SharedSocket] = [:]
    /// For the services of all applications of this process.
    var handleLayout = HandleLayout()
    /// Adapters that heard something in the present batch.
    var heardAdapters: Set<ObjectKey> = []
    /// Whether this daemon was asked for the keys of its discovery filters.
    private var hasAskedForFilters = false
    private var observers: [ObserverEntry] = []
    /// Observers whose observation ended before they were added.
    private(set) var departed: Set<UInt64> = []
    private var hasNews = false

    private let lastID = Locked<UInt64>(0)

    init(address: BusAddress, loop: any EventLoop) {
        self.address = address
        self.loop = loop
        daemonTimer = LoopTimer(on: loop)
        leaveTimer = LoopTimer(on: loop)
        tree = .allocate(capacity: 1)
        tree.initialize(to: ObjectTree())
    }

    deinit {
        tree.deinitialize(count: 1)
        tree.deallocate()
    }

    /// The daemon's objects; on the loop only.
    var objects: ObjectTree {
        _read { yield tree.pointee }
    }

    /// Changes the tree and reports the changes to the observers. On the loop only, and never inside a report.
    func change(_ body: (inout ObjectTree, inout ChangeBuffer) -> Void) {
        var changes = ChangeBuffer()
        treeLock.withLock { _ in body(&tree.pointee, &changes) }
        deliver(changes)
    }

    /// A number that nothing else of this client has. Any thread.
    package func makeID() -> UInt64 {
        lastID.withLock { id in
            id += 1
            return id
        }
    }

    func requireLoop() {
        assert(loop.isCurrent, "This belongs on the client's loop: wrap it in client.loop.post { … }.")
    }

    // MARK: Reading

    /// How far the client has come; on the loop only.
    package var availability: Availability { daemon.availability }

    /// The daemon's objects as they are now; on the loop only.
    package func withTree<R>(_ body: (borrowing ObjectTree) throws -> R) rethrows -> R {
        requireLoop()
        return try body(objects)
    }

    /// Reads a device in place; `nil` if BlueZ has no such device. Any thread.
    ///
    /// A device that BlueZ has just removed can be read until the observers have received the removal.
    ///
    /// - Parameter body: Runs under the tree's lock: it takes no other lock and calls no code of a user.
    package func readDevice<R>(_ key: ObjectKey, _ body: (borrowing Device1) -> R?) -> R? {
        treeLock.withLock { _ in tree.pointee.read(key, body) }
    }

    /// Reads each device of an adapter in place. Any thread; the same rules hold for `body`.
    package func forEachDevice(on adapter: ObjectKey, _ body: (ObjectKey, borrowing Device1) -> Void) {
        treeLock.withLock { _ in tree.pointee.forEachDevice(on: adapter, body) }
    }
}

// MARK: - Observers

/// An observer while it is to be called. On the loop; unchecked for the same reason as the client.
private final class ObserverEntry {
    let id: UInt64
    let observer: any BlueZObserver
    var isActive = true

    init(id: UInt64, observer: any BlueZObserver) {
        self.id = id
        self.observer = observer
    }
}

extension BlueZClient {
    /// Begins to tell the observer what happens. Any thread; the first call to it comes after this returns.
    package func observe(_ observer: any BlueZObserver) -> Observation {
        let id = makeID()
        loop.post { self.add(observer, id: id) }
        return Observation(client: self, id: id)
    }

    private func add(_ observer: any BlueZObserver, id: UInt64) {
        guard departed.remove(id) == nil else { return }
        observers.append(ObserverEntry(id: id, observer: observer))
        leaveTimer.cancel()
        guard daemon.state == .idle else { return tellAll(to: observer) }
        perform(daemon.start())
        batchEnded()
    }

    /// What a newcomer missed, in the order in which it would have heard it.
    private func tellAll(to observer: any BlueZObserver) {
        if objects.isLoaded {
            for key in objects.adapterKeys { observer.treeChanged(.adapterAdded(key), in: objects) }
            objects.forEachDevice { handle in
                let isHeard = objects[handle].fields.contains(.rssi)
                observer.treeChanged(.deviceAdded(handle, isHeard: isHeard), in: objects)
                guard let device = objects.key(of: handle) else { return }
                for (key, kind) in objects.attributes(of: device) {
                    observer.treeChanged(.attributeAdded(key, kind), in: objects)
                }
            }
        }
        observer.availabilityChanged(daemon.availability, in: self)
        observer.batchEnded()
    }

    func removeObserver(_ id: UInt64) {
        loop.perform { [self] in
            guard let index = observers.firstIndex(where: { $0.id == id }) else {
                departed.insert(id)
                return
            }
            observers.remove(at: index).isActive = false
            guard observers.isEmpty else { return }
            // Not inside a report: the tree that is being read is about to be cleared.
            loop.post { [self] in if observers.isEmpty { leave() } }
        }
    }

    /// Nobody is interested any more: BlueZ gets the time to answer what ends our part in it, a second at the most.
    private func leave() {
        for id in scans.keys.sorted(by: { $0.rawValue < $1.rawValue }) { stopScan(id) }
        closeWhenSettled()
        // A timer of an earlier departure would cut this one short.
        leaveTimer.cancel()
        guard daemon.state != .idle else { return }
        leaveTimer.start(after: 1) { [weak self] in self?.close() }
    }

    private func closeWhenSettled() {
        guard let unsettled = sessions.values.first(where: { !$0.machine.isSettled }) else { return close() }
        unsettled.waiting.append { [weak self] in self?.closeWhenSettled() }
    }

    private func close() {
        // Somebody may have come meanwhile.
        guard observers.isEmpty, daemon.state != .idle else { return }
        leaveTimer.cancel()
        endAllScans()
        perform(daemon.stop())
        hasNews = false
    }

    /// A read of a characteristic goes to BlueZ.
    func tellReadBegan(_ key: AttributeKey) {
        for entry in observers where entry.isActive { entry.observer.readBegan(key) }
    }

    /// It was answered, or failed.
    func tellReadEnded(_ key: AttributeKey, offset: Int, _ reply: Data?) {
        for entry in observers where entry.isActive { entry.observer.readEnded(key, offset: offset, reply: reply) }
    }

    func tell(_ availability: Availability) {
        hasNews = true
        for entry in observers where entry.isActive { entry.observer.availabilityChanged(availability, in: self) }
    }
}

// MARK: - The tree

extension BlueZClient {
    func clearTree() {
        hasAskedForFilters = false
        change { $0.clear(into: &$1) }
    }

    /// What an adapter's properties leave open of the daemon's version is asked for once, and after a
    /// failure again at the adapter's next change. Nothing waits for the answer.
    private func learnFilters(_ change: Change) {
        switch change {
        case .adapterAdded(let adapter), .adapterChanged(let adapter, _):
            guard !hasAskedForFilters, objects[adapter: adapter]?.isUnclear(objects.hints) == true else { return }
            hasAskedForFilters = true
            let number = link?.number
            call(adapter, interface: BlueZName.adapter, member: "GetDiscoveryFilters") { [weak self] result in
                guard let self, link?.number == number, hasAskedForFilters else { return }
                guard case .success(let reply) = result else {
                    hasAskedForFilters = false
                    return
                }
                var reader = reply.reader
                guard let keys = reader.strings() else { return }
                self.change { tree, changes in tree.learn(into: &changes) { $0.discoveryFilters = Set(keys) } }
            }
        case .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
    }

    private func deliver(_ changes: ChangeBuffer) {
        guard !changes.isEmpty else { return }
        hasNews = true
        let observers = observers
        var mustSweep = false
        changes.forEach { change in
            if case .attributeChanged = change {
            } else {
                learnFilters(change)
                followDiscovery(change)
                followLinks(change)
            }
            followAttributes(change)
            followSockets(change)
            for entry in observers where entry.isActive { entry.observer.treeChanged(change, in: objects) }
            if case .deviceRemoved = change { mustSweep = true }
        }
        if mustSweep { treeLock.withLock { _ in tree.pointee.sweep() } }
    }

    /// All messages that had arrived together are worked off.
    func batchEnded() {
        hearSessions()
        guard hasNews else { return }
        hasNews = false
        for entry in observers where entry.isActive { entry.observer.batchEnded() }
    }
}
