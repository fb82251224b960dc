public import Foundation

/// A message as a broker carries it.
public struct BrokerMessage: Hashable, Sendable {
    /// The topic, without wildcards.
    public var topic: String
    public var payload: Data
    /// The quality of service of MQTT 3.1.1: 0, at most once, or 1, at least once.
    public var quality: Quality
    /// Whether the broker keeps the message for those who subscribe later.
    public var isRetained: Bool

    /// The qualities of service that are used.
    public enum Quality: Int32, Hashable, Sendable {
        case atMostOnce = 0
        case atLeastOnce = 1
    }

    public init(topic: String, payload: Data, quality: Quality = .atLeastOnce, isRetained: Bool = false) {
        (self.topic, self.payload, self.quality, self.isRetained) = (topic, payload, quality, isRetained)
    }
}

/// What a connection to a broker reports.
public enum BrokerEvent: Sendable {
    /// The broker has accepted the connection. What was published before and not acknowledged is to be published again.
    case connected
    /// The connection has ended, or an attempt has failed; the next attempt follows by itself.
    case disconnected(reason: String)
    /// The broker has acknowledged the message that was published with this token.
    case acknowledged(token: UInt64)
    /// A message has arrived on a subscribed topic.
    case received(BrokerMessage)
}

/// A connection to a broker that is established again whenever it ends.
///
/// A transport keeps nothing that the broker has not acknowledged: it forgets it at the end of a connection, and its user
/// publishes it again after ``BrokerEvent/connected``.
public protocol BrokerTransport: Sendable {
    /// All events, in their order, for one loop. The loop sees each acknowledgement and each end; of messages that arrive
    /// faster than they are taken a bounded number is kept, and the newest are dropped and counted.
    var events: AsyncStream<BrokerEvent> { get }

    /// Publishes a message over the present connection.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - token: Returned in ``BrokerEvent/acknowledged(token:)`` if the quality is at least once.
    /// - Throws: If there is no connection, or the loop has not taken all changes of the connection from ``events``, or too much
    ///   waits for the socket. Nothing was sent then.
    func publish(_ message: BrokerMessage, token: UInt64) throws(BrokerTransportError)

    /// Subscribes to a filter with quality 1, now and after each new connection.
    func subscribe(_ filter: String)

    /// Maintains the connection until the task is cancelled, and then ends it in order, after which the broker sends no will.
    func run() async
}

/// Why a message was not sent.
public enum BrokerTransportError: Error, Hashable, Sendable {
    /// There is no connection; ``BrokerEvent/connected`` follows when there is.
    case notConnected
    /// So many messages wait for acknowledgements that no more are taken until one arrives.
    case full
    /// The message cannot be sent: the reason is in the text.
    case invalid(String)
}
