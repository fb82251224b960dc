package import BlueCapDBus
package import Foundation
import BlueCapFutures
package import BlueCapReactor

/// This process's one link to the `bluetoothd` of a bus, shared by all managers that use that bus.
///
/// Its parts share among the managers what BlueZ gives to a process once: a discovery session for each adapter
/// (``discovery``), turns to connect (``connector``), an agent and pairings (``pairings``), and
/// notifications (``notifications``). Nothing is done before the first
/// observer is added and nothing is left behind after the last one has gone.
///
/// Unchecked `Sendable`: all mutable state is used on ``loop`` only.
package final class BlueZClient: @unchecked Sendable {
    package let loop: any EventLoop
    /// What managers publish, so that tasks and actors run on ``loop``.
    package let executor: LoopExecutor
    package let daemon: DaemonLink
    package let discovery: SharedDiscovery
    package let connector: Connector
    package let pairings: Pairings
    package let notifications: SharedNotifications

    // On the loop only.
    /// For the services of all applications of this process.
    var handleLayout = HandleLayout()
    private var observers: [ObserverEntry] = []
    @exclusivity(unchecked) private var hasNews = false
    /// Runs from the last observer's departure until everything is closed.
    private let leaveTimer: LoopTimer

    init(address: BusAddress, loop: any EventLoop) {
        self.loop = loop
        executor = LoopExecutor(loop)
        daemon = DaemonLink(address: address, loop: loop)
        discovery = SharedDiscovery(daemon)
        connector = Connector(daemon, discovery)
        pairings = Pairings(daemon, connector)
        notifications = SharedNotifications(daemon, connector)
        leaveTimer = LoopTimer(on: loop)
    }

    private struct Weak {
        weak var client: BlueZClient?
    }

    private static let clients = Locked<[String: Weak]>([:])

    /// Returns the client for a bus, made if there is none: one connection and one discovery session per adapter and
    /// process, however many managers there are.
    ///
    /// - Parameter address: As D-Bus writes it, `"unix:path=…"` or `"loopback:name=…"`; `nil` for the system bus.
    package static func shared(at address: String? = nil) -> BlueZClient {
        let address = address.map { BusAddress.custom($0) } ?? .system
        let text = address.resolved()
        let bus = LoopbackBus.at(address: text)
        return clients.withLock { clients in
            // A test may end a loopback bus and make another of the same name on another loop.
            if let client = clients[text]?.client, bus == nil || bus?.loop === client.loop { return client }
            let client = BlueZClient(address: .custom(text), loop: bus?.loop ?? ThreadLoop(name: "bluetooth"))
            clients = clients.filter { $0.value.client != nil }
            clients[text] = Weak(client: client)
            return client
        }
    }

    /// A number that nothing else of this client has. Any thread.
    package func makeID() -> UInt64 { daemon.makeID() }

    /// The state of the link to the daemon; on the loop only.
    package var availability: Availability { daemon.availability }

    /// The daemon's objects as they are now; on the loop only.
    package func withTree<R>(_ body: (borrowing ObjectTree) throws -> R) rethrows -> R {
        daemon.requireLoop()
        return try body(daemon.objects)
    }

    /// Reads all objects again if the tree is complete; on the loop only. Differences are reported as any change is.
    package func reload() { daemon.reload() }
}

// MARK: - Observers

/// An observer until its observation ends. On the loop; unchecked for the same reason as the client.
private final class ObserverEntry: @unchecked Sendable {
    let observer: any BlueZObserver
    var isActive = true

    init(_ observer: any BlueZObserver) { self.observer = observer }
}

extension BlueZClient {
    /// Adds an observer. Any thread; the first call to it comes after this returns.
    ///
    /// The client retains the observer until the result is cancelled or released, and the result retains the client: the
    /// owner of an observer owns its observation. Nothing is reported after `cancel` returns on the loop; on another thread,
    /// after the present work of the loop. The last observation of a client that ends also ends the discovery sessions and
    /// the connection.
    package func observe(_ observer: any BlueZObserver) -> CancelHandle {
        let entry = ObserverEntry(observer)
        loop.post { self.add(entry) }
        return CancelHandle(loop: loop) { self.remove(entry) }
    }

    private func add(_ entry: ObserverEntry) {
        // The observation may have ended before.
        guard entry.isActive else { return }
        observers.append(entry)
        leaveTimer.cancel()
        guard daemon.isStopped else { return reportAll(to: entry.observer) }
        daemon.start(self)
        batchEnded()
    }

    /// Reports to a new observer what there is, in the order in which it would have received it.
    private func reportAll(to observer: any BlueZObserver) {
        if daemon.objects.isLoaded {
            for key in daemon.objects.adapterKeys { observer.treeChanged(.adapterAdded(key), in: daemon.objects) }
            for device in daemon.objects.deviceKeys {
                let isAdvertised = daemon.objects.read(device) { $0.fields.contains(.rssi) } ?? false
                observer.treeChanged(.deviceAdded(device, isAdvertised: isAdvertised), in: daemon.objects)
                for attribute in daemon.objects.attributes(of: device) {
                    let key = AttributeKey(device: device, handle: attribute.handle)
                    observer.treeChanged(.attributeAdded(key, attribute.kind), in: daemon.objects)
                }
            }
        }
        observer.availabilityChanged(daemon.availability, in: self)
        observer.batchEnded()
    }

    private func remove(_ entry: ObserverEntry) {
        entry.isActive = false
        guard let index = observers.firstIndex(where: { $0 === entry }) else { return }
        observers.remove(at: index)
        guard observers.isEmpty else { return }
        // Not inside a report: the tree that is being read is about to be cleared.
        loop.post { [self] in if observers.isEmpty { leave() } }
    }

    /// Stops discovery, unregisters the agent, and closes the connection when BlueZ has replied. Limit: 1 s; 6 s after a refused
    /// pairing, whose bond can be removed only when the link has ended.
    private func leave() {
        discovery.stopAll()
        pairings.stop()
        closeWhenSettled()
        // A timer of an earlier departure would cut this one short.
        leaveTimer.cancel()
        guard !daemon.isStopped else { return }
        leaveTimer.start(after: pairings.isSettled ? 1 : 6) { [weak self] in self?.close() }
    }

    private func closeWhenSettled() {
        let again: @Sendable () -> Void = { [weak self] in self?.closeWhenSettled() }
        if discovery.isSettled(orWhenChanged: again),
            pairings.isSettled(includingAgent: true, orWhenChanged: again)
        {
            close()
        }
    }

    private func close() {
        // An observer may have been added since.
        guard observers.isEmpty, !daemon.isStopped else { return }
        leaveTimer.cancel()
        discovery.close()
        pairings.close()
        daemon.stop()
        hasNews = false
    }

    private func forEachObserver(_ body: (any BlueZObserver) -> Void) {
        for entry in observers where entry.isActive { body(entry.observer) }
    }
}

extension BlueZClient: DaemonLinkHandler {
    func availabilityChanged(_ availability: Availability) {
        hasNews = true
        pairings.availabilityChanged(availability)
        forEachObserver { $0.availabilityChanged(availability, in: self) }
    }

    /// Passes a change to the parts that it concerns, and then to the managers. Most changes are notified values and sightings,
    /// which concern one part.
    func treeChanged(_ change: Change) {
        switch change {
        case .attributeChanged(let attribute, let fields):
            if notifications.attributeChanged(attribute, fields) { return }
        case .attributeRemoved(let attribute, _): notifications.attributeRemoved(attribute)
        case .attributeAdded: break
        case .deviceAdded(let device, let isAdvertised):
            if isAdvertised { discovery.received(on: device.adapter) }
            pairings.deviceChanged(device, isLinkChange: true)
        case .deviceChanged(let device, let fields, let isAdvertised):
            if isAdvertised { discovery.received(on: device.adapter) }
            if fields.contains(.battery) { notifications.batteryChanged(of: device) }
            guard !fields.isDisjoint(with: .ofLink) else { break }
            let isLinkChange = fields.contains(.isConnected)
            if isLinkChange, daemon.objects[device]?.isConnected == false { connector.linkEnded(of: device) }
            pairings.deviceChanged(device, isLinkChange: isLinkChange)
        case .deviceRemoved(let device):
            connector.linkEnded(of: device)
            pairings.deviceRemoved(device)
        case .adapterAdded(let adapter):
            discovery.adapterAdded(adapter)
            pairings.adaptersChanged()
        case .adapterChanged(let adapter, let fields):
            discovery.adapterChanged(adapter, fields)
            pairings.adaptersChanged()
        case .adapterRemoved(let adapter): discovery.adapterRemoved(adapter)
        }
        hasNews = true
        forEachObserver { $0.treeChanged(change, in: daemon.objects) }
    }

    func batchEnded() {
        // Values that were notified before the link was lost, before the report of the loss.
        notifications.flush()
        guard hasNews else { return }
        hasNews = false
        forEachObserver { $0.batchEnded() }
    }
}

// MARK: - Calls

extension BlueZClient {
    /// Reads a characteristic or a descriptor from the peer. BlueZ signals the value as a change too, before it replies.
    ///
    /// `completion` first passes the reply to ``readEnded(_:offset:_:)``, which returns the value. If this method did so, it
    /// would allocate a second closure for each read. The peer has 30 seconds for its response (Core Specification, Vol 3,
    /// Part F, 3.3.3).
    package func readValue(
        _ key: AttributeKey, offset: Int = 0, timeout: Double, completion: @escaping Connection.Completion
    ) {
        notifications.readBegan(key)
        daemon.readValue(key, offset: offset, timeout: timeout, completion: completion)
    }

    /// Returns the value in the reply to a read, and delivers the notified values that have waited for it.
    package func readEnded(
        _ key: AttributeKey, offset: Int = 0, _ reply: Result<Message, DBusError>
    ) -> Result<Data, BlueZError> {
        let value = daemon.value(in: reply, of: key, offset: offset)
        notifications.readEnded(key, offset: offset, reply: try? value.get())
        return value
    }

    /// Ends a device's link and makes `bluetoothd` forget the device, with its bond. Requests of the agent about the device end
    /// before. Any thread; `completion` runs on the loop.
    package func removeDevice(_ device: ObjectKey, completion: @escaping BlueZCompletion<Void>) {
        loop.perform { [pairings, connector] in
            pairings.endRequests(about: device)
            connector.removeDevice(device, completion: completion)
        }
    }

    /// Sets whether BlueZ admits the services of a device without asking, and connects it by itself. Stored by BlueZ. Any
    /// thread; `completion` runs on the loop.
    package func setTrusted(_ isTrusted: Bool, device: ObjectKey, completion: @escaping BlueZCompletion<Void>) {
        loop.perform { [daemon] in
            daemon.setProperty("Trusted", "b", of: device, completion: completion) { $0.bool(isTrusted) }
        }
    }

    /// Sets whether an adapter accepts bonds. Every program may set it, and BlueZ sets it at each change of the default agent.
    /// Any thread; `completion` runs on the loop.
    ///
    /// - Parameter timeout: The seconds after which BlueZ sets it to false; 0 for no limit.
    package func setPairable(
        _ isPairable: Bool, timeout: UInt32 = 0, adapter: ObjectKey, completion: @escaping BlueZCompletion<Void>
    ) {
        loop.perform { [daemon] in
            let set: @Sendable () -> Void = {
                daemon.setProperty("Pairable", "b", of: adapter, completion: completion) { $0.bool(isPairable) }
            }
            guard isPairable, daemon.objects[adapter: adapter]?.pairableTimeout != timeout else { return set() }
            // First the limit: it begins when the adapter becomes pairable.
            daemon.setProperty("PairableTimeout", "u", of: adapter) { result in
                if case .failure = result { completion(result) } else { set() }
            } value: {
                $0.uint32(timeout)
            }
        }
    }
}

/// Receives the changes of `bluetoothd` from a ``BlueZClient``. Everything is called on the client's loop.
///
/// A new observer receives in this order:
/// - while the daemon's objects are not known, ``availabilityChanged(_:in:)`` with the state of the link;
/// - once they are known, ``treeChanged(_:in:)`` for each adapter and device, then `.ready`, then ``batchEnded()``.
///
/// When the daemon goes, each device and adapter is reported as removed, then `.noDaemon` or `.noBus` comes.
package protocol BlueZObserver: AnyObject, Sendable {
    func availabilityChanged(_ availability: Availability, in client: BlueZClient)

    /// One change. The values are those after the whole message; a removed device can be read here for the last time. Values of
    /// characteristics that are subscribed to over signals are received by their subscribers instead.
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree)

    /// All messages that had arrived together are processed: the time to wake up users.
    func batchEnded()
}

/// Chooses the handles of an application's attributes, for a BlueZ that does not.
///
/// BlueZ 5.74 and 5.75 refuse a characteristic with the `Handle` 0 (`database_add_chrc`). With chosen handles a service
/// must have one as well, since they have to lie within it, and each descriptor, in the order in which BlueZ creates
/// the attributes of a service (`database_add_service`): its declaration, the included services, and for each
/// characteristic its declaration, its value, 0x2902 and 0x2900, which BlueZ adds, and its descriptors.
///
/// Which handles are free is not on the bus. BlueZ gives its own services and those of other programs the handle after
/// the highest one, so ours begin far above, and far enough below 0xFFFF that others fit behind them. If they are taken
/// nevertheless, BlueZ refuses the registration and the next ones are tried.
struct HandleLayout {
    private static let first: UInt16 = 0x1000
    private static let last: UInt16 = 0xEFFF

    private var next = HandleLayout.first

    /// The first of this many handles in a row, after those that were given before, or else from the beginning; `nil` if
    /// there are not so many.
    mutating func reserve(_ count: Int) -> UInt16? {
        for first in [next, Self.first] where Int(first) + count <= Int(UInt16.max) {
            let end = first + UInt16(count)
            next = end < Self.last ? end : Self.first
            return first
        }
        return nil
    }
}
