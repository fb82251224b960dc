import BlueCapFutures
package import BlueCapReactor

/// A bus inside this process: for tests that run everything on one loop, usually in virtual time.
///
/// It carries the same bytes as a socket, by the rules of a bus daemon: unique names, owners and queues of
/// names, match rules, unicast and broadcast, an error for a call to an unknown or disconnected callee. Connect to it by
/// its `address`, as to any other bus.
///
/// Unchecked, because everything except the registry is confined to the loop.
package final class LoopbackBus: @unchecked Sendable {
    /// An entry of the registry, which does not retain the bus. Read and written under the registry's lock.
    private final class Place: @unchecked Sendable {
        weak var bus: LoopbackBus?
    }

    private static let registry = Locked<(places: [String: Place], lastNumber: Int)>(([:], 0))

    package let loop: any EventLoop
    package let name: String
    private let place = Place()
    let driver = LoopbackDriver()
    private(set) var isClosed = false

    /// Creates a bus on this loop, by default with a new name. Traps if another bus has the name.
    package init(loop: any EventLoop, name: String? = nil) {
        self.loop = loop
        let name =
            name
            ?? Self.registry.withLock { registry in
                registry.lastNumber += 1
                return "bus\(registry.lastNumber)"
            }
        self.name = name
        let other = Self.registry.withLock { registry -> LoopbackBus? in
            if let other = registry.places[name]?.bus { return other }
            place.bus = self
            registry.places[name] = place
            return nil
        }
        precondition(other == nil, "There is a loopback bus \"\(name)\" already: give this one another name.")
    }

    deinit {
        // Another bus may have the name now.
        Self.registry.withLock { registry in
            if registry.places[name] === place { registry.places[name] = nil }
        }
    }

    /// The address to connect to: "loopback:name=…".
    package var address: String { "loopback:name=" + name }

    /// Ends the bus as the end of a daemon does: every connection is lost, and no new one is accepted.
    package func close() {
        loop.perform { [self] in
            isClosed = true
            driver.loseAll()
        }
    }

    /// Accepts connections again after `close`.
    package func reopen() {
        loop.perform { [self] in isClosed = false }
    }

    /// Replaces the bus's reply to calls of one of its own methods, except `Hello`: for tests on a bus that violates the
    /// specification, or has a policy that denies the call.
    package func answer(_ member: String, _ answer: @escaping @Sendable (Message) -> Message) {
        loop.perform { [self] in driver.answers[member] = answer }
    }

    /// The match rules of all connections. On the bus's loop.
    package var matchRules: [MatchRule] { driver.matchRules }

    /// Returns the bus with an address, if it is one of this process.
    package static func at(address: String) -> LoopbackBus? {
        name(inAddress: address).flatMap { named($0) }
    }

    static func name(inAddress text: String) -> String? {
        let prefix = "loopback:name="
        return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }

    static func named(_ name: String) -> LoopbackBus? {
        registry.withLock { $0.places[name]?.bus }
    }
}

/// A connection's end of a loopback bus. On the bus's loop; unchecked for the same reason as the bus.
final class LoopbackTransport: Transport, @unchecked Sendable {
    let bus: LoopbackBus?
    private let name: String
    private weak var receiver: (any TransportReceiver)?
    private var inbox = Ring<Message>()
    private var isScheduled = false
    private var isLost = false
    private var lastSerial: UInt32 = 0
    /// The unique name, from Hello on.
    var uniqueName: String?
    var matches: [CompiledRule] = []

    init(bus: LoopbackBus?, name: String) {
        self.bus = bus
        self.name = name
    }

    func start(_ receiver: any TransportReceiver) throws(DBusError) {
        guard let bus, !bus.isClosed else {
            throw DBusError(name: DBusError.Name.noServer, message: "There is no loopback bus \"\(name)\".")
        }
        self.receiver = receiver
        bus.driver.connected(self)
    }

    func send(_ message: Message) -> UInt32? {
        guard let bus, receiver != nil else { return nil }
        lastSerial += 1
        bus.driver.route(message, serial: lastSerial, from: self)
        return lastSerial
    }

    let hasOutput = false

    func close() {
        guard receiver != nil else { return }
        receiver = nil
        inbox.removeAll()
        bus?.driver.disconnected(self)
    }

    // MARK: From the bus

    /// Adds a message to the inbox. The connection handles it later, never inside the work of the sender.
    func deliver(_ message: Message) {
        inbox.append(message)
        schedule()
    }

    /// Ends the connection after the messages that were delivered.
    func lose() {
        isLost = true
        schedule()
    }

    private func schedule() {
        guard !isScheduled, let bus else { return }
        isScheduled = true
        bus.loop.post { self.drain() }
    }

    private func drain() {
        isScheduled = false
        var count = 0
        while count < batchLimit, receiver != nil, let message = inbox.popFirst() {
            count += 1
            receiver?.received(message)
        }
        if count > 0 { receiver?.batchEnded() }
        if !inbox.isEmpty {
            schedule()
        } else if isLost, let receiver {
            self.receiver = nil
            receiver.lost(.lost)
        }
    }
}
