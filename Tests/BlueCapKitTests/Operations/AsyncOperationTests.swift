import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Reading, writing and pairing in `async` functions, outside of a run.
final class AsyncOperationTests: XCTestCase {
    private let place = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
    private let answers = ChosenAnswers()

    private func stage(_ security: AttributeSecurity = .none) throws -> AttributeStage {
        let characteristic = VirtualCharacteristic("2A38", [.read, .write], value: [1], security: security)
        let stage = try AttributeStage(
            [VirtualService("180D", characteristics: [characteristic])], link: VirtualLink(callLatency: 0.5),
            behavior: answers)
        stage.connect()
        return stage
    }

    /// The outcome of a task that runs in virtual time.
    private func outcome<T: Sendable>(
        _ stage: AttributeStage, _ work: @escaping @Sendable (Peripheral) async throws -> T
    ) async -> Result<T, any Error> {
        let peripheral = stage.peripheral
        let task = Task(executorPreference: stage.simulator.taskExecutor) { try await work(peripheral) }
        await stage.simulator.advance(by: 60)
        return await task.result
    }

    func testAWriteAndAReadWait() async throws {
        let stage = try stage()
        let value = try await outcome(stage) { [place] peripheral -> UInt8 in
            try await peripheral.write(Data([7]), to: place)
            try await peripheral.write(UInt8(8), to: place, timeout: .seconds(5))
            let bytes: Data = try await peripheral.read(place)
            XCTAssertEqual(bytes, Data([8]))
            return try await peripheral.read(place, timeout: .seconds(5))
        }.get()
        XCTAssertEqual(value, 8)
        XCTAssertEqual(answers.written, [[7], [8]])
    }

    func testARefusedWriteThrows() async throws {
        answers.answerWrites(to: "2A38", .error(0x80))
        let result = await outcome(try stage()) { [place] in try await $0.write(Data([7]), to: place) }
        XCTAssertThrowsError(try result.get()) { error in
            guard case CharacteristicError.writeFailed = error else { return XCTFail("\(error)") }
        }
    }

    func testTheTimeLimitIsThatOfTheDuration() async throws {
        let stage = try stage()
        let begin = stage.simulator.seconds
        let ended = Locked(0.0)
        let simulator = stage.simulator
        let result = await outcome(stage) { [place] peripheral in
            defer { ended.withLock { $0 = simulator.seconds } }
            return try await peripheral.read(place, timeout: .milliseconds(250)) as Data
        }
        XCTAssertThrowsError(try result.get()) { XCTAssertEqual($0 as? CharacteristicError, .readTimeout) }
        XCTAssertEqual(ended.withLock { $0 } - begin, 0.25, accuracy: 0.01)
    }

    func testACancelledTaskThrowsAtOnceAndTheWriteReachesThePeripheral() async throws {
        let stage = try stage()
        let peripheral = stage.peripheral
        let place = place
        let task = Task(executorPreference: stage.simulator.taskExecutor) {
            try await peripheral.write(Data([7]), to: place)
        }
        await stage.simulator.advance(by: 0.1)
        await stage.simulator.expectCancellation(of: task)
        await stage.simulator.advance(by: 1)
        XCTAssertEqual(answers.written, [[7]])
    }

    func testAPairingWithoutAPolicyThrows() async throws {
        let result = await outcome(try stage()) { try await $0.pair(timeout: .seconds(10)) }
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is PairingError, "\($0)") }
    }
}
