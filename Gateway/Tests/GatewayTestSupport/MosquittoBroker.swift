internal import Foundation

/// A real `mosquitto` on 127.0.0.1, which can be killed and restarted on its port with its data. It ends with the test.
public final class MosquittoBroker: @unchecked Sendable {
    /// How the broker is configured.
    public struct Options: Sendable {
        /// The port; `nil` for a free one.
        public var port: UInt16?
        /// Whether sessions, retained messages and queues are kept in a file, which is written at an end in order and by
        /// ``MosquittoBroker/save()``.
        public var isPersistent = true
        /// User names with their passwords; if there are none, all may connect.
        public var users: [String: String] = [:]
        /// The files of the server's side, for `mqtts://`.
        public var certificates: TestCertificates?
        /// Lines of a file of access control, such as `topic readwrite #`.
        public var accessControl: [String] = []
        /// Further lines of the configuration.
        public var lines: [String] = []

        public init() {}
    }

    public let port: UInt16
    public let directory: TemporaryDirectory
    private let isSecure: Bool
    private let configuration: String
    // `@unchecked`: accessed only while the lock is held.
    private let lock = NSLock()
    private var process: ServerProcess?

    /// Starts a broker, and waits until it accepts connections.
    public convenience init(_ options: Options = Options()) async throws {
        try await self.init(prepared: options)
        try await start()
    }

    private init(prepared options: Options) async throws {
        directory = try TemporaryDirectory()
        port = try options.port ?? Loopback.freePort()
        isSecure = options.certificates != nil
        var lines = [
            "listener \(port) 127.0.0.1", "user root", "log_dest stderr", "connection_messages true",
            "allow_anonymous \(options.users.isEmpty)", "persistence \(options.isPersistent)",
            "persistence_location \(directory.url.path)/", "autosave_interval 0",
            // All that is published while a subscriber is away is kept, and nothing waits for acknowledgements.
            "max_queued_messages 0", "max_inflight_messages 0", "set_tcp_nodelay true",
        ]
        if !options.users.isEmpty {
            let file = try directory.write("passwords", options.users.map { "\($0):\($1)\n" }.sorted().joined())
            try await run("mosquitto_passwd", ["-U", file], in: directory)
            lines.append("password_file \(file)")
        }
        if !options.accessControl.isEmpty {
            let file = try directory.write("access", options.accessControl.joined(separator: "\n") + "\n")
            lines.append("acl_file \(file)")
        }
        if let certificates = options.certificates {
            lines += [
                "cafile \(certificates.authority)", "certfile \(certificates.server)",
                "keyfile \(certificates.serverKey)",
                "require_certificate true",
            ]
        }
        let text = (lines + options.lines).joined(separator: "\n") + "\n"
        configuration = try directory.write("mosquitto.conf", text)
    }

    /// The address as a transport takes it.
    public var address: String { "\(isSecure ? "mqtts" : "mqtt")://127.0.0.1:\(port)" }

    /// Starts the broker with its earlier port and data, if it does not run, and waits until it accepts connections.
    public func start() async throws {
        let process = try launch()
        try await eventually("mosquitto on port \(port)") {
            guard process.isRunning else { throw LimitExceeded("mosquitto has ended: \(process.output)") }
            return Loopback.accepts(port)
        }
    }

    private func launch() throws -> ServerProcess {
        lock.lock()
        defer { lock.unlock() }
        if let process, process.isRunning { return process }
        let log = directory.url.appendingPathComponent("mosquitto.log")
        let new = try ServerProcess("/usr/sbin/mosquitto", ["-c", configuration], log: log)
        process = new
        return new
    }

    private var current: ServerProcess? {
        lock.lock()
        defer { lock.unlock() }
        return process
    }

    /// Ends the broker with SIGKILL. What it has not written to its file is lost.
    public func kill() { current?.end() }

    /// Ends the broker in order, after which its file has all that it keeps.
    public func stop() async throws { try await current?.terminate() }

    /// Stops the broker's process without closing its connections, until ``resume()``.
    public func suspend() { current?.signal(SIGSTOP) }

    /// Continues the broker's process.
    public func resume() { current?.signal(SIGCONT) }

    /// Writes sessions, retained messages and queues to the file.
    public func save() async throws {
        let file = directory.path("mosquitto.db")
        try? FileManager.default.removeItem(atPath: file)
        current?.signal(SIGUSR1)
        // The broker writes another file, and renames it.
        try await eventually("mosquitto.db") { FileManager.default.fileExists(atPath: file) }
    }

    /// The end of the broker's log.
    public var log: String { current?.output ?? "" }
}

/// Certificates for TLS on 127.0.0.1, made by `openssl`: of an authority, of a server and of a client.
public final class TestCertificates: Sendable {
    public let directory: TemporaryDirectory

    public var authority: String { directory.path("authority.pem") }
    public var server: String { directory.path("server.pem") }
    public var serverKey: String { directory.path("server.key") }
    public var client: String { directory.path("client.pem") }
    public var clientKey: String { directory.path("client.key") }

    /// - Parameter clientName: The common name of the client's certificate.
    public init(clientName: String = "gateway") async throws {
        directory = try TemporaryDirectory()
        try await request("authority", name: "test authority", ["-x509", "-days", "2"])
        for (file, name) in [("server", "127.0.0.1"), ("client", clientName)] {
            try await request(file, name: name, [])
            let extensions = try directory.write("\(file).ext", "subjectAltName=IP:127.0.0.1\n")
            try await run(
                "openssl",
                [
                    "x509", "-req", "-in", directory.path("\(file).pem"), "-CA", authority, "-CAkey",
                    directory.path("authority.key"), "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out",
                    directory.path("\(file).pem"),
                ], in: directory)
        }
    }

    private func request(_ file: String, name: String, _ options: [String]) async throws {
        try await run(
            "openssl",
            [
                "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                "/CN=\(name)",
                "-keyout", directory.path("\(file).key"), "-out", directory.path("\(file).pem"),
            ] + options, in: directory)
    }
}
