/// What the courier has sent over the present connection, and what it sends next.
///
/// Values are sent in the order of their identifiers. After each new connection the window begins again with the oldest
/// value that is stored. A value up to ``sentThrough`` has been sent before, or may have been.
struct SendWindow {
    /// How many values wait for an acknowledgement at most.
    let size: Int
    private(set) var isConnected = false
    /// The number of the connection: differs before and after an asynchronous call if the window has begun again.
    private(set) var connection: UInt64 = 0
    /// The last value that this connection has seen.
    private(set) var cursor: Int64 = 0
    /// The greatest identifier of a value that was sent, also by an earlier process and over earlier connections.
    private(set) var sentThrough: Int64
    /// What was sent over this connection and is not acknowledged.
    private var inFlight: [Int64: Delivery] = [:]
    /// What is acknowledged and still stored. It is not sent again.
    private var acknowledged: [Int64: Delivery] = [:]

    init(size: Int, sentThrough: Int64) { (self.size, self.sentThrough) = (size, sentThrough) }

    /// Whether a value may be sent. If the store cannot delete what is acknowledged, the window closes too.
    var canSend: Bool { isConnected && inFlight.count < size && acknowledged.count < 10 * size }
    var inFlightCount: Int { inFlight.count }
    var acknowledgedCount: Int { acknowledged.count }
    /// What is acknowledged and to be deleted.
    var deliveries: [Delivery] { Array(acknowledged.values) }

    mutating func connect() {
        isConnected = true
        restart()
    }

    mutating func disconnect() {
        isConnected = false
        restart()
    }

    private mutating func restart() {
        connection += 1
        cursor = 0
        inFlight = [:]
    }

    func isAcknowledged(_ id: Int64) -> Bool { acknowledged[id] != nil }

    /// Passes over a value that is acknowledged or cannot be sent.
    mutating func skip(_ id: Int64) { cursor = id }

    mutating func sent(_ value: StoredValue) {
        cursor = value.id
        sentThrough = max(sentThrough, value.id)
        inFlight[value.id] = Delivery(value)
    }

    /// Returns whether the acknowledgement is for a value of this window.
    mutating func acknowledge(_ id: Int64) -> Bool {
        guard let delivery = inFlight.removeValue(forKey: id) else { return false }
        acknowledged[id] = delivery
        return true
    }

    mutating func deleted(_ deliveries: [Delivery]) {
        for delivery in deliveries { acknowledged[delivery.id] = nil }
    }
}
