import BlueCapFutures
import BlueCapReactor
import Glibc
import TestSupport
import XCTest

@testable import BlueCapDBus

/// Connections to a bus that a test plays itself, byte by byte.
final class SocketTransportTests: XCTestCase {
    private var bus = PlayedBus()

    override func setUpWithError() throws {
        bus = PlayedBus()
        try bus.listen()
    }

    override func tearDown() {
        bus.stop()
    }

    /// Opens a connection, and plays the bus until it has received `Hello`.
    private func open(_ stateChanged: @escaping @Sendable (ConnectionState) -> Void = { _ in }) throws -> Connection {
        let connection = Connection.open(.custom(bus.address), stateChanged: stateChanged)
        try bus.admit()
        return connection
    }

    private func reply(to serial: UInt32, _ text: String) -> [UInt8] {
        var reply = RawMessage("s") { $0.text(text) }
        reply.type = 2
        reply.fields = [
            RawMessage.Field(code: 8, type: "g") { $0.signature("s") }, RawMessage.number(5, serial),
        ]
        return reply.bytes
    }

    private func waitFor(_ condition: () -> Bool, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertTrue(Shortage.wait(limit: 10, until: condition), file: file, line: line)
    }

    func testABusThatSendsOneByteAtATimeIsRead() throws {
        let connection = try open()
        for byte in reply(to: 1, ":1.7") { sendAll([byte], [], to: bus.socket) }
        waitFor { connection.uniqueName == ":1.7" }
        let seen = Locked<[String?]>([])
        let subscription = connection.subscribe(MatchRule(interface: "a.b", member: "C")) { signal in
            var reader = signal.reader
            seen.withLock { $0.append(reader.string()) }
        }
        connection.loop.wait {}
        let signals = [false, true].flatMap { isBig in RawMessage("s", isBig: isBig) { $0.text("signal") }.bytes }
        for byte in signals { sendAll([byte], [], to: bus.socket) }
        waitFor { seen.withLock { $0.count } == 2 }
        XCTAssertEqual(seen.withLock { $0 }, ["signal", "signal"])
        subscription.cancel()
        connection.close()
    }

    func testHalfAHeaderForEverCostsNoProcessorTime() throws {
        let connection = try open()
        sendAll(Array(reply(to: 1, ":1.7").prefix(9)), [], to: bus.socket)
        waitFor { unread(at: bus.socket) == 0 }
        let before = connection.loop.wait { threadTime() }
        // There is no event to wait for: in this time nothing is to happen.
        usleep(500_000)
        XCTAssertLessThan(connection.loop.wait { threadTime() } - before, 0.1)
        XCTAssertNil(connection.uniqueName)
        connection.close()
    }

    func testAMessageThatIsNotValidEndsTheConnectionWithTheReason() throws {
        let states = Locked<[ConnectionState]>([])
        let connection = try open { state in states.withLock { $0.append(state) } }
        var wrong = RawMessage()
        wrong.serial = 0
        sendAll(reply(to: 1, ":1.7") + wrong.bytes, [], to: bus.socket)
        waitFor { states.withLock { $0.count } == 2 }
        guard case .closed(let error)? = states.withLock({ $0.last }) else { return XCTFail("not closed") }
        XCTAssertEqual(error.name, DBusError.Name.disconnected)
        XCTAssertEqual(error.message, "The bus has sent a message that is not valid: its serial is 0.")
        withExtendedLifetime(connection) {}
    }

    func testMessagesBeforeTheEndOfTheBusAreHandled() throws {
        let states = Locked<[ConnectionState]>([])
        let connection = try open { state in states.withLock { $0.append(state) } }
        sendAll(reply(to: 1, ":1.7"), [], to: bus.socket)
        waitFor { connection.uniqueName == ":1.7" }
        let count = Locked(0)
        let subscription = connection.subscribe(MatchRule(interface: "a.b")) { _ in count.withLock { $0 += 1 } }
        connection.loop.wait {}
        sendAll(Array(repeatElement(RawMessage().bytes, count: 1_000).joined()), [], to: bus.socket)
        bus.stop()
        waitFor { states.withLock { $0.count } == 2 }
        XCTAssertEqual(count.withLock { $0 }, 1_000)
        guard case .closed(let error)? = states.withLock({ $0.last }) else { return XCTFail("not closed") }
        XCTAssertEqual(error, .lost)
        subscription.cancel()
    }

    func testABusThatEndsDuringTheAuthenticationHasNotAdmittedTheProcess() throws {
        let states = Locked<[ConnectionState]>([])
        let connection = Connection.open(.custom(bus.address)) { state in states.withLock { $0.append(state) } }
        try bus.accept()
        bus.stop()
        waitFor { states.withLock { $0.count } == 1 }
        guard case .closed(let error)? = states.withLock({ $0.last }) else { return XCTFail("not closed") }
        XCTAssertEqual(error, .notAdmitted)
        withExtendedLifetime(connection) {}
    }

    func testATransportThatIsReleasedDisconnects() throws {
        let loop = ThreadLoop(name: "test")
        let address = bus.address
        let hasStarted = loop.wait { (try? SocketTransport(address: address, loop: loop).start(Receiver())) != nil }
        XCTAssertTrue(hasStarted)
        try bus.accept()
        var bytes = [UInt8](repeating: 0, count: 1_024)
        while read(bus.socket, &bytes, bytes.count) > 0 {}
    }
}

/// A receiver that ignores everything.
private final class Receiver: TransportReceiver {
    func received(_ message: Message) {}
    func batchEnded() {}
    func outputDrained() {}
    func lost(_ error: DBusError) {}
}

/// The processor time of the calling thread in seconds.
/// The memory of what was sent over a socket and not yet read (unix(7): SIOCOUTQ, which has the number of TIOCOUTQ).
private func unread(at socket: Int32) -> Int32 {
    var size: Int32 = -1
    return ioctl(socket, UInt(TIOCOUTQ), &size) == 0 ? size : -1
}

private func threadTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A bus of one client, of which a test plays every byte.
private final class PlayedBus {
    private var listener: Int32 = -1
    private(set) var socket: Int32 = -1
    private let path = NSTemporaryDirectory() + "/played-\(UUID().uuidString)"

    var address: String { "unix:path=\(path)" }

    func listen() throws {
        listener = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        XCTAssertEqual(bound, 0)
        XCTAssertEqual(Glibc.listen(listener, 1), 0)
    }

    func accept() throws {
        socket = Glibc.accept(listener, nil, nil)
        XCTAssertGreaterThanOrEqual(socket, 0)
    }

    /// Authenticates the client, and reads its `Hello`, which is the first message.
    func admit() throws {
        try accept()
        XCTAssertEqual(line().first, "\0")
        answer("OK 1234deadbeef1234deadbeef1234dead")
        XCTAssertEqual(line(), "NEGOTIATE_UNIX_FD")
        answer("AGREE_UNIX_FD")
        XCTAssertEqual(line(), "BEGIN")
        var bytes = [UInt8](repeating: 0, count: 1_024)
        XCTAssertGreaterThan(read(socket, &bytes, bytes.count), 16)
    }

    private func answer(_ text: String) { sendAll(Array((text + "\r\n").utf8), [], to: socket) }

    private func line() -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(socket, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        return String(decoding: line, as: UTF8.self).replacingOccurrences(of: "\r", with: "")
    }

    func stop() {
        for descriptor in [socket, listener] where descriptor >= 0 { close(descriptor) }
        (socket, listener) = (-1, -1)
        unlink(path)
    }
}
