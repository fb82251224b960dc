import BlueCapFutures
import BlueCapReactor
import Glibc
import TestSupport
import XCTest

@testable import BlueCapDBus

/// Peers that send in any pieces, too much, or too little, on a real socket.
final class ReceiveBufferTests: XCTestCase {
    private var ours: Int32 = -1
    private var theirs: Int32 = -1
    private var buffer = ReceiveBuffer()

    override func setUp() {
        var ends: [Int32] = [-1, -1]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends), 0)
        (ours, theirs) = (ends[0], ends[1])
    }

    override func tearDown() {
        close(ours)
        if theirs >= 0 { close(theirs) }
        buffer = ReceiveBuffer()
    }

    private func send(_ bytes: [UInt8], _ descriptors: [Int32] = []) {
        sendAll(bytes, descriptors, to: theirs)
    }

    /// All messages that are complete.
    private func messages() throws -> [Message] {
        var messages: [Message] = []
        repeat {
            while let message = try buffer.next() { messages.append(message) }
        } while try buffer.receive(from: ours)
        while let message = try buffer.next() { messages.append(message) }
        return messages
    }

    private func assertFails(_ reason: String, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertThrowsError(try messages(), file: file, line: line) { error in
            XCTAssertTrue("\(error)".contains(reason), "\(error)", file: file, line: line)
        }
    }

    private func signal(_ text: String, descriptors: UInt32 = 0) -> [UInt8] {
        let message = RawMessage("s") { $0.text(text) }
        return (descriptors == 0 ? message : message.with(RawMessage.number(9, descriptors), for: 9)).bytes
    }

    private func text(_ message: Message) -> String? {
        var reader = message.reader
        return reader.string()
    }

    func testAMessageInPiecesOfOneByteIsRead() throws {
        let bytes = signal("one") + signal("two")
        var seen: [String?] = []
        for byte in bytes {
            send([byte])
            seen += try messages().map(text)
        }
        XCTAssertEqual(seen, ["one", "two"])
    }

    func testManyMessagesAreReadAtOnceAndKeptOnesStayAsTheyAre() throws {
        var kept: [Message] = []
        for round in 0..<50 {
            send((0..<100).flatMap { signal("\(round) \($0)") })
            let read = try messages()
            XCTAssertEqual(read.map(text), (0..<100).map { "\(round) \($0)" })
            kept.append(read[round])
        }
        XCTAssertEqual(kept.map(text), (0..<50).map { "\($0) \($0)" })
    }

    func testAHandledMessageBecomesTheNextOneUnlessItIsKept() throws {
        var kept: [Message] = []
        var seen: [String?] = []
        var objects: Set<ObjectIdentifier> = []
        for round in 0..<100 {
            send(signal("\(round)"))
            XCTAssertTrue(try buffer.receive(from: ours))
            var message = try XCTUnwrap(try buffer.next())
            seen.append(text(message))
            objects.insert(ObjectIdentifier(message))
            if round % 10 == 0 { kept.append(message) }
            buffer.recycle(&message)
        }
        XCTAssertEqual(seen, (0..<100).map { "\($0)" })
        XCTAssertEqual(kept.map(text), (0..<10).map { "\($0 * 10)" })
        XCTAssertLessThanOrEqual(objects.count, 11)
    }

    func testTheDescriptorsOfAHandledMessageAreClosed() throws {
        var ends: [Int32] = [-1, -1]
        XCTAssertEqual(pipe(&ends), 0)
        defer { close(ends[0]) }
        XCTAssertEqual(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0)
        send(signal("with one", descriptors: 1), [ends[1]])
        close(ends[1])
        XCTAssertTrue(try buffer.receive(from: ours))
        do {
            var message = try XCTUnwrap(try buffer.next())
            XCTAssertEqual(message.descriptors.count, 1)
            buffer.recycle(&message)
        }
        // Nothing can be written any more: the end of the pipe.
        var byte: UInt8 = 0
        XCTAssertEqual(read(ends[0], &byte, 1), 0)
    }

    func testAMillionEmptyMessagesAreRead() throws {
        var empty = RawMessage()
        empty.type = 9
        empty.fields = []
        let (bytes, socket) = (Array(repeatElement(empty.bytes, count: 1_000).joined()), theirs)
        let sender = Thread { for _ in 0..<1_000 { sendAll(bytes, [], to: socket) } }
        sender.start()
        var count = 0
        while count < 1_000_000 {
            while try buffer.next() != nil { count += 1 }
            if try !buffer.receive(from: ours) { waitForInput(ours) }
        }
        XCTAssertEqual(count, 1_000_000)
    }

    func testALongMessageIsReadAsItArrives() throws {
        let payload = (0..<20_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let bytes = RawMessage("ay") { writer in writer.array(alignment: 1) { $0.bytes += payload } }.bytes
        let (all, socket) = (signal("before") + bytes + signal("after"), theirs)
        let sender = Thread { sendAll(all, [], to: socket) }
        sender.start()
        var read: [Message] = []
        while read.count < 3 {
            read += try messages()
            waitForInput(ours, milliseconds: 1)
        }
        XCTAssertEqual(text(read[0]), "before")
        var reader = read[1].reader
        XCTAssertTrue(try XCTUnwrap(reader.bytes()) == payload)
        XCTAssertEqual(text(read[2]), "after")
    }

    func testALengthAloneUsesNoMemory() throws {
        var writer = RawWriter(bytes: [UInt8(ascii: "l"), 4, 0, 1])
        for number in [UInt32(1) << 27 - 4096, 1, 1024] { writer.number(number) }
        let before = try memorySize()
        send(writer.bytes)
        XCTAssertEqual(try messages().count, 0)
        send([UInt8](repeating: 0, count: 100_000))
        _ = try buffer.receive(from: ours)
        _ = try buffer.next()
        XCTAssertLessThan(try memorySize() - before, 1 << 26)
    }

    /// The bytes that the process has reserved, used or not.
    private func memorySize() throws -> Int {
        let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ").first
        return try XCTUnwrap(pages.flatMap { Int($0) }) * 4096
    }

    func testWhatIsNoMessageFailsWithTheReason() {
        send(signal("good") + [UInt8](repeating: UInt8(ascii: "x"), count: 16))
        XCTAssertEqual(try buffer.receive(from: ours), true)
        XCTAssertEqual(try buffer.next().map(text), "good")
        XCTAssertThrowsError(try buffer.next()) { error in
            XCTAssertEqual(
                "\(error)",
                "org.freedesktop.DBus.Error.Disconnected: The bus has sent a message that is not valid: "
                    + "it begins with 120, which is not a byte order.")
        }
    }

    func testTheEndInsideAMessageIsTheEnd() throws {
        send(Array(signal("cut").dropLast()))
        XCTAssertEqual(try messages().count, 0)
        close(theirs)
        theirs = -1
        assertFails("lost")
    }

    // MARK: Descriptors

    /// So many ends of pipes; the sender's copies are closed afterwards.
    private func withPipes(_ count: Int, _ body: ([Int32]) throws -> Void) rethrows {
        var all: [Int32] = []
        for _ in 0..<count {
            var pair: [Int32] = [-1, -1]
            XCTAssertEqual(pipe(&pair), 0)
            all += pair
        }
        defer { for end in all { close(end) } }
        try body(stride(from: 1, to: all.count, by: 2).map { all[$0] })
    }

    private func assertNoDescriptorStays(_ body: () throws -> Void) rethrows {
        let before = openDescriptors().count
        try body()
        XCTAssertEqual(openDescriptors().count, before)
    }

    func testDescriptorsThatNoArgumentNamesOrNoProgramReadsAreClosed() throws {
        try assertNoDescriptorStays {
            try withPipes(3) { ends in
                send(signal("named", descriptors: 2), ends)
                let read = try messages()
                XCTAssertEqual(read.map(\.descriptors.count), [2])
            }
        }
    }

    func testSurplusDescriptorsAreNotTakenForThoseOfTheNextMessage() throws {
        var last = RawMessage("h") { $0.number(UInt32(0)) }
        last.fields.append(RawMessage.number(9, 1))
        try assertNoDescriptorStays {
            try withPipes(3) { ends in
                // The rest of the first message arrives together with the second one.
                let first = signal("surplus", descriptors: 1)
                send(Array(first.prefix(20)), [ends[0], ends[1]])
                XCTAssertEqual(try messages().count, 0)
                send(Array(first.dropFirst(20)))
                send(last.bytes, [ends[2]])
                let read = try messages()
                XCTAssertEqual(read.count, 2)
                var reader = try XCTUnwrap(read.last).reader
                let descriptor = try XCTUnwrap(reader.descriptor())
                XCTAssertEqual(file(try XCTUnwrap(descriptor.rawValue)), file(ends[2]))
            }
        }
    }

    private func file(_ descriptor: Int32) -> ino_t {
        var status = stat()
        XCTAssertEqual(fstat(descriptor, &status), 0)
        return status.st_ino
    }

    func testDescriptorsThatHaveNotArrivedAreAnError() {
        assertNoDescriptorStays {
            withPipes(1) { ends in
                send(signal("two", descriptors: 2), ends)
                assertFails("1 of its file descriptors have not arrived")
                buffer = ReceiveBuffer()
            }
        }
    }

    func testMoreDescriptorsThanAMessageCanHaveAreAnError() throws {
        try assertNoDescriptorStays {
            try withPipes(1) { ends in
                let many = Array(repeating: ends[0], count: 253)
                let bytes = signal("long")
                send([bytes[0]], many)
                XCTAssertEqual(try messages().count, 0)
                send([bytes[1]], many)
                assertFails("506 file descriptors")
                buffer = ReceiveBuffer()
            }
        }
    }

    func testADescriptorForWhichThereIsNoRoomIsAnError() throws {
        try assertNoDescriptorStays {
            try withPipes(1) { ends in
                send(signal("no room", descriptors: 1), ends)
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
                defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
                XCTAssertThrowsError(try buffer.receive(from: ours)) { error in
                    XCTAssertEqual(error as? DBusError, DBusError(.descriptors(EMFILE)))
                }
            }
        }
    }
}

/// Waits until the socket has input, or the time has passed.
private func waitForInput(_ socket: Int32, milliseconds: Int32 = 1_000) {
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    poll(&entry, 1, milliseconds)
}

/// Sends all bytes, the descriptors with the first of them.
func sendAll(_ bytes: [UInt8], _ descriptors: [Int32], to socket: Int32) {
    var sent = 0
    if !descriptors.isEmpty {
        // A control message by hand: its length, level and type, and the descriptors; Swift does not import the macros.
        let length = 16 + 4 * descriptors.count
        var control = [UInt8](repeating: 0, count: (length + 7) & ~7)
        control.withUnsafeMutableBytes { control in
            control.storeBytes(of: length, as: Int.self)
            control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
            control.storeBytes(of: 1, toByteOffset: 12, as: Int32.self)
            for (index, descriptor) in descriptors.enumerated() {
                control.storeBytes(of: descriptor, toByteOffset: 16 + 4 * index, as: Int32.self)
            }
        }
        var copy = bytes
        copy.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                withUnsafeMutablePointer(to: &part) { part in
                    var header = msghdr()
                    header.msg_iov = part
                    header.msg_iovlen = 1
                    header.msg_control = control.baseAddress
                    header.msg_controllen = control.count
                    sent = sendmsg(socket, &header, Int32(MSG_NOSIGNAL))
                }
            }
        }
        XCTAssertGreaterThan(sent, 0)
    }
    while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes {
            Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else { return }
        sent += count
    }
}
