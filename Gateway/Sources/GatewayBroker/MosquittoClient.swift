internal import CMosquitto
internal import Foundation
internal import Glibc
internal import GatewayCore

/// One connection of libmosquitto to one broker. This file has all calls of that library.
///
/// The library is used in its threaded mode, in which ``publish(_:)`` and ``subscribe(_:)`` only put packets into its
/// queue, and in which ``step(timeout:wake:)`` reads and writes. It is not asked to wait for the socket itself, because
/// its `select` corrupts memory if a descriptor is above 1023.
// `@unchecked`: `publish` and `subscribe` use nothing but `handle`, which the library locks. All else is called on the
// thread of the connection.
final class MosquittoClient: @unchecked Sendable {
    /// What the broker has sent. Reported on the thread of the connection, in `step`.
    enum Event {
        case accepted
        /// A message with quality 1 was acknowledged, or one with quality 0 was written.
        case completed(Int32)
        case subscribed(Int32, isGranted: Bool)
        case received(BrokerMessage)
        case receivedOversized(topic: String, bytes: Int)
    }

    private let address: BrokerAddress
    private let options: MosquittoOptions
    private let handle: OpaquePointer
    private let handler: (Event) -> Void
    private var isEstablished = false
    private(set) var isAccepted = false
    private var refusal: Int32?
    /// The last errors that the library has logged, which are those of TLS.
    private var errors: [String] = []

    /// Linux's `POLLRDHUP`, which Glibc's header has only for GNU's C.
    private static let remoteEnd: Int16 = 0x2000

    /// The library's global state, which is never released.
    private static let library: Int32 = mosquitto_lib_init()

    /// Starts to connect; `step` goes on with it. It blocks while the name of the host is resolved.
    ///
    /// - Parameter ipv4Only: Whether only IPv4 addresses of the host are used. The library tries a second address of a
    ///   host only if it cannot begin to connect to the first.
    init(
        address: BrokerAddress, options: MosquittoOptions, ipv4Only: Bool, handler: @escaping (Event) -> Void
    ) throws(ConnectionEnd) {
        _ = Self.library
        guard let handle = mosquitto_new(options.clientIdentifier, false, nil) else {
            throw ConnectionEnd("libmosquitto cannot make a client: \(String(cString: strerror(errno)))")
        }
        (self.address, self.options, self.handle, self.handler) = (address, options, handle, handler)
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        setCallbacks()
        try check(mosquitto_threaded_set(handle, true))
        try check(mosquitto_int_option(handle, MOSQ_OPT_SEND_MAXIMUM, Int32(options.limits.inFlight)))
        try check(mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1))
        if options.user != nil { try check(mosquitto_username_pw_set(handle, options.user, options.password)) }
        if let will = options.will {
            let code = will.payload.withUnsafeBytes {
                mosquitto_will_set(
                    handle, will.topic, Int32($0.count), $0.baseAddress, will.quality.rawValue, will.isRetained)
            }
            try check(code)
        }
        if address.isSecure { try setSecurity() }
        try check(
            mosquitto_connect_bind_async(
                handle, address.host, Int32(address.port), Int32(options.keepAlive), ipv4Only ? "0.0.0.0" : nil))
    }

    deinit { mosquitto_destroy(handle) }

    private func setSecurity() throws(ConnectionEnd) {
        let files = options.security
        for file in [files.authorityFile, files.certificateFile, files.keyFile] {
            guard let file, access(file, R_OK) != 0 else { continue }
            throw ConnectionEnd("The file \(file) for TLS cannot be read: \(String(cString: strerror(errno))).")
        }
        // Without this callback OpenSSL asks on the terminal for the pass phrase of a key.
        let noPassPhrase:
            @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
                { _, _, _, _ in 0 }
        let directory = files.authorityFile == nil ? "/etc/ssl/certs" : nil
        try check(
            mosquitto_tls_set(
                handle, files.authorityFile, directory, files.certificateFile, files.keyFile, noPassPhrase))
    }

    private func setCallbacks() {
        mosquitto_connect_callback_set(handle) { _, context, code in MosquittoClient.of(context).connected(code) }
        mosquitto_publish_callback_set(handle) { _, context, identifier in
            MosquittoClient.of(context).handler(.completed(identifier))
        }
        mosquitto_subscribe_callback_set(handle) { _, context, identifier, count, qualities in
            let isGranted = count > 0 && (qualities.map { $0[0] < 0x80 } ?? false)
            MosquittoClient.of(context).handler(.subscribed(identifier, isGranted: isGranted))
        }
        mosquitto_message_callback_set(handle) { _, context, message in
            if let message { MosquittoClient.of(context).received(message.pointee) }
        }
        mosquitto_log_callback_set(handle) { _, context, level, text in
            guard level == MOSQ_LOG_ERR, let text else { return }
            let client = MosquittoClient.of(context)
            if client.errors.count < 4 { client.errors.append(String(cString: text)) }
        }
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> MosquittoClient {
        // The library passes what was set in `init`, and calls nothing after `mosquitto_destroy`.
        Unmanaged.fromOpaque(context!).takeUnretainedValue()
    }

    private func connected(_ code: Int32) {
        guard code == 0 else {
            refusal = code
            return
        }
        isAccepted = true
        handler(.accepted)
    }

    private func received(_ message: mosquitto_message) {
        let topic = String(cString: message.topic)
        let count = Int(message.payloadlen)
        guard count <= options.limits.payload else {
            handler(.receivedOversized(topic: topic, bytes: count))
            return
        }
        let payload = message.payload.map { Data(bytes: $0, count: count) } ?? Data()
        let quality = BrokerMessage.Quality(rawValue: message.qos) ?? .atLeastOnce
        handler(.received(BrokerMessage(topic: topic, payload: payload, quality: quality, isRetained: message.retain)))
    }

    /// Puts a message into the library's queue, and returns its packet identifier.
    func publish(_ message: BrokerMessage) throws(BrokerTransportError) -> Int32 {
        var identifier: Int32 = 0
        let code = message.payload.withUnsafeBytes {
            mosquitto_publish(
                handle, &identifier, message.topic, Int32($0.count), $0.baseAddress, message.quality.rawValue,
                message.isRetained)
        }
        switch mosq_err_t(code) {
        case MOSQ_ERR_SUCCESS: return identifier
        case MOSQ_ERR_NO_CONN, MOSQ_ERR_CONN_LOST: throw .notConnected
        case MOSQ_ERR_NOMEM: throw .full
        default: throw .invalid(String(cString: mosquitto_strerror(code)))
        }
    }

    /// Puts a subscription with quality 1 into the library's queue, and returns its packet identifier, or `nil` if there is
    /// no connection any more.
    func subscribe(_ filter: String) -> Int32? {
        var identifier: Int32 = 0
        return mosquitto_subscribe(handle, &identifier, filter, 1) == MOSQ_ERR_SUCCESS.code ? identifier : nil
    }

    /// Waits for the socket or for `wake`, and then reads and writes what is possible without waiting.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait at most. Until the broker has accepted the connection, it is at most 50 ms.
    ///   - wake: An `eventfd`, which is reset.
    /// - Throws: When the connection has ended.
    func step(timeout: Duration, wake: EventDescriptor) throws(ConnectionEnd) {
        let socket = mosquitto_socket(handle)
        guard socket >= 0 else { throw end(of: MOSQ_ERR_CONN_LOST.code) }
        var interest = Int16(POLLIN) | Self.remoteEnd
        if !isEstablished {
            interest = Int16(POLLOUT)
        } else if isAccepted && mosquitto_want_write(handle) {
            interest |= Int16(POLLOUT)
        }
        let found = wake.wait(isAccepted ? timeout : min(timeout, .milliseconds(50)), socket: socket, interest)
        guard isAccepted else {
            try stepUntilAccepted(socket, found)
            return
        }
        if found & ~Int16(POLLOUT) != 0 { try check(mosquitto_loop_read(handle, 1)) }
        // After the broker's end only what it has sent matters; an error of a write would discard that.
        let hasEnded = found & (Int16(POLLHUP | POLLERR) | Self.remoteEnd) != 0
        if !hasEnded, mosquitto_socket(handle) >= 0, mosquitto_want_write(handle) {
            try check(mosquitto_loop_write(handle, 1))
        }
        try check(mosquitto_loop_misc(handle))
    }

    /// The same before the broker has accepted the connection.
    ///
    /// The library is called each time rather than when the socket is ready, because it does not show for what its
    /// handshake of TLS waits, and not for its keep-alive, which would end a connection that is not accepted within it.
    private func stepUntilAccepted(_ socket: Int32, _ found: Int16) throws(ConnectionEnd) {
        if !isEstablished {
            guard found != 0 else { return }
            var error: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size)
            // The library begins with TLS at once; it may be the broker that has already ended that.
            isEstablished = error == 0 || error == ECONNRESET || error == EPIPE
            guard error == 0 else {
                guard !isEstablished else { throw end(of: MOSQ_ERR_CONN_LOST.code) }
                throw ConnectionEnd("\(address) cannot be reached: \(String(cString: strerror(error))). \(Self.advice)")
            }
        }
        if address.isSecure || found & (Int16(POLLIN | POLLHUP | POLLERR) | Self.remoteEnd) != 0 {
            try check(mosquitto_loop_read(handle, 1))
        }
        if mosquitto_socket(handle) >= 0 && mosquitto_want_write(handle) { try check(mosquitto_loop_write(handle, 1)) }
        // In its handshake of TLS the library takes the end of a connection for one that is to be waited for.
        if !isAccepted, found & (Int16(POLLHUP) | Self.remoteEnd) != 0 {
            var unread: Int32 = 0
            if ioctl(socket, UInt(FIONREAD), &unread) != 0 || unread == 0 { throw end(of: MOSQ_ERR_CONN_LOST.code) }
        }
    }

    /// Ends the connection in order, after what is in the library's queue. Returns when the broker has ended its side too,
    /// or `limit` is over.
    func disconnect(limit: Duration, wake: EventDescriptor) {
        let socket = mosquitto_socket(handle)
        guard isAccepted, socket >= 0 else { return }
        // The library closes its socket when it has written the packet. If there is something unread then, the system
        // resets the connection, and the broker may see that before the packet. A second descriptor delays the close.
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 3)
        defer { if copy >= 0 { Glibc.close(copy) } }
        // The library reads nothing from here on: it takes a packet that arrives now for an error.
        guard mosquitto_disconnect(handle) == MOSQ_ERR_SUCCESS.code else { return }
        let end = ContinuousClock.now + limit
        while mosquitto_socket(handle) >= 0 {
            guard mosquitto_loop_write(handle, 1) == MOSQ_ERR_SUCCESS.code, end > .now else { return }
            guard mosquitto_socket(handle) >= 0 else { break }
            _ = wake.wait(end - .now, socket: socket, Int16(POLLOUT))
        }
        guard copy >= 0, shutdown(copy, Int32(SHUT_WR)) == 0 else { return }
        var unread = [UInt8](repeating: 0, count: 16384)
        while end > .now {
            guard wake.wait(end - .now, socket: copy, Int16(POLLIN)) != 0 else { continue }
            let count = read(copy, &unread, unread.count)
            guard count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)) else { return }
        }
    }

    private func check(_ code: Int32) throws(ConnectionEnd) {
        if code > 0 { throw end(of: code) }
    }

    /// Returns why the connection has ended. `errno` is still that of the call that returned `code`.
    private func end(of code: Int32) -> ConnectionEnd {
        let number = errno
        let isHandshake = address.isSecure && isEstablished && !isAccepted
        func system() -> String { String(cString: strerror(number)) }
        switch mosq_err_t(code) {
        case MOSQ_ERR_CONN_REFUSED:
            return ConnectionEnd("\(address) has refused the connection: \(Self.text(of: refusal, options))")
        case MOSQ_ERR_EAI:
            return ConnectionEnd(
                "The host name of \(address) cannot be resolved: \(String(cString: gai_strerror(number))).")
        case MOSQ_ERR_KEEPALIVE:
            return ConnectionEnd("\(address) has sent nothing for the keep-alive of \(options.keepAlive) s, twice.")
        // A broker that refuses a certificate may reset the connection before what it sends has been read.
        case _ where address.isSecure && !errors.isEmpty, MOSQ_ERR_TLS,
            MOSQ_ERR_ERRNO where isHandshake,
            MOSQ_ERR_CONN_LOST where isHandshake:
            let details = errors.isEmpty ? "" : ": " + errors.joined(separator: "; ")
            return ConnectionEnd(
                "The TLS connection to \(address) has failed\(details). Check the files for TLS, the name in the broker's "
                    + "certificate, and whether the broker wants a certificate.")
        case MOSQ_ERR_CONN_LOST where !isAccepted:
            return ConnectionEnd(
                "\(address) has ended the connection without accepting it. It may be a node of a cluster that has no leader; "
                    + "otherwise check whether it is MQTT, and with TLS or without.")
        case MOSQ_ERR_CONN_LOST:
            return ConnectionEnd(
                "\(address) has ended the connection. If that repeats, another client may have the identifier "
                    + "\"\(options.clientIdentifier)\": each gateway needs its own name.")
        case MOSQ_ERR_ERRNO where !isAccepted:
            return ConnectionEnd("\(address) cannot be reached: \(system()). \(Self.advice)")
        case MOSQ_ERR_ERRNO: return ConnectionEnd("The connection to \(address) has ended: \(system()).")
        case MOSQ_ERR_PROTOCOL: return ConnectionEnd("\(address) does not keep to MQTT 3.1.1.")
        default:
            return ConnectionEnd("The connection to \(address) has ended: \(String(cString: mosquitto_strerror(code)))")
        }
    }

    private static let advice = "Is the broker running, and is broker.addresses right?"

    /// The return codes of CONNACK, MQTT 3.1.1, table 3.1.
    private static func text(of code: Int32?, _ options: MosquittoOptions) -> String {
        switch code {
        case 1: "it does not speak MQTT 3.1.1."
        case 2: "it does not allow the client identifier \"\(options.clientIdentifier)\"."
        case 3: "its MQTT service is not available."
        case 4: "the user name or the password is wrong."
        case 5:
            options.user == nil
                ? "not authorised; it wants a user name and a password, or a client certificate."
                : "not authorised; the user name or the password is wrong, or this user may not connect."
        default: "return code \(code ?? -1)."
        }
    }

    /// Throws if no broker can take a message.
    static func check(_ message: BrokerMessage, payloadLimit: Int) throws(BrokerTransportError) {
        guard isText(message.topic, in: 1...65535), mosquitto_pub_topic_check(message.topic) == MOSQ_ERR_SUCCESS.code
        else {
            throw .invalid(
                "the topic \"\(message.topic.prefix(100))\" is not a text of 1…65535 bytes without + and #")
        }
        guard message.payload.count <= payloadLimit else {
            throw .invalid("the payload has \(message.payload.count) bytes; at most \(payloadLimit) are allowed")
        }
    }

    /// Whether a filter can be subscribed to.
    static func isFilter(_ filter: String) -> Bool {
        isText(filter, in: 1...65535) && mosquitto_sub_topic_check(filter) == MOSQ_ERR_SUCCESS.code
    }

    /// Whether a text can be a string of MQTT: its length in bytes is in the range, and it does not contain U+0000.
    static func isText(_ text: String, in range: ClosedRange<Int>) -> Bool {
        range.contains(text.utf8.count) && !text.utf8.contains(0)
    }
}

/// Why a connection or an attempt has ended, in a sentence.
struct ConnectionEnd: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// An `eventfd`, by which other threads wake the thread of the connection.
final class EventDescriptor: Sendable {
    private let descriptor: Int32

    init() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        precondition(descriptor >= 0, "No descriptor is free: \(String(cString: strerror(errno))). Raise LimitNOFILE.")
    }

    deinit { close(descriptor) }

    func signal() { eventfd_write(descriptor, 1) }

    /// Waits until the event is signalled, which it resets, or a socket is ready, or a time is over.
    ///
    /// - Returns: For what the socket is ready.
    func wait(_ limit: Duration, socket: Int32 = -1, _ interest: Int16 = 0) -> Int16 {
        var descriptors = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: socket, events: interest, revents: 0),
        ]
        // Rounded up, so that a wait for less than a millisecond is none without end.
        let (seconds, attoseconds) = max(limit, .zero).components
        let milliseconds = min(seconds, 3600) * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        guard poll(&descriptors, 2, Int32(milliseconds)) > 0 else { return 0 }
        var count: UInt64 = 0
        if descriptors[0].revents != 0 { eventfd_read(descriptor, &count) }
        return descriptors[1].revents
    }
}

extension mosq_err_t {
    /// The value as functions of the library return it.
    var code: Int32 { Int32(rawValue) }

    init(_ code: Int32) { self.init(rawValue: numericCast(code)) }
}
