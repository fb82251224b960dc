import DBus
import Futures
import Glibc
import Reactor
import XCTest

@testable import BlueZSimulator

/// `AcquireNotify` and `AcquireWrite` as a program that serves is asked for them.
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

        func send(_ bytes: [UInt8]) {
            guard let descriptor = all.last?.rawValue else { return XCTFail("there is no socket") }
            XCTAssertNil(bytes.withUnsafeBytes { sendPacket($0, to: descriptor) })
        }

        func receive() -> [[UInt8]] {
            guard let descriptor = all.last?.rawValue else { return [] }
            var packets: [[UInt8]] = []
            _ = PacketBuffer(packetSize: 512).receive(descriptor) { packets.append(Array($0)) }
            return packets.filter { !$0.isEmpty }
        }

        var isClosed: Bool { all.last?.rawValue.map(isHungUp) ?? true }
    }

    private func scene() -> (Simulator, ServingProgram, CentralLink, Ends) {
        let simulator = Simulator.inProcess(room: .empty)
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
        XCTAssertNil(program.register())
        XCTAssertNil(program.advertise())
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", mtu: 100))
        simulator.advance(by: 1)
        _ = program.takeCalls()
        return (simulator, program, link, ends)
    }

    func testValuesComeOutOfTheSocketForAllSubscribers() {
        let (simulator, program, link, ends) = scene()
        let other = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
        simulator.advance(by: 1)
        link.subscribe(to: "2A37")
        simulator.run()
        other.subscribe(to: "2A37", indications: true)
        simulator.run()
        XCTAssertEqual(program.takeCalls(), ["c0 AcquireNotify {link=LE mtu=100}"])
        ends.send([1])
        ends.send([2])
        simulator.advance(by: 0.1)
        XCTAssertEqual(link.values.map(\.bytes), [[1], [2]])
        XCTAssertEqual(other.values.map(\.bytes), [[1], [2]])
        XCTAssertEqual(program.takeCalls(), ["c0 Confirm", "c0 Confirm"])
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
        XCTAssertEqual(
            program.takeCalls(), ["c0 AcquireNotify {link=LE mtu=100}", "c0 AcquireNotify {link=LE mtu=100}"])
    }

    func testAProgramThatGivesNoSocketIsToldToStart() {
        let (simulator, program, link, _) = scene()
        program.answer("AcquireNotify") {
            .error(to: $0, DBusError(name: "org.bluez.Error.NotSupported", message: "no"))
        }
        link.subscribe(to: "2A37")
        simulator.run()
        XCTAssertEqual(program.takeCalls(), ["c0 AcquireNotify {link=LE mtu=100}", "c0 StartNotify"])
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
        XCTAssertEqual(program.takeCalls(), ["c1 AcquireWrite {link=LE mtu=100}"])
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
        XCTAssertEqual(
            program.takeCalls(),
            [
                "c1 AcquireWrite {link=LE mtu=100}", "c1 WriteValue 01 {link=LE mtu=100}",
                "c1 WriteValue 02 {link=LE mtu=100}",
            ])
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
