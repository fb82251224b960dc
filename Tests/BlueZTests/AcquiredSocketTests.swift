import BlueCapDBus
import BlueCapFutures
import Glibc
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

final class AcquiredSocketTests: XCTestCase {
    private let loop = ManualLoop()
    private var peer: OwnedDescriptor?
    private let batches = Locked<[[Data]]>([])
    private let closings = Locked(0)
    private let writes = Locked<[String]>([])

    /// Returns a socket that is connected to `peer`.
    private func makeSocket(mtu: Int = 23) throws -> AcquiredSocket {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        XCTAssertEqual(socketpair(AF_UNIX, kind, 0, &ends), 0)
        peer = OwnedDescriptor(owning: ends[1])
        return AcquiredSocket(OwnedDescriptor(owning: ends[0]), mtu: mtu, loop: loop)
    }

    /// Runs on the loop, and what follows.
    private func onLoop(_ work: @escaping @Sendable () -> Void) {
        loop.post(work)
        loop.run()
    }

    private func start(_ socket: AcquiredSocket) {
        let batches = batches
        let closings = closings
        onLoop {
            socket.start(
                onPackets: { packets in batches.withLock { $0.append(packets) } },
                onClosed: { closings.withLock { $0 += 1 } })
        }
    }

    private func sendFromPeer(_ packets: [UInt8]...) throws {
        let peer = try XCTUnwrap(peer?.rawValue)
        for packet in packets { XCTAssertNil(packet.withUnsafeBytes { sendPacket($0, to: peer) }) }
    }

    private func write(_ value: [UInt8], to socket: AcquiredSocket, times: Int = 1) {
        let writes = writes
        onLoop {
            for _ in 0..<times {
                socket.send(Data(value)) { result in
                    writes.withLock { list in
                        switch result {
                        case .success: list.append("ok")
                        case .failure(.socketClosed): list.append("closed")
                        case .failure(let error): list.append("\(error)")
                        }
                    }
                }
            }
        }
    }

    private var packets: [Data] { batches.withLock { $0.flatMap { $0 } } }

    // MARK: Reading

    func testPacketsOfAWakeComeTogetherInTheirOrder() throws {
        let socket = try makeSocket()
        start(socket)
        try sendFromPeer([1], [2, 2], [3])
        loop.run()
        XCTAssertEqual(batches.withLock { $0 }, [[Data([1]), Data([2, 2]), Data([3])]])
        XCTAssertEqual(closings.withLock { $0 }, 0)
    }

    func testWhatCameBeforeReadingBeganIsRead() throws {
        let socket = try makeSocket()
        try sendFromPeer([1], [2])
        start(socket)
        XCTAssertEqual(packets, [Data([1]), Data([2])])
    }

    func testAnEmptyValueIsAValueAndNotTheEnd() throws {
        let socket = try makeSocket()
        start(socket)
        try sendFromPeer([1], [], [2])
        loop.run()
        try sendFromPeer([])
        loop.run()
        XCTAssertEqual(packets, [Data([1]), Data(), Data([2]), Data()])
        XCTAssertEqual(closings.withLock { $0 }, 0)
    }

    func testAllPacketsAreReadBeforeTheEndIsReported() throws {
        let socket = try makeSocket()
        try sendFromPeer([1], [2], [3])
        peer?.close()
        let order = Locked<[String]>([])
        onLoop {
            socket.start(
                onPackets: { packets in order.withLock { $0.append("\(packets.count)") } },
                onClosed: { order.withLock { $0.append("closed") } })
        }
        XCTAssertEqual(order.withLock { $0 }, ["3", "closed"])
        loop.run()
        XCTAssertEqual(order.withLock { $0.count }, 2)
    }

    func testAHangUpWithoutPacketsIsReportedOnce() throws {
        let socket = try makeSocket()
        start(socket)
        peer?.close()
        loop.run()
        loop.run()
        XCTAssertEqual(closings.withLock { $0 }, 1)
        XCTAssertEqual(packets, [])
        onLoop { socket.close() }
        XCTAssertEqual(closings.withLock { $0 }, 1)
    }

    func testThousandsOfPacketsComeCompleteAndInOrder() throws {
        let socket = try makeSocket(mtu: 517)
        start(socket)
        let peer = try XCTUnwrap(peer?.rawValue)
        var sent = 0
        while sent < 20_000 {
            let number = UInt32(sent)
            let packet = withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: 7, count: sent % 500)
            if packet.withUnsafeBytes({ sendPacket($0, to: peer) }) == nil { sent += 1 } else { loop.run() }
        }
        loop.run()
        let numbers = packets.map { packet in
            packet.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
        }
        XCTAssertEqual(numbers, Array(0..<20_000))
        XCTAssertTrue(packets.enumerated().allSatisfy { $0.element.count == 4 + $0.offset % 500 })
    }

    func testAKeptValueDoesNotChangeWhenLaterPacketsCome() throws {
        let socket = try makeSocket()
        let (kept, all) = (Locked<[Data]>([]), Locked<[UInt8]>([]))
        onLoop {
            socket.start(
                onPackets: { packets in
                    for packet in packets {
                        all.withLock { $0.append(packet[0]) }
                        if packet[0] % 3 == 0 { kept.withLock { $0.append(packet) } }
                    }
                }, onClosed: {})
        }
        // In groups that are larger and smaller than one system call receives; with and without memory of their own.
        let numbers = (0..<250).map { UInt8($0) }
        for range in [0..<40, 40..<41, 41..<43, 43..<110, 110..<150, 150..<250] {
            for number in numbers[range] {
                try sendFromPeer([UInt8](repeating: number, count: number % 2 == 0 ? 20 : 5))
            }
            loop.run()
        }
        XCTAssertEqual(all.withLock { $0 }, numbers)
        let expected = numbers.filter { $0 % 3 == 0 }.map { Data(repeating: $0, count: $0 % 2 == 0 ? 20 : 5) }
        XCTAssertEqual(kept.withLock { $0 }, expected)
    }

    func testAValueDoesNotChangeWhileAnotherThreadReadsIt() throws {
        let socket = try makeSocket()
        let (reader, mixed, count) = (DispatchQueue(label: "reader"), Locked(0), Locked(0))
        onLoop {
            socket.start(
                onPackets: { packets in
                    reader.async {
                        let torn = packets.filter { packet in !packet.allSatisfy { $0 == packet[0] } }
                        mixed.withLock { $0 += torn.count }
                        count.withLock { $0 += packets.count }
                    }
                }, onClosed: {})
        }
        let peer = try XCTUnwrap(peer?.rawValue)
        var sent = 0
        while sent < 20_000 {
            let packet = [UInt8](repeating: UInt8(sent % 251), count: 200)
            if packet.withUnsafeBytes({ sendPacket($0, to: peer) }) == nil { sent += 1 } else { loop.run() }
        }
        loop.run()
        reader.sync {}
        XCTAssertEqual(count.withLock { $0 }, 20_000)
        XCTAssertEqual(mixed.withLock { $0 }, 0)
    }

    func testAfterClosingNothingIsReported() throws {
        let socket = try makeSocket()
        start(socket)
        try sendFromPeer([1])
        onLoop { socket.close() }
        peer?.close()
        loop.run()
        XCTAssertEqual(closings.withLock { $0 }, 0)
        XCTAssertLessThanOrEqual(packets.count, 1)
    }

    func testReleasingItClosesIt() throws {
        do {
            let socket = try makeSocket()
            start(socket)
        }
        loop.run()
        XCTAssertTrue(isHungUp(try XCTUnwrap(peer?.rawValue)))
    }

    func testAnOwnerMayCloseItInsideACallback() throws {
        let socket = try makeSocket()
        // More than one system call receives.
        for number in 0..<100 { try sendFromPeer([UInt8(number)]) }
        peer?.close()
        let (closings, calls) = (closings, Locked(0))
        onLoop {
            socket.start(
                onPackets: { [weak socket] _ in
                    calls.withLock { $0 += 1 }
                    socket?.close()
                }, onClosed: { closings.withLock { $0 += 1 } })
        }
        loop.run()
        XCTAssertEqual(calls.withLock { $0 }, 1)
        XCTAssertEqual(closings.withLock { $0 }, 0)
    }

    // MARK: Writing

    func testAValueArrivesAsOnePacket() throws {
        let socket = try makeSocket()
        write([1, 2, 3], to: socket)
        XCTAssertEqual(writes.withLock { $0 }, ["ok"])
        XCTAssertEqual(try receiveAll(), [[1, 2, 3]])
    }

    func testAFullSocketHoldsTheWriterBackAndKeepsTheOrder() throws {
        let socket = try makeSocket()
        start(socket)
        // More than any kernel's queue holds, in number or in bytes.
        let count = 5_000
        let values = (0..<count).map { number in [UInt8(number & 255), UInt8(number >> 8)] }
        for value in values { write(value, to: socket) }
        let accepted = writes.withLock { $0.count }
        XCTAssertLessThan(accepted, count)
        XCTAssertGreaterThan(accepted, 0)
        var received: [[UInt8]] = []
        while received.count < count {
            let more = try receiveAll()
            guard !more.isEmpty else { return XCTFail("only \(received.count) arrived") }
            received += more
            loop.run()
        }
        XCTAssertEqual(received, values)
        XCTAssertEqual(writes.withLock { $0 }, [String](repeating: "ok", count: count))
    }

    func testWritesThatWaitFailWhenTheOtherEndCloses() throws {
        let socket = try makeSocket()
        start(socket)
        write([1], to: socket, times: 5_000)
        let accepted = writes.withLock { $0.count }
        peer?.close()
        loop.run()
        XCTAssertEqual(writes.withLock { $0.count }, 5_000)
        XCTAssertTrue(writes.withLock { $0.dropFirst(accepted).allSatisfy { $0 == "closed" } })
        XCTAssertEqual(closings.withLock { $0 }, 1)
        write([2], to: socket)
        XCTAssertEqual(writes.withLock { $0.last }, "closed")
    }

    func testWritesThatWaitFailWhenTheOwnerCloses() throws {
        let socket = try makeSocket()
        write([1], to: socket, times: 5_000)
        let accepted = writes.withLock { $0.count }
        onLoop { socket.close() }
        XCTAssertEqual(writes.withLock { $0.count }, 5_000)
        XCTAssertEqual(writes.withLock { $0[accepted] }, "closed")
    }

    private func receiveAll() throws -> [[UInt8]] {
        let peer = try XCTUnwrap(peer?.rawValue)
        var received: [[UInt8]] = []
        let buffer = PacketBuffer(packetSize: 64)
        while case .packets = buffer.receive(peer, { received.append(Array($0)) }) {}
        return received
    }
}
