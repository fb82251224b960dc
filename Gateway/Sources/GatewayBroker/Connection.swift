internal import GatewayCore

/// What a transport knows of one connection that the broker has accepted: which messages wait for what, and which
/// subscriptions are confirmed. It is forgotten with the connection.
struct Connection {
    private let limits: MosquittoLimits
    /// Whether the connection has been reported, after which messages can be published.
    private(set) var isReported = false
    private var pending: [Int32: Pending] = [:]
    private var inFlight = 0
    private var bytes = 0
    /// When the latest acknowledgement arrived.
    private var acknowledgedAt: ContinuousClock.Instant?
    private var lastIdentifier: Int32 = 0
    private var subscribing: [Int32: String] = [:]
    private var refused: [String] = []

    private struct Pending {
        /// `nil` for quality 0, of which the broker acknowledges nothing.
        var token: UInt64?
        var size: Int
        var since: ContinuousClock.Instant
    }

    init(limits: MosquittoLimits) { self.limits = limits }

    /// How many messages wait, those with quality 0 included.
    var waiting: Int { pending.count }
    /// How many messages wait for acknowledgements.
    var unacknowledged: Int { inFlight }

    /// Throws if a message cannot be published now.
    ///
    /// - Parameter untaken: How many acknowledgements wait in the queue of events.
    func check(_ message: BrokerMessage, untaken: Int) throws(BrokerTransportError) {
        guard isReported else { throw .notConnected }
        let isFull =
            switch message.quality {
            case .atLeastOnce: inFlight + untaken >= limits.inFlight
            case .atMostOnce: pending.count - inFlight >= limits.unsent
            }
        // The library numbers messages by 1…65535 and does not look whether a number is still in use.
        let next = lastIdentifier == 65535 ? 1 : lastIdentifier + 1
        guard !isFull, pending.isEmpty || bytes + message.size <= limits.waitingBytes, pending[next] == nil else {
            throw .full
        }
    }

    /// Notes that the library has taken a message.
    mutating func published(_ message: BrokerMessage, identifier: Int32, token: UInt64, at now: ContinuousClock.Instant)
    {
        lastIdentifier = identifier
        let isAcknowledged = message.quality == .atLeastOnce
        pending[identifier] = Pending(token: isAcknowledged ? token : nil, size: message.size, since: now)
        bytes += message.size
        if isAcknowledged { inFlight += 1 }
    }

    /// Notes that a message was acknowledged or, with quality 0, written. Returns the token of one that was acknowledged.
    mutating func completed(identifier: Int32, at now: ContinuousClock.Instant = .now) -> UInt64? {
        guard let message = pending.removeValue(forKey: identifier) else { return nil }
        bytes -= message.size
        if message.token != nil {
            inFlight -= 1
            acknowledgedAt = now
        }
        return message.token
    }

    /// Since when the oldest message waits for its acknowledgement.
    var oldest: ContinuousClock.Instant? { pending.values.lazy.filter { $0.token != nil }.map(\.since).min() }

    /// For how long a message has waited and no message was acknowledged; zero if none waits.
    func silence(at now: ContinuousClock.Instant) -> Duration {
        guard let oldest else { return .zero }
        return now - max(oldest, acknowledgedAt ?? oldest)
    }

    mutating func subscribing(to filter: String, identifier: Int32) {
        lastIdentifier = identifier
        subscribing[identifier] = filter
    }

    /// Notes that the broker has confirmed or refused a subscription. Returns the filter of one that it has refused.
    mutating func subscribed(identifier: Int32, isGranted: Bool) -> String? {
        guard let filter = subscribing.removeValue(forKey: identifier), !isGranted else { return nil }
        refused.append(filter)
        return filter
    }

    /// Returns the filters that the broker has refused since the last call.
    mutating func takeRefused() -> [String] {
        defer { refused = [] }
        return refused
    }

    /// Returns whether the connection is to be reported now: all subscriptions have replies, and it was not reported before.
    mutating func report() -> Bool {
        guard !isReported, subscribing.isEmpty else { return false }
        isReported = true
        return true
    }
}
