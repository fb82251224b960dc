import Foundation
import GatewayCore
import XCTest

@testable import GatewayPage

/// A page on a free port of the loopback interface, which `end()` ends.
final class TestPage: Sendable {
    let board: StatusBoard
    let metrics = PrometheusMetrics()
    let port: UInt16
    private let task: Task<Void, any Error>
    private let hasEnded = DispatchSemaphore(value: 0)

    init(
        board: StatusBoard = StatusBoard(gateway: "kitchen", version: "1.0", broker: "localhost:1883"),
        limits: Listener.Limits = Listener.Limits(), command: GatewayPage.Command? = nil,
        configure: (inout GatewayPage.Configuration) -> Void = { _ in }
    ) throws {
        self.board = board
        var configuration = GatewayPage.Configuration()
        configuration.port = 0
        configure(&configuration)
        let listening = Waiter<UInt16>()
        var page = try GatewayPage(configuration: configuration, board: board, metrics: metrics, command: command) {
            listening.set($0)
        }
        page.limits = limits
        let ended = hasEnded
        task = Task { [page] in
            defer { ended.signal() }
            try await page.run()
        }
        port = try listening.wait("The page does not listen.")
    }

    /// Ends the page, and waits until it has ended.
    func end() {
        task.cancel()
        XCTAssertEqual(hasEnded.wait(timeout: .now() + 10), .success, "The page has not ended.")
    }

    func get(_ path: String, fields: [String] = []) throws -> TestResponse {
        try exchange((["GET \(path) HTTP/1.1", "Host: localhost"] + fields + ["", ""]).joined(separator: "\r\n"))
    }

    /// Sends a request and returns the response, for which it waits at most 10 s.
    func exchange(_ request: String) throws -> TestResponse {
        let client = try Client(port: port)
        try client.send(Data(request.utf8))
        return try TestResponse(client.readToEnd())
    }

    /// Waits until a condition holds, at most for this time.
    func wait(_ text: String, seconds: Double = 10, until holds: () throws -> Bool) throws {
        let end = Date() + seconds
        while try !holds() {
            guard Date() < end else { throw TestFailure(text: text) }
            usleep(20_000)
        }
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
}

/// A value that one thread sets and another waits for.
// `@unchecked`: `value` is written before the signal and read after it.
final class Waiter<Value: Sendable>: @unchecked Sendable {
    private var value: Value?
    private let semaphore = DispatchSemaphore(value: 0)

    func set(_ value: Value) {
        self.value = value
        semaphore.signal()
    }

    func wait(_ text: String) throws -> Value {
        guard semaphore.wait(timeout: .now() + 10) == .success, let value else { throw TestFailure(text: text) }
        return value
    }
}

struct TestResponse {
    let status: Int
    /// By their names in lower case.
    let fields: [String: String]
    let body: Data

    var text: String { String(decoding: body, as: UTF8.self) }

    init(_ data: Data) throws {
        guard let end = data.firstRange(of: Data("\r\n\r\n".utf8)) else {
            throw TestFailure(text: "no response: \(String(decoding: data.prefix(200), as: UTF8.self))")
        }
        let lines = String(decoding: data[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        status = Int(lines[0].split(separator: " ").dropFirst().first ?? "") ?? 0
        fields = Dictionary(
            lines.dropFirst().compactMap { line in
                line.firstIndex(of: ":").map {
                    (line[..<$0].lowercased(), line[line.index(after: $0)...].trimmingCharacters(in: .whitespaces))
                }
            }, uniquingKeysWith: { $1 })
        body = data[end.upperBound...]
    }
}

/// A TCP connection to a port of the loopback interface, for requests that no library would send.
// `@unchecked`: one thread reads `received`; another one may send.
final class Client: @unchecked Sendable {
    private let descriptor: Int32
    private(set) var received = Data()

    /// - Parameters:
    ///   - receiveBuffer: The size of the kernel's buffer; small for a client that accepts little.
    ///   - seconds: How long it waits for bytes.
    init(port: UInt16, receiveBuffer: Int32? = nil, seconds: Int = 10) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw TestFailure(text: "socket: \(errno)") }
        if var size = receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4) }
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw TestFailure(text: "connect: \(errno)") }
    }

    deinit { close(descriptor) }

    func send(_ data: Data) throws {
        var rest = data
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw TestFailure(text: "send: \(errno)") }
            rest = Data(rest.dropFirst(count))
        }
    }

    /// Sends no more, as a client that has been closed by half.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads once; returns false at the end of the connection.
    func read() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno != ECONNRESET { throw TestFailure(text: "recv: \(errno)") }
        received.append(contentsOf: buffer.prefix(max(count, 0)))
        return count > 0
    }

    func readToEnd() throws -> Data {
        while try read() {}
        return received
    }

    /// Reads a response with `Content-Length`, after which the server may keep the connection.
    func readResponse() throws -> TestResponse {
        try read(until: "\r\n\r\n")
        while true {
            let response = try TestResponse(received)
            guard let length = response.fields["content-length"].flatMap(Int.init), response.body.count < length else {
                return response
            }
            guard try read() else { throw TestFailure(text: "The connection has ended within a response.") }
        }
    }

    /// Reads until the text occurs in what was received.
    func read(until text: String) throws {
        while received.firstRange(of: Data(text.utf8)) == nil {
            guard try read() else { throw TestFailure(text: "The connection has ended before \"\(text)\".") }
        }
    }

    /// Takes the snapshots of the events that were received as a whole.
    func takeEvents() throws -> [(name: String, snapshot: StatusSnapshot)] {
        var events: [(String, StatusSnapshot)] = []
        while let end = received.firstRange(of: Data("\n\n".utf8)) {
            let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).split(separator: "\n")
            received = Data(received[end.upperBound...])
            guard let event = lines.first(where: { $0.hasPrefix("event: ") }),
                let data = lines.first(where: { $0.hasPrefix("data: ") })
            else { continue }
            let snapshot = try JSONDecoder().decode(StatusSnapshot.self, from: Data(data.dropFirst(6).utf8))
            events.append((String(event.dropFirst(7)), snapshot))
        }
        return events
    }
}

func device(_ number: Int) -> DeviceName {
    DeviceName(String(format: "c0ffee%06x", number))!  // twelve digits
}
