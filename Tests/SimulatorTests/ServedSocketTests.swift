import BlueCapDBus
import BlueCapFutures
import Glibc
import BlueCapReactor
import XCTest

@testable import BlueZSimulator

/// `AcquireNotify` and `AcquireWrite`, called by BlueZ on a program that serves.
final class ServedSocketTests: XCTestCase {
    private static let objects = [
        ServingProgram.service("s0", "180d"),
        ServingProgram.characteristic("s0/c0", "2a37", ["notify", "indicate"], sockets: ["NotifyAcquired"]),
        ServingProgram.characteristic(
            "s0/c1", "2a39", ["write", "write-without-response"], sockets: ["WriteAcquired"]),
        ServingProgram.connectable,
    ]

    /// The program's ends of the sockets that it has given away.
    private final class Ends: Sendable {
        private let held = Locked<[OwnedDescriptor]>([])

        func keep(_ descriptor: OwnedDescriptor) { held.withLock { $0.append(descriptor) } }
        var all: [OwnedDescriptor] { held.withLock { $0 } }

        /// - Parameter place: The socket's number in the order in which they were given; the last one without.
        func send(_ bytes: [UInt8], at place: Int? = nil) {
            guard let descriptor = (place.map { all[$0] } ?? all.last)?.rawValue else {
                return XCTFail("there is no socket")
            }
            XCTAssertNil(bytes.withUnsafeBytes { sendPacket($0, to: descriptor) })
        }

        func receive(at place: Int? = nil) -> [[UInt8]] {
            guard let descriptor = (place.map { all[$0] } ?? all.last)?.rawValue else { return [] }
            var packets: [[UInt8]] = []
            _ = PacketBuffer(packetSize: 512).receive(descriptor) { packets.append(Array($0)) }
            return packets.filter { !$0.isEmpty }
        }

        var isClosed: Bool { all.last?.rawValue.map(isHungUp) ?? true }
        var areClosed: [Bool] { all.map { $0.rawValue.map(isHungUp) ?? true } }
    }

    private func scene(
        _ bluez: BlueZVersion = .v5_66, isBonded: Bool = false
    ) -> (Simulator, ServingProgram, CentralLink, Ends) {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let program = ServingProgram(simulator, Self.objects)
        let ends = Ends()
        for member in ["AcquireNotify", "AcquireWrite"] {
            program.answer(member) { message in
                var pair: [Int32] = [-1, -1]
                let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { return nil }
                ends.keep(OwnedDescriptor(owning: pair[0]))
                let theirs = OwnedDescriptor(owning: pair[1])
                return .reply(to: message) { writer in
                    writer.descriptor(theirs.rawValue ?? -1)
                    writer.uint16(100)
                }
            }
        }
        program.serve()
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", mtu: 100, isBonded: isBonded))
        simulator.advance(by: 1)
        _ = program.takeCalls()
        return (simulator, program, link, ends)
    }

    /// Three centrals that have subscribed one after another, with the second one for indications.
    private func subscribed(_ bluez: BlueZVersion) -> (Simulator, ServingProgram, [CentralLink], Ends) {
        let (simulator, program, link, ends) = scene(bluez)
        let others = [2, 3].map { simulator.connect(VirtualCentral(VirtualAddress("C0:FF:EE:00:CE:0\($0)")!)) }
        simulator.advance(by: 1)
        for (place, link) in ([link] + others).enumerated() {
            link.subscribe(to: "2A37", indications: place == 1)
            simulator.run()
        }
        return (simulator, program, [link] + others, ends)
    }

    // MARK: Versions

    func testEachVersionHasSocketsOfItsOwnKind() {
        let rows: [(minor: Int, sockets: Int, received: [[UInt8]], confirmation: [String], packets: [[UInt8]])] = [
            (66, 1, [[1], [1], [1]], ["c0 Confirm"], []), (68, 1, [[1], [1], [1]], ["c0 Confirm"], []),
            (69, 3, [[1], [1], [1]], ["c0 Confirm"], []), (73, 3, [[1], [1], [1]], ["c0 Confirm"], []),
            (76, 3, [[], [1], []], [], []), (79, 3, [[], [1], []], [], []),
            (80, 3, [[], [1], []], [], [[1]]), (87, 3, [[], [1], []], [], [[1]]),
        ]
        for row in rows {
            let (simulator, program, links, ends) = subscribed(BlueZVersion(5, row.minor))
            XCTAssertEqual(
                program.takeCalls(),
                Array(
                    [
                        "c0 AcquireNotify {link=LE mtu=100}", "c0 AcquireNotify {link=LE mtu=247}",
                        "c0 AcquireNotify {link=LE mtu=247}",
                    ].prefix(row.sockets)), "5.\(row.minor)")
            let place = min(1, ends.all.count - 1)
            ends.send([1], at: place)
            simulator.advance(by: 0.1)
            XCTAssertEqual(links.map { $0.values.flatMap(\.bytes) }, row.received, "5.\(row.minor)")
            XCTAssertEqual(program.takeCalls(), row.confirmation, "5.\(row.minor)")
            XCTAssertEqual(ends.receive(at: place), row.packets, "5.\(row.minor)")
        }
    }

    func testAt555NotificationsOfACharacteristicThatIndicatesAreLost() {
        let (simulator, program, links, ends) = subscribed(BlueZVersion(5, 55))
        ends.send([1])
        simulator.advance(by: 0.1)
        XCTAssertEqual(program.takeCalls().last, "c0 Confirm")
        XCTAssertEqual(links.map { $0.values.map(\.bytes) }, [[], [[1]], []])
    }

    func testASignalledValueReachesEverySubscriberOnceOnEachVersion() {
        for bluez in [BlueZVersion(5, 56), .v5_66, .v5_72, .v5_82, .v5_87] {
            let (simulator, program, links, _) = subscribed(bluez)
            _ = program.takeCalls()
            program.notify("/app/s0/c0", [1])
            program.notify("/app/s0/c0", [2])
            simulator.advance(by: 0.1)
            XCTAssertEqual(links.map { $0.values.map(\.bytes) }, Array(repeating: [[1], [2]], count: 3), "\(bluez)")
            program.expectCalls("c0 Confirm", "c0 Confirm", note: "\(bluez)")
        }
    }

    func testACentralThatUnsubscribesClosesItsOwnSocket() {
        for bluez in [BlueZVersion.v5_72, .v5_82] {
            let (simulator, program, links, ends) = subscribed(bluez)
            _ = program.takeCalls()
            links[1].unsubscribe(from: "2A37")
            simulator.run()
            XCTAssertEqual(ends.areClosed, [false, true, false])
            links[1].subscribe(to: "2A37")
            program.expectCalls("c0 AcquireNotify {link=LE mtu=247}")
        }
    }

    /// bluez#1452
    func testACentralThatLeavesClosesTheOldestSocketToo() {
        for (bluez, closed) in [
            (BlueZVersion.v5_66, [false]), (.v5_72, [true, false, true]), (.v5_82, [true, false, true]),
        ] {
            let (simulator, program, links, ends) = subscribed(bluez)
            _ = program.takeCalls()
            links[2].disconnect()
            simulator.run()
            XCTAssertEqual(ends.areClosed, closed, "\(bluez)")
            program.expectCalls(note: "\(bluez)")
            program.notify("/app/s0/c0", [1])
            simulator.advance(by: 0.1)
            XCTAssertEqual(links.map { $0.values.map(\.bytes) }, [[[1]], [[1]], []], "\(bluez)")
        }
    }

    func testABondedCentralThatReturnsIsStillSubscribedWithoutASocketOfItsOwn() {
        for (bluez, isClosed) in [(BlueZVersion.v5_66, false), (.v5_72, true), (.v5_82, true)] {
            let (simulator, program, link, ends) = scene(bluez, isBonded: true)
            link.subscribe(to: "2A37")
            simulator.run()
            link.disconnect()
            simulator.run()
            XCTAssertEqual(ends.areClosed, [isClosed], "\(bluez)")
            let again = simulator.connect(link.central)
            simulator.advance(by: 1)
            _ = program.takeCalls()
            again.subscribe(to: "2A37")
            program.expectCalls(note: "\(bluez)")
            program.notify("/app/s0/c0", [1])
            if !isClosed { ends.send([2]) }
            simulator.advance(by: 0.1)
            XCTAssertEqual(again.values.map(\.bytes), isClosed ? [[1]] : [[1], [2]], "\(bluez)")
            again.unsubscribe(from: "2A37")
            again.subscribe(to: "2A37")
            simulator.run()
            XCTAssertTrue(program.takeCalls().contains("c0 AcquireNotify {link=LE mtu=100}"), "\(bluez)")
        }
    }

    func testEachCentralHasAWriteSocketFrom569On() {
        for (bluez, sockets) in [(BlueZVersion(5, 68), 1), (BlueZVersion(5, 69), 2)] {
            let (simulator, program, link, ends) = scene(bluez)
            let other = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
            simulator.advance(by: 1)
            for link in [link, other] {
                link.write([1], to: "2A39")
                simulator.run()
            }
            XCTAssertEqual(ends.all.count, sockets, "\(bluez)")
            XCTAssertEqual(program.takeCalls().count, sockets, "\(bluez)")
        }
    }

    // MARK: All versions

    func testValuesComeOutOfTheSocketForAllSubscribers() {
        let (simulator, program, link, ends) = scene()
        let other = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
        simulator.advance(by: 1)
        link.subscribe(to: "2A37")
        simulator.run()
        other.subscribe(to: "2A37", indications: true)
        program.expectCalls("c0 AcquireNotify {link=LE mtu=100}")
        ends.send([1])
        ends.send([2])
        simulator.advance(by: 0.1)
        XCTAssertEqual(link.values.map(\.bytes), [[1], [2]])
        XCTAssertEqual(other.values.map(\.bytes), [[1], [2]])
        program.expectCalls("c0 Confirm", "c0 Confirm")
    }

    func testTheLastSubscriberClosesTheSocketWithoutAWord() {
        let (simulator, program, link, ends) = scene()
        link.subscribe(to: "2A37")
        simulator.run()
        XCTAssertFalse(ends.isClosed)
        link.unsubscribe(from: "2A37")
        simulator.run()
        XCTAssertTrue(ends.isClosed)
        link.subscribe(to: "2A37")
        simulator.run()
        XCTAssertFalse(ends.isClosed)
        link.disconnect()
        simulator.run()
        XCTAssertTrue(ends.isClosed)
        program.expectCalls("c0 AcquireNotify {link=LE mtu=100}", "c0 AcquireNotify {link=LE mtu=100}")
    }

    func testAProgramThatGivesNoSocketReceivesStartNotify() {
        let (_, program, link, _) = scene()
        program.answer("AcquireNotify") {
            .error(to: $0, .bluez("NotSupported", "no"))
        }
        link.subscribe(to: "2A37")
        program.expectCalls("c0 AcquireNotify {link=LE mtu=100}", "c0 StartNotify")
        program.notify("/app/s0/c0", [3])
        XCTAssertEqual(link.values.map(\.bytes), [[3]])
    }

    func testWritesGoIntoTheSocketAllOfThem() {
        let (simulator, program, link, ends) = scene()
        let writes = [
            link.write([1], to: "2A39", type: .command), link.write([2], to: "2A39"),
            link.write([3], to: "2A39", type: .command),
        ]
        simulator.run()
        XCTAssertEqual(writes.map(\.bytes), [[], [], []])
        XCTAssertEqual(Set(ends.receive()), [[1], [2], [3]])
        program.expectCalls("c1 AcquireWrite {link=LE mtu=100}")
    }

    func testAProgramThatGivesNoSocketIsWrittenTo() {
        let (simulator, program, link, _) = scene()
        program.answer("AcquireWrite") {
            .error(to: $0, DBusError(name: DBusError.Name.unknownMethod, message: "no"))
        }
        let write = link.write([1], to: "2A39")
        link.write([2], to: "2A39", type: .command)
        simulator.run()
        XCTAssertEqual(write.bytes, [])
        program.expectCalls(
            "c1 AcquireWrite {link=LE mtu=100}", "c1 WriteValue 01 {link=LE mtu=100}",
            "c1 WriteValue 02 {link=LE mtu=100}")
    }

    func testASocketThatTheProgramClosesIsAskedForAgain() {
        let (simulator, program, link, ends) = scene()
        link.write([1], to: "2A39")
        simulator.run()
        ends.all[0].close()
        simulator.advance(by: 0.1)
        link.write([2], to: "2A39")
        simulator.run()
        XCTAssertEqual(ends.receive(), [[2]])
        XCTAssertEqual(program.takeCalls().count, 2)
    }

    func testSocketsEndWithTheApplication() {
        let (simulator, program, link, ends) = scene()
        link.write([1], to: "2A39")
        link.subscribe(to: "2A37")
        simulator.run()
        XCTAssertNil(program.unregister())
        simulator.run()
        for end in ends.all { XCTAssertTrue(end.rawValue.map(isHungUp) ?? true) }
    }
}
