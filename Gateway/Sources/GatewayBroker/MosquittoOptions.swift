internal import Foundation
public import GatewayCore

/// How a ``MosquittoTransport`` connects, and what it keeps.
public struct MosquittoOptions: Sendable {
    /// The brokers, in the order in which they are tried. Several are nodes of one cluster.
    public var addresses: [BrokerAddress]
    /// The identifier of the session, 1…65535 bytes, which stays the same for the life of a gateway. The broker keeps the
    /// session and its subscriptions while the gateway is away, and ends a connection when another one has its identifier.
    public var clientIdentifier: String
    /// How long a connection may be silent, in seconds: 5…65535. A broker publishes the will after 1.5 times as long, and
    /// the transport ends a connection that does not react after at most twice as long.
    public var keepAlive = 5
    /// What the broker publishes when the connection ends without order.
    public var will: BrokerMessage?
    public var user: String?
    /// Needs a user name. It does not appear in descriptions of the options.
    public var password: String? {
        get { secret.value }
        set { secret.value = newValue }
    }
    private var secret = Hidden()
    /// For addresses that begin with `mqtts://`.
    public var security = MosquittoSecurity()
    public var limits = MosquittoLimits()
    /// How long an attempt may take until the broker has accepted the connection and all subscriptions. A cluster of
    /// `nats-server` that elects a leader needs more than ten seconds.
    public var connectLimit: Duration = .seconds(30)
    /// How long the broker may take to acknowledge a message before the transport ends the connection.
    public var acknowledgementLimit: Duration = .seconds(60)
    /// After how long a subscription that the broker has refused is requested again.
    public var subscriptionRetry: Duration = .seconds(10)
    /// How long an end in order may take: acknowledgements that are due, and then the message that ends the connection.
    public var closeLimit: Duration = .seconds(2)

    public init(addresses: [BrokerAddress], clientIdentifier: String) {
        (self.addresses, self.clientIdentifier) = (addresses, clientIdentifier)
    }

    /// A text that descriptions and mirrors do not show.
    private struct Hidden: Sendable, CustomStringConvertible, CustomReflectable {
        var value: String?
        var description: String { "‹hidden›" }
        var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// Throws the first mistake.
    func validate() throws(MosquittoOptionsError) {
        guard !addresses.isEmpty else { throw MosquittoOptionsError("no broker address is given; one is needed") }
        guard MosquittoClient.isText(clientIdentifier, in: 1...65535) else {
            throw MosquittoOptionsError("the client identifier is not a text of 1…65535 bytes")
        }
        guard (5...65535).contains(keepAlive) else {
            throw MosquittoOptionsError("the keep-alive of \(keepAlive) s is not in 5…65535 s")
        }
        guard password == nil || user != nil else {
            throw MosquittoOptionsError("a password is given without a user name; MQTT 3.1.1 needs both")
        }
        guard MosquittoClient.isText(user ?? "", in: 0...65535), MosquittoClient.isText(password ?? "", in: 0...65535)
        else { throw MosquittoOptionsError("the user name or the password is longer than 65535 bytes or contains a 0") }
        guard (security.certificateFile == nil) == (security.keyFile == nil) else {
            throw MosquittoOptionsError("a client certificate and its key are needed together")
        }
        guard (1...65535).contains(limits.inFlight), limits.unsent > 0, limits.unsent + limits.inFlight < 60_000,
            (1...(64 << 20)).contains(limits.payload), limits.waitingBytes > 0, limits.received > 0,
            limits.receivedBytes > 0
        else {
            throw MosquittoOptionsError(
                "a limit is out of its range: each is at least 1, those of messages that are sent below 60000 in sum, "
                    + "the payload at most 64 MiB")
        }
        if let will {
            do { try MosquittoClient.check(will, payloadLimit: limits.payload) } catch {
                throw MosquittoOptionsError("the will: \(error)")
            }
        }
    }
}

/// Files for TLS, in the PEM format. They are read at each new connection.
public struct MosquittoSecurity: Sendable {
    /// The certificates of the authorities that may have signed the broker's; `nil` for those of the system.
    public var authorityFile: String?
    /// The certificate that is sent to the broker; needs a key.
    public var certificateFile: String?
    /// The key of the certificate, without a pass phrase.
    public var keyFile: String?

    public init(authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil) {
        (self.authorityFile, self.certificateFile, self.keyFile) = (authorityFile, certificateFile, keyFile)
    }
}

/// How much a ``MosquittoTransport`` keeps at most.
public struct MosquittoLimits: Sendable {
    /// Messages with quality 1 that wait for an acknowledgement, and acknowledgements that wait in the events.
    public var inFlight = 100
    /// Messages with quality 0 that the socket has not taken.
    public var unsent = 1_000
    /// The bytes of both in sum. One message is always allowed.
    public var waitingBytes = 8 << 20
    /// The bytes of the payload of one message, sent or received, at most 64 MiB. Larger ones are refused or dropped.
    public var payload = 256 << 10
    /// Messages that were received and not taken from the events.
    public var received = 1_000
    /// The bytes of those in sum. One message is always allowed.
    public var receivedBytes = 8 << 20

    public init() {}
}

/// What is wrong with options, in one sentence.
public struct MosquittoOptionsError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
