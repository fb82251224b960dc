internal import Foundation
public import GatewayCore
public import Logging

/// The connection to a broker by MQTT 3.1.1, over libmosquitto.
///
/// The session is persistent: the broker keeps the subscriptions, and what arrives for them, while the transport is away.
/// Its addresses are tried in turn, with a random delay that grows from 0.5…1 s to 15…30 s. Each connection is a new
/// client of the library, so that the library sends nothing again, and reports no acknowledgement of an earlier connection.
/// The library ignores SIGPIPE for the whole process.
///
/// ```swift
/// var options = MosquittoOptions(addresses: [try BrokerAddress("mqtt://localhost")], clientIdentifier: "hall")
/// options.will = BrokerMessage(topic: "bluecap/hall/state", payload: Data("{}".utf8), isRetained: true)
/// let transport = try MosquittoTransport(options: options)
/// transport.subscribe("bluecap/hall/command")
/// async let connection: Void = transport.run()
/// for await event in transport.events { handle(event) }
/// await connection
/// ```
public final class MosquittoTransport: BrokerTransport {
    private let options: MosquittoOptions
    private let logger: Logger
    private let queue: EventQueue
    private let wake = EventDescriptor()
    private let state = Guarded(State())

    private struct State {
        var hasRun = false
        var isStopping = false
        /// Those that are to be subscribed to, in the order of the calls.
        var filters: [String] = []
        /// Set while a connection is accepted. `client` is used by other threads only while the state is locked.
        var current: (client: MosquittoClient, connection: Connection)?
        var address: BrokerAddress?
        var connections = 0

        /// Sends a subscription over the present connection, if there is one.
        mutating func subscribe(_ filter: String) {
            guard let identifier = current?.client.subscribe(filter) else { return }
            current?.connection.subscribing(to: filter, identifier: identifier)
        }
    }

    /// Prepares a transport, which connects when ``run()`` is called.
    ///
    /// - Throws: If an option is out of its range.
    public init(
        options: MosquittoOptions, logger: Logger = Logger(label: "bluecap.gateway.broker")
    ) throws(MosquittoOptionsError) {
        try options.validate()
        (self.options, self.logger, queue) = (options, logger, EventQueue(limits: options.limits))
    }

    /// All events, in their order, for one loop at a time. They end when ``run()`` returns.
    ///
    /// Messages that arrive before ``BrokerEvent/connected`` follow it. Of attempts that fail while the loop takes no event
    /// only the last is reported. A loop that is cancelled can be followed by another one, which goes on where it ended.
    public var events: AsyncStream<BrokerEvent> { AsyncStream(unfolding: queue.next) }

    /// What has happened since the beginning, and what waits.
    public var statistics: MosquittoStatistics {
        let (received, dropped) = queue.counts
        return state.withLock { state in
            MosquittoStatistics(
                address: state.address, connections: state.connections, waiting: state.current?.connection.waiting ?? 0,
                received: received, dropped: dropped)
        }
    }

    /// For how long the broker has acknowledged no message while at least one waits for its acknowledgement; zero if none
    /// waits. A broker that is slow, and acknowledges one message after another, is not silent.
    public var silence: Duration { state.withLock { $0.current?.connection.silence(at: .now) ?? .zero } }

    public func publish(_ message: BrokerMessage, token: UInt64) throws(BrokerTransportError) {
        try MosquittoClient.check(message, payloadLimit: options.limits.payload)
        let untaken = queue.acknowledgements
        try state.withLock { state throws(BrokerTransportError) in
            guard !state.isStopping, let client = state.current?.client else { throw .notConnected }
            // The user must know of the end of a connection before it publishes over the next one: what it published before
            // and was not acknowledged comes first.
            guard queue.changes == 0 else { throw .notConnected }
            try state.current?.connection.check(message, untaken: untaken)
            // The lock is held until the message is noted, for its acknowledgement can arrive at once.
            let identifier = try client.publish(message)
            state.current?.connection.published(message, identifier: identifier, token: token, at: .now)
        }
        wake.signal()
    }

    /// Subscribes to a filter with quality 1, now and after each new connection.
    ///
    /// A subscription that the broker refuses is logged, and requested again after
    /// ``MosquittoOptions/subscriptionRetry``; the connection is reported without it. A filter that is not valid is logged
    /// and ignored.
    public func subscribe(_ filter: String) {
        guard MosquittoClient.isFilter(filter) else {
            logger.error("\"\(filter.prefix(100))\" is no filter of topics; it is not subscribed to")
            return
        }
        state.withLock { state in
            guard !state.filters.contains(filter) else { return }
            state.filters.append(filter)
            state.subscribe(filter)
        }
        wake.signal()
    }

    /// Maintains the connection until the task is cancelled, and then ends it in order, after which the broker sends no will.
    ///
    /// At the end messages are no longer taken; those that were are acknowledged first, if that takes at most
    /// ``MosquittoOptions/closeLimit``. The call returns later only while the system resolves the name of a host. A
    /// transport can run once.
    public func run() async {
        let isFirst = state.withLock { state in
            defer { state.hasRun = true }
            return !state.hasRun
        }
        precondition(isFirst, "A transport runs once; make a new one.")
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let thread = Thread {
                    self.maintain()
                    continuation.resume()
                }
                thread.name = "bluecap-broker"
                thread.start()
            }
        } onCancel: {
            state.withLock { $0.isStopping = true }
            wake.signal()
        }
    }

    // MARK: The thread of the connection

    private func maintain() {
        var generator = SystemRandomNumberGenerator()
        var plan = Reconnection(count: options.addresses.count)
        while !isStopping {
            let begin = ContinuousClock.now
            let address = options.addresses[plan.index]
            let (reason, wasConnected) = connect(to: address, ipv4Only: plan.round % 2 == 1 && address.isName)
            queue.append(.disconnected(reason: reason))
            let isOrder = isStopping
            logger.debug("\(reason)")
            if isOrder { break }
            pause(plan.ended(after: wasConnected ? .now - begin : nil, using: &generator))
            // So that a loop that has stopped does not let the queue grow.
            while queue.changes > 64 && !isStopping { pause(.milliseconds(100)) }
        }
        queue.finish()
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    private func pause(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while !isStopping, end > .now { _ = wake.wait(end - .now) }
    }

    /// Connects, and returns when the connection has ended, or cannot be made, why, and whether it was reported.
    private func connect(to address: BrokerAddress, ipv4Only: Bool) -> (reason: String, wasConnected: Bool) {
        let begin = ContinuousClock.now
        let slot = ClientSlot()
        defer {
            state.withLock { ($0.current, $0.address) = (nil, nil) }
            slot.client = nil
        }
        do throws(ConnectionEnd) {
            let client = try MosquittoClient(
                address: address, options: options, ipv4Only: ipv4Only,
                handler: { [unowned self] event in handle(event, of: slot, at: address) })
            slot.client = client
            var nextCheck = begin
            var nextRetry = begin
            while true {
                try client.step(timeout: .seconds(1), wake: wake)
                if isStopping {
                    let wasConnected = isReported
                    try close(client)
                    return ("The gateway has ended the connection to \(address).", wasConnected)
                }
                let now = ContinuousClock.now
                guard now >= nextCheck else { continue }
                nextCheck = now + .milliseconds(100)
                try checkLimits(of: address, since: begin, at: now)
                guard now >= nextRetry else { continue }
                nextRetry = now + options.subscriptionRetry
                state.withLock { state in
                    guard let filters = state.current?.connection.takeRefused() else { return }
                    for filter in filters { state.subscribe(filter) }
                }
            }
        } catch {
            return (error.reason, isReported)
        }
    }

    private var isReported: Bool { state.withLock { $0.current?.connection.isReported ?? false } }

    private func checkLimits(
        of address: BrokerAddress, since begin: ContinuousClock.Instant, at now: ContinuousClock.Instant
    ) throws(ConnectionEnd) {
        let (isReported, oldest) = state.withLock {
            ($0.current?.connection.isReported ?? false, $0.current?.connection.oldest)
        }
        if !isReported, now - begin > options.connectLimit {
            throw ConnectionEnd("\(address) has not accepted the connection within \(options.connectLimit).")
        }
        if let oldest, now - oldest > options.acknowledgementLimit {
            throw ConnectionEnd("\(address) has not acknowledged a message within \(options.acknowledgementLimit).")
        }
    }

    /// Waits for the acknowledgements that are due, and ends the connection in order.
    private func close(_ client: MosquittoClient) throws(ConnectionEnd) {
        let end = ContinuousClock.now + options.closeLimit
        while end > .now, state.withLock({ $0.current?.connection.unacknowledged ?? 0 }) > 0 {
            try client.step(timeout: end - .now, wake: wake)
        }
        client.disconnect(limit: max(end - .now, .milliseconds(100)), wake: wake)
    }

    /// The client of a connection. It is made after the closure that handles its events.
    private final class ClientSlot {
        var client: MosquittoClient?
    }

    private func handle(_ event: MosquittoClient.Event, of slot: ClientSlot, at address: BrokerAddress) {
        switch event {
        case .accepted:
            guard let client = slot.client else { return }
            state.withLock { state in
                state.current = (client, Connection(limits: options.limits))
                state.address = address
                for filter in state.filters { state.subscribe(filter) }
            }
            reportIfComplete(address)
        case .subscribed(let identifier, let isGranted):
            let refused = state.withLock {
                $0.current?.connection.subscribed(identifier: identifier, isGranted: isGranted)
            }
            if let refused {
                logger.error("\(address) has refused the subscription to \(refused); check what this client may read")
            }
            reportIfComplete(address)
        case .completed(let identifier):
            let token = state.withLock { $0.current?.connection.completed(identifier: identifier) }
            if let token { queue.append(.acknowledged(token: token)) }
        case .received(let message):
            guard queue.append(.received(message)) else { return }
            logger.warning("messages arrive faster than they are handled; some are dropped, such as \(message.topic)")
        case .receivedOversized(let topic, let bytes):
            guard queue.dropOversized() else { return }
            logger.warning(
                "a message of \(bytes) bytes, above the limit of \(options.limits.payload), is dropped: \(topic)")
        }
    }

    private func reportIfComplete(_ address: BrokerAddress) {
        let isComplete = state.withLock { state in
            guard state.current?.connection.report() == true else { return false }
            state.connections += 1
            queue.append(.connected)
            return true
        }
        guard isComplete else { return }
        logger.debug("connected to \(address)")
    }
}

/// What a transport has done since its beginning, and what waits in it.
public struct MosquittoStatistics: Hashable, Sendable {
    /// The broker of the present connection.
    public var address: BrokerAddress?
    /// How many connections were reported.
    public var connections: Int
    /// Messages that wait for the socket or for an acknowledgement.
    public var waiting: Int
    /// Messages that were received, those that were dropped included.
    public var received: Int
    /// Messages that were received and dropped, because they were too large or arrived faster than they were taken.
    public var dropped: Int
}

extension BrokerAddress {
    /// Whether the host is a name, which can stand for several addresses.
    fileprivate var isName: Bool { !host.contains(":") && host.contains { $0.isLetter } }
}
