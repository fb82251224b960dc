import Futures
package import Reactor

/// A bus inside this process: for tests that want everything on one loop, usually in virtual time.
///
/// It carries the same libdbus messages as a socket does, with a bus daemon's rules: unique names, owners and queues of
/// names, match rules, unicast and broadcast, an error for a call whose callee is unknown or has gone. Connect to it
/// by its `address`, like to any other bus.
///
/// Unchecked, because all but the registry is confined to the loop.
package final class LoopbackBus: @unchecked Sendable {
    /// A bus's place in the registry, which does not keep it. Read and written under the registry's lock.
    private final class Place: @unchecked Sendable {
        weak var bus: LoopbackBus?
    }

    private static let registry = Locked<[String: Place]>([:])
    private static let lastNumber = Locked(0)

    package let loop: any EventLoop
    package let name: String
    private let place = Place()
    let driver = LoopbackDriver()
    private(set) var isClosed = false

    /// A bus on this loop, with a name of its own where none is given. Traps where another bus has the name.
    package init(loop: any EventLoop, name: String? = nil) {
        self.loop = loop
        let number = Self.lastNumber.withLock { number in
            number += 1
            return number
        }
        let name = name ?? "bus\(number)"
        self.name = name
        let other = Self.registry.withLock { registry -> LoopbackBus? in
            let other = registry[name]?.bus
            guard other == nil else { return other }
            place.bus = self
            registry[name] = place
            return nil
        }
        precondition(other == nil, "There is a loopback bus \"\(name)\" already: give this one another name.")
    }

    deinit {
        // Another may have taken the name in the meantime.
        Self.registry.withLock { registry in
            if registry[name] === place { registry[name] = nil }
        }
    }

    /// What to connect to: "loopback:name=…".
    package var address: String { "loopback:name=" + name }

    /// Ends the bus as the death of a daemon would: every connection is lost, and no new one gets in.
    package func close() {
        loop.perform { [self] in
            isClosed = true
            driver.loseAll()
        }
    }

    /// Takes connections again after `close`.
    package func reopen() {
        loop.perform { [self] in isClosed = false }
    }

    /// Replaces the bus's answer to calls of one of its own methods, except `Hello`: for tests on a bus that does not keep to
    /// the specification, or whose policy denies the call.
    package func answer(_ member: String, _ answer: @escaping @Sendable (Message) -> Message) {
        loop.perform { [self] in driver.answers[member] = answer }
    }

    /// The match rules of all connections. On the bus's loop.
    package var matchRules: [MatchRule] { driver.matchRules }

    /// The bus that an address names, if it is one of this process.
    package static func at(address: String) -> LoopbackBus? {
        name(inAddress: address).flatMap { named($0) }
    }

    static func name(inAddress text: String) -> String? {
        let prefix = "loopback:name="
        return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }

    static func named(_ name: String) -> LoopbackBus? {
        registry.withLock { $0[name]?.bus }
    }
}

/// One connection's end of a loopback bus. On the bus's loop; unchecked for the same reason as the bus.
final class LoopbackTransport: Transport, @unchecked Sendable {
    let bus: LoopbackBus?
    private let name: String
    private weak var receiver: (any TransportReceiver)?
    private var inbox = Queue<Message>()
    private var isScheduled = false
    private var isLost = false
    private var lastSerial: UInt32 = 0
    /// The unique name, from Hello on.
    var uniqueName: String?
    var matches: [LoopbackMatch] = []

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
        bus.driver.route(message.copied(), serial: lastSerial, from: self)
        return lastSerial
    }

    func named(_ uniqueName: String) {}

    let hasOutput = false

    func close() {
        guard receiver != nil else { return }
        receiver = nil
        inbox.removeAll()
        bus?.driver.disconnected(self)
    }

    // MARK: From the bus

    /// Puts a message where the connection will find it: never inside what the sender is doing.
    func deliver(_ message: Message) {
        inbox.append(message)
        schedule()
    }

    /// The bus is gone; what it had delivered is still handled.
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
