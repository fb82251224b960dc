import FlyingSocks
import Foundation
import Glibc

/// Accepts connections and carries out one request of each, within limits.
///
/// FlyingSocks has the sockets and their epoll loop. The `HTTPServer` of FlyingFox is not used: it bounds neither the length
/// of a request's head, nor the time of a request, nor the number of connections, and it ends when descriptors run out.
struct Listener: Sendable {
    struct Limits: Hashable, Sendable {
        /// The number of connections at one time; more get status 503.
        var connections = 64
        /// How long a request may take to arrive.
        var request = Duration.seconds(5)
        /// How long a client may take to accept what is sent to it.
        var write = Duration.seconds(10)
        /// How long a connection is kept after the last byte, so that the client can read it all.
        var linger = Duration.seconds(1)
        var parser = RequestParser.Limits()
    }

    enum Reply: Sendable {
        case response(Response)
        /// A head, and parts until the end of the sequence.
        case stream(head: Data, parts: AsyncStream<Data>, end: @Sendable () -> Void)
    }

    let limits: Limits
    /// Carries out a request.
    let respond: @Sendable (Result<Request, RequestError>) async -> Reply

    /// Accepts connections until the task is cancelled; then it ends them all, and returns.
    ///
    /// - Parameters:
    ///   - socket: A socket that listens. It is closed in the end.
    func run(on socket: Socket) async throws {
        defer { try? socket.close() }
        try socket.setFlags(.nonBlocking)
        let pool: SocketPool<ePoll> = .ePoll(maxEvents: limits.connections)
        try await pool.prepare()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pool.run() }
            group.addTask { try await accept(on: socket, pool) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func accept(on listener: Socket, _ pool: SocketPool<ePoll>) async throws {
        let slots = Slots(limit: limits.connections)
        try await withThrowingDiscardingTaskGroup { connections in
            while true {
                try Task.checkCancellation()
                let socket: Socket
                do {
                    socket = Socket(file: try listener.accept().file)
                } catch SocketError.blocked {
                    try await pool.suspendSocket(listener, untilReadyFor: .connection)
                    continue
                } catch SocketError.failed(_, let number, _) {
                    // EMFILE and the like pass when other descriptors are closed. The others concern one connection only.
                    guard number != EBADF, number != EINVAL else { throw SocketError.disconnected }
                    if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(number) {
                        try await Task.sleep(for: .milliseconds(100))
                    }
                    continue
                }
                _ = fcntl(socket.file.rawValue, F_SETFD, FD_CLOEXEC)
                guard slots.take() else {
                    refuse(socket)
                    continue
                }
                connections.addTask {
                    defer {
                        try? socket.close()
                        slots.release()
                    }
                    // What fails here is the connection, and its client sees it end.
                    try? await serve(AsyncSocket(socket: socket, pool: pool))
                }
            }
        }
    }

    /// Sends status 503 without waiting, and closes.
    private func refuse(_ socket: Socket) {
        let response = Response.error(503, "Too many connections; try again later.", fields: ["Retry-After: 5"])
        try? socket.setFlags(.nonBlocking)
        _ = try? socket.write(response.encoded())
        try? socket.close()
    }

    private func serve(_ socket: AsyncSocket) async throws {
        let outcome: Result<Request, RequestError>
        do {
            outcome = .success(try await withDeadline(limits.request) { try await read(socket) })
        } catch let error as RequestError {
            outcome = .failure(error)
        } catch is DeadlinePassed {
            outcome = .failure(RequestError(408, "The request did not arrive in \(limits.request)."))
        }
        switch await respond(outcome) {
        case .response(let response):
            let withBody = (try? outcome.get())?.method != "HEAD"
            try await write(response.encoded(withBody: withBody), to: socket)
        case .stream(let head, let parts, let end):
            defer { end() }
            try await write(head, to: socket)
            for await part in parts { try await write(part, to: socket) }
        }
        // Closing with unread bytes would reset the connection, and the client could lose the response.
        _ = shutdown(socket.socket.file.rawValue, Int32(SHUT_WR))
        try await withDeadline(limits.linger) {
            var rest = 256 * 1024
            while rest > 0 { rest -= try await socket.read(atMost: 4096).count }
        }
    }

    private func read(_ socket: AsyncSocket) async throws -> Request {
        var parser = RequestParser(limits: limits.parser)
        while true {
            if let request = try parser.append(try await socket.read(atMost: 4096)) { return request }
        }
    }

    private func write(_ data: Data, to socket: AsyncSocket) async throws {
        try await withDeadline(limits.write) { try await socket.write(data) }
    }
}

/// Counts what is in use, up to a limit.
// `@unchecked`: `count` is accessed only while `lock` is held.
final class Slots: @unchecked Sendable {
    private let lock = NSLock()
    private let limit: Int
    private var count = 0

    init(limit: Int) {
        self.limit = limit
    }

    func take() -> Bool {
        lock.withLock {
            guard count < limit else { return false }
            count += 1
            return true
        }
    }

    func release() { lock.withLock { count -= 1 } }
}

struct DeadlinePassed: Error {}

/// Runs a function, which is cancelled after this time.
///
/// - Throws: ``DeadlinePassed``, or what the function throws.
func withDeadline<Value: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw DeadlinePassed()
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}
