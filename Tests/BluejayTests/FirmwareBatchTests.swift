import Bluejay
import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

/// A long batch as of a firmware update: commands with responses in fragments, chunks that are written, values that are
/// read, in a fixed order. Each response takes a random time.
final class FirmwareBatchTests: BluejayCase, @unchecked Swift.Sendable {
    private static let operations = 2_000

    /// One operation of the batch.
    private enum Step: Equatable {
        /// Asks for that many bytes, which come in fragments.
        case command(UInt16, length: Int)
        case chunk(UInt16)
        case read(UInt16)

        /// The operation with this number, with a random length if it is a command.
        init(_ number: Int, _ random: inout TestRandom) {
            switch number % 4 {
            case 0: self = .command(UInt16(number), length: Int.random(in: 1...60, using: &random))
            case 1, 2: self = .chunk(UInt16(number))
            default: self = .read(UInt16(number))
            }
        }
    }

    private static func answer(_ number: UInt16, length: Int) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: Int(number) &* 31 &+ $0) }
    }

    /// Runs the steps from the one with the number `first`, and notes how many have succeeded.
    private static func run(
        _ steps: [Step], _ peripheral: SynchronizedPeripheral, from first: Int, _ progress: Progress
    ) throws {
        for number in first..<steps.count {
            switch steps[number] {
            case .command(let id, let length):
                var assembled = Data()
                try peripheral.writeAndAssemble(
                    writeTo: control, value: Bluejay.combine(sendables: [UInt8(0x3A), id, UInt8(length)]),
                    listenTo: answers, expectedLength: length, timeout: .seconds(20)
                ) { (data: Data) in
                    assembled = data
                    return .done
                }
                guard [UInt8](assembled) == answer(id, length: length) else { throw Wrong(number: number) }
            case .chunk(let id):
                try peripheral.write(to: control, value: id)
            case .read:
                _ = try peripheral.read(from: location) as UInt8
            }
            progress.done = number + 1
        }
    }

    private struct Wrong: Error { let number: Int }

    func testTwoThousandOperationsGoInTheirOrderThroughADisconnection() {
        var random = TestRandom(self)
        let steps = (0..<Self.operations).map { Step($0, &random) }
        let device = Device(simulator, random.split())
        start()
        simulator.add(Self.virtual(), behavior: device)
        let identifier = find()
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        expect("connect Strap 1")
        let observer = Observer(seen)
        bluejay.register(observer: observer)

        let progress = Progress()
        bluejay.run(backgroundTask: { try Self.run(steps, $0, from: 0, progress) }) { [seen] in seen.note("run", $0) }
        eventually("the middle", limit: 3_600, step: 0.05) { progress.done >= Self.operations / 2 }
        simulator.simulateLinkLoss(of: Self.address)

        // As documented: the operations fail, the completion is called, the observers are called, and Bluejay
        // reconnects.
        expect("connected Strap 1")
        let stopped = progress.done
        XCTAssertLessThan(stopped, Self.operations)
        eventually("the connection again") { seen.texts.filter { $0 == "connected Strap 1" }.count == 2 }
        XCTAssertEqual(
            seen.texts,
            [
                "connect Strap 1", "available true", "connected Strap 1", "run notConnected", "disconnected Strap 1",
                "connected Strap 1",
            ])

        bluejay.run(backgroundTask: { try Self.run(steps, $0, from: stopped, progress) }) { [seen] in
            seen.note("run", $0)
        }
        eventually("the end", limit: 3_600, step: 0.05) { seen.texts.last == "run ()" }
        XCTAssertEqual(progress.done, Self.operations)

        // What the peripheral has got: each step once, in its order; the one in which the link fell perhaps twice.
        var received = device.received
        let wanted = steps.compactMap { step -> [UInt8]? in
            switch step {
            case .command(let id, let length): [0x3A] + id.bytes + [UInt8(length)]
            case .chunk(let id): id.bytes
            case .read: nil
            }
        }
        if let twice = received.indices.dropFirst().first(where: { received[$0] == received[$0 - 1] }) {
            received.remove(at: twice)
        }
        XCTAssertEqual(received, wanted)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A3A"), at: Self.address), [])
    }
}

extension UInt16 {
    fileprivate var bytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(self >> 8)] }
}

// Unchecked: written by the task, and read by the test while that waits.
private final class Progress: @unchecked Swift.Sendable {
    var done = 0
}

/// Responds to commands in fragments, each after a random time.
// Unchecked: touched on the simulator's loop, which the test's thread drives.
private final class Device: PeripheralBehavior, @unchecked Swift.Sendable {
    private let simulator: Simulator
    private var random: TestRandom
    private(set) var received: [[UInt8]] = []

    init(_ simulator: Simulator, _ random: TestRandom) {
        self.simulator = simulator
        self.random = random
    }

    private var delay: TimeInterval { TimeInterval.random(in: 0...0.08, using: &random) }

    func read(
        _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: TimeInterval
    ) -> AttributeAnswer { .value(value, after: delay) }

    func write(
        _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
        at seconds: TimeInterval
    ) -> AttributeAnswer {
        received.append(bytes)
        if bytes.count == 4, bytes[0] == 0x3A {
            let number = UInt16(bytes[1]) | UInt16(bytes[2]) << 8
            var rest = (0..<Int(bytes[3])).map { UInt8(truncatingIfNeeded: Int(number) &* 31 &+ $0) }[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...20, using: &random)
                simulator.notify(
                    peripheral.address, characteristic: .uuid("2A3A"), value: Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
        }
        return AttributeAnswer(.success([]), after: delay)
    }
}
