import CoreMetrics
import FlyingSocks
public import Foundation
public import GatewayCore
import Glibc

/// The gateway's page, its status as JSON and events, and its metrics, over HTTP.
///
/// | request | reply |
/// |---|---|
/// | `GET /` | the page, which needs nothing from elsewhere |
/// | `GET /events` | server-sent events: `snapshot`, a ``StatusSnapshot`` with everything, then once a second `changes` |
/// | `GET /status` | a ``StatusSnapshot`` with everything |
/// | `GET /metrics` | Prometheus text, version 0.0.4 |
/// | `GET /healthz` | status 200 and `ok` |
/// | `POST /command` | with a token: a command in JSON as on the command topic; the reply to it |
///
/// FlyingFox's sockets, FlyingSocks, are used rather than hummingbird: the page has few viewers and needs neither TLS nor
/// HTTP/2, FlyingSocks builds in seconds and brings no SwiftNIO. Each connection carries one request, and all that a client
/// can use is bounded: connections, viewers, lengths and times.
public struct GatewayPage: Sendable {
    /// Where and how the page is served.
    public struct Configuration: Sendable {
        /// The address to listen on: an IPv4 or IPv6 address of this machine, or `localhost`.
        public var address = "127.0.0.1"
        /// The port; 0 lets the kernel choose a free one.
        public var port: UInt16 = 8080
        /// More names, without ports, that requests may have in `Host`. On a loopback address only its own names are accepted by default, so
        /// that no page of another site reaches the gateway by a name that it resolves to this machine (DNS rebinding).
        /// On other addresses all names are accepted unless there are some here.
        public var hosts: [String] = []
        /// The token for `POST /command`, of at least 16 printable ASCII characters without spaces. If there is none, no
        /// commands are accepted.
        public var token: String?
        /// The number of viewers of `GET /events` at one time.
        public var viewers = 20
        /// How long a command may take before the reply is status 504.
        public var commandTime = Duration.seconds(60)

        public init() {}
    }

    /// Carries out a command and returns the reply; both are JSON. Its task is cancelled when the time is over.
    public typealias Command = @Sendable (Data) async -> Data

    private static let commandsAtOnce = 8

    private let configuration: Configuration
    private let board: StatusBoard
    private let metrics: PrometheusMetrics
    private let command: Command?
    private let onListening: @Sendable (UInt16) -> Void
    private let hub: EventHub
    private let commands: Slots
    private let hosts: Set<String>?
    var limits = Listener.Limits()

    /// Creates a page; nothing listens before ``run()``.
    ///
    /// - Parameters:
    ///   - configuration: Where and how it is served.
    ///   - board: What it shows.
    ///   - metrics: What `GET /metrics` has besides the numbers of the board.
    ///   - command: Carries out commands of `POST /command`. It decides itself what is allowed.
    ///   - onListening: Called with the port once the page can be reached.
    /// - Throws: ``GatewayPageError/address(_:)`` or ``GatewayPageError/token``.
    public init(
        configuration: Configuration, board: StatusBoard, metrics: PrometheusMetrics, command: Command? = nil,
        onListening: @escaping @Sendable (UInt16) -> Void = { _ in }
    ) throws(GatewayPageError) {
        if let token = configuration.token {
            guard token.utf8.count >= 16, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw .token
            }
        }
        let address = try ListenAddress(configuration.address)
        let own = ["localhost", "127.0.0.1", "[::1]", address.host]
        let more = configuration.hosts.map { $0.lowercased() }
        hosts = address.isLoopback || !more.isEmpty ? Set(own + more) : nil
        (self.configuration, self.board, self.metrics, self.command) = (configuration, board, metrics, command)
        self.onListening = onListening
        hub = EventHub(board: board, limit: configuration.viewers)
        commands = Slots(limit: Self.commandsAtOnce)
    }

    /// Serves the page until the task is cancelled. It then ends all connections and returns.
    ///
    /// - Throws: ``GatewayPageError/cannotListen(_:)`` if the address cannot be used.
    public func run() async throws {
        let socket = try ListenAddress(configuration.address).listen(port: configuration.port)
        if case .ip4(_, let port) = try socket.sockname() {
            onListening(port)
        } else if case .ip6(_, let port) = try socket.sockname() {
            onListening(port)
        }
        let listener = Listener(limits: limits) { await reply(to: $0) }
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await listener.run(on: socket) }
                group.addTask { try await hub.run() }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch {
            // How the parts end when they are cancelled varies.
            guard Task.isCancelled else { throw error }
        }
    }

    // MARK: - Requests

    private func reply(to request: Result<Request, RequestError>) async -> Listener.Reply {
        let reply: Listener.Reply
        do {
            reply = try await self.reply(to: request.get())
        } catch let error as RequestError {
            reply = .response(.error(error.status, error.message))
        } catch {
            // The task of a command was cancelled, because the page ends.
            reply = .response(.error(503, "The gateway ends."))
        }
        let status: Int
        switch reply {
        case .response(let response): status = response.status
        case .stream: status = 200
        }
        Counter(
            label: "bluecap_gateway_page_requests_total", dimensions: [("status", "\(status)")], factory: metrics
        ).increment()
        return reply
    }

    private func reply(to request: Request) async throws -> Listener.Reply {
        try checkHost(request)
        let allowed: [String]
        switch request.path {
        case "/", "/events", "/status", "/metrics", "/healthz": allowed = ["GET", "HEAD"]
        case "/command": allowed = ["POST"]
        default: throw RequestError(404, "There is no such page. There are /, /events, /status, /metrics and /healthz.")
        }
        guard allowed.contains(request.method) else {
            let allowed = allowed.joined(separator: ", ")
            return .response(.error(405, "\(request.path) accepts \(allowed).", fields: ["Allow: \(allowed)"]))
        }
        switch request.path {
        case "/": return .response(PageDocument.response())
        case "/events" where request.method == "GET": return events()
        case "/events": return .response(.text("", type: Self.eventStream))
        case "/status": return .response(.json(board.snapshot().json))
        case "/metrics": return .response(.text(metricsText(), type: PrometheusText.type))
        case "/healthz": return .response(.text("ok\n"))
        default: return .response(try await command(request))
        }
    }

    /// Accepts the names of this machine only, without regard to the port, which a tunnel may change.
    private func checkHost(_ request: Request) throws(RequestError) {
        guard let hosts else { return }
        guard let host = request.fields["host"] else {
            throw RequestError(400, "The request has no Host field.")
        }
        var name = Substring(host.lowercased())
        if let colon = name.lastIndex(of: ":"), !name[colon...].contains("]") { name = name[..<colon] }
        guard hosts.contains(String(name)) else {
            throw RequestError(
                421,
                "This gateway is not called \"\(name.prefix(100))\". "
                    + "Add the name to page.hosts in the configuration to allow it.")
        }
    }

    private static let eventStream = "text/event-stream"

    private func events() -> Listener.Reply {
        guard let viewer = hub.join() else {
            return .response(
                .error(
                    503, "\(configuration.viewers) viewers are connected, which is the limit.",
                    fields: ["Retry-After: 5"]))
        }
        // Clients wait two seconds before they connect again.
        let head = Response.head(200, type: Self.eventStream) + Data("retry: 2000\n\n".utf8) + viewer.first
        return .stream(head: head, parts: viewer.events) { hub.leave(viewer.number) }
    }

    private func command(_ request: Request) async throws -> Response {
        guard let token = configuration.token, let command else {
            return .error(
                403,
                "This page is read-only. Set page.tokenFile in the configuration, and send its token in \"Authorization: Bearer …\"."
            )
        }
        let parts = request.fields["authorization", default: ""].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer", Self.isEqual(parts[1], token) else {
            return .error(
                401, "The token in \"Authorization: Bearer …\" is not that of the configuration.",
                fields: ["WWW-Authenticate: Bearer"])
        }
        let type = request.fields["content-type", default: ""].prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
        guard type.lowercased() == "application/json" else {
            return .error(415, "Send the command as application/json.")
        }
        guard commands.take() else {
            return .error(429, "\(Self.commandsAtOnce) commands are being carried out.", fields: ["Retry-After: 1"])
        }
        defer { commands.release() }
        let body = Data(request.body)
        do {
            return .json(try await withDeadline(configuration.commandTime) { await command(body) })
        } catch is DeadlinePassed {
            return .error(504, "The command did not end in \(configuration.commandTime).")
        }
    }

    /// Compares without revealing by the time how much of the text is right.
    static func isEqual(_ text: some StringProtocol, _ token: String) -> Bool {
        let (text, token) = (Array(text.utf8), Array(token.utf8))
        var difference = UInt8(text.count == token.count ? 0 : 1)
        for (index, byte) in token.enumerated() {
            difference |= byte ^ (text.isEmpty ? ~byte : text[index % text.count])
        }
        return difference == 0
    }

    private func metricsText() -> String {
        let numbers = board.numbers()
        var text = PrometheusText()
        text.begin("bluecap_gateway_info", "gauge")
        text.sample(
            "bluecap_gateway_info", [("gateway", numbers.gateway.name), ("version", numbers.gateway.version)], 1)
        func add(_ name: String, _ kind: String, _ value: Int) {
            text.add("bluecap_gateway_" + name, kind, Double(value))
        }
        text.add("bluecap_gateway_start_time_seconds", "gauge", Double(numbers.gateway.started) / 1000)
        add("broker_connected", "gauge", numbers.broker.connected ? 1 : 0)
        add("devices", "gauge", numbers.counts.devices)
        add("links", "gauge", numbers.counts.connected)
        add("reports_total", "counter", numbers.counts.reports)
        add("queue_depth", "gauge", numbers.queue.depth)
        add("values_stored_total", "counter", numbers.queue.stored)
        add("values_acknowledged_total", "counter", numbers.queue.acknowledged)
        add("values_dropped_total", "counter", numbers.queue.dropped)
        add("page_viewers", "gauge", hub.viewers)
        metrics.write(to: &text)
        return text.text
    }
}

/// Why the page cannot be served.
public enum GatewayPageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The address is not an IPv4 or IPv6 address.
    case address(String)
    /// The token is too short or has characters that are not allowed.
    case token
    /// The address and port cannot be listened on; the text says why and what to do.
    case cannotListen(String)

    public var description: String {
        switch self {
        case .address(let text):
            "The address of the page, \"\(text)\", is not an IPv4 or IPv6 address, such as 127.0.0.1, 0.0.0.0 or ::1."
        case .token:
            "The token of the page needs at least 16 printable ASCII characters without spaces; "
                + "`openssl rand -hex 16` makes one."
        case .cannotListen(let text): text
        }
    }
}

/// An address to listen on.
private struct ListenAddress {
    private enum Family {
        case ip4(sockaddr_in)
        case ip6(sockaddr_in6)
    }

    private let family: Family
    /// The address as it is written in `Host`.
    let host: String
    let isLoopback: Bool

    init(_ text: String) throws(GatewayPageError) {
        let text = text == "localhost" ? "127.0.0.1" : text
        if let address = try? sockaddr_in.inet(ip4: text, port: 0) {
            (family, host, isLoopback) = (.ip4(address), text, text.hasPrefix("127."))
        } else if let address = try? sockaddr_in6.inet6(ip6: text, port: 0) {
            (family, host, isLoopback) = (.ip6(address), "[\(text.lowercased())]", text == "::1")
        } else {
            throw .address(text)
        }
    }

    func listen(port: UInt16) throws(GatewayPageError) -> Socket {
        do {
            switch family {
            case .ip4(var address):
                address.sin_port = port.bigEndian
                return try Self.listen(address, Int32(AF_INET))
            case .ip6(var address):
                address.sin6_port = port.bigEndian
                return try Self.listen(address, Int32(AF_INET6))
            }
        } catch {
            let place = "\(host):\(port)"
            guard case SocketError.failed(_, let number, let message) = error else {
                throw .cannotListen("The page cannot listen on \(place): \(error)")
            }
            switch number {
            case EADDRINUSE:
                throw .cannotListen(
                    "The page cannot listen on \(place), because another program does. "
                        + "Set page.port in the configuration, or end that program.")
            case EACCES:
                throw .cannotListen(
                    "The page may not listen on \(place). Set page.port in the configuration to 1024 or more.")
            case EADDRNOTAVAIL:
                throw .cannotListen(
                    "The page cannot listen on \(place), because this machine does not have the address. "
                        + "Set page.address in the configuration.")
            default:
                throw .cannotListen("The page cannot listen on \(place): \(message)")
            }
        }
    }

    private static func listen(_ address: some SocketAddress, _ domain: Int32) throws -> Socket {
        let socket = try Socket(domain: domain, type: .stream)
        do {
            _ = fcntl(socket.file.rawValue, F_SETFD, FD_CLOEXEC)
            try socket.setValue(true, for: .localAddressReuse)
            try socket.bind(to: address)
        } catch {
            try? socket.close()
            throw error
        }
        try socket.listen()  // closes the socket if it fails
        return socket
    }
}
