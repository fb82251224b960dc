import Foundation
import GatewayCore
import GatewayTestSupport

/// A broker and the connection to it, in memory. A test decides what arrives, what is acknowledged, and when the connection
/// ends. What is on its way when the connection ends arrives in part: its beginning, as over TCP.
final class TestBroker: BrokerTransport, @unchecked Sendable {
    struct Publication { let message: BrokerMessage, token: UInt64 }

    let events: AsyncStream<BrokerEvent>
    private let continuation: AsyncStream<BrokerEvent>.Continuation
    private let lock = NSLock()
    private var connected = false
    private var onTheWay: [Publication] = []
    private var unacknowledged: [UInt64] = []
    private var arrivals: [BrokerMessage] = []
    private var publications: [Publication] = []
    private var largestWindow = 0
    private var room = Int.max
    private var refuses: @Sendable (BrokerMessage) -> Bool = { _ in false }
    private var answersAtOnce = false
    private var records = true

    init() { (events, continuation) = AsyncStream.makeStream() }

    // MARK: BrokerTransport

    func publish(_ message: BrokerMessage, token: UInt64) throws(BrokerTransportError) {
        lock.lock()
        defer { lock.unlock() }
        guard connected else { throw .notConnected }
        if refuses(message) { throw .invalid("the test refuses it") }
        guard onTheWay.count + unacknowledged.count < room else { throw .full }
        if records { publications.append(Publication(message: message, token: token)) }
        onTheWay.append(Publication(message: message, token: token))
        if answersAtOnce {
            if records { arrivals.append(message) }
            onTheWay.removeAll()
            continuation.yield(.acknowledged(token: token))
        }
        largestWindow = max(largestWindow, onTheWay.count + unacknowledged.count)
    }

    func subscribe(_ filter: String) {}
    func run() async {}

    // MARK: What a test decides

    func connect(answersAtOnce: Bool = false) {
        lock.withLock {
            connected = true
            self.answersAtOnce = answersAtOnce
        }
        continuation.yield(.connected)
    }

    /// Ends the connection; the first `count` messages that are on their way arrive.
    func disconnect(after count: Int = 0) {
        receive(count)
        lock.withLock {
            connected = false
            onTheWay = []
            unacknowledged = []
        }
        continuation.yield(.disconnected(reason: "test"))
    }

    /// Lets messages arrive, in order.
    func receive(_ count: Int = .max) {
        lock.withLock {
            let part = onTheWay.prefix(count)
            onTheWay.removeFirst(part.count)
            arrivals += part.map(\.message)
            unacknowledged += part.map(\.token)
        }
    }

    /// Takes tokens that are to be acknowledged, in a random order.
    func acknowledge(_ count: Int, using generator: inout SeededNumbers) -> [UInt64] {
        lock.withLock {
            unacknowledged.shuffle(using: &generator)
            let part = Array(unacknowledged.prefix(count))
            unacknowledged.removeFirst(part.count)
            return part
        }
    }

    /// How many messages are taken that are not acknowledged.
    func setRoom(_ count: Int) { lock.withLock { room = count } }
    func setRefuses(_ test: @escaping @Sendable (BrokerMessage) -> Bool) { lock.withLock { refuses = test } }

    var isConnected: Bool { lock.withLock { connected } }
    var received: [BrokerMessage] { lock.withLock { arrivals } }
    var published: [Publication] { lock.withLock { publications } }
    var largestUnacknowledged: Int { lock.withLock { largestWindow } }
    /// Whether what is published and arrives is kept.
    func setRecords(_ value: Bool) { lock.withLock { records = value } }
}
