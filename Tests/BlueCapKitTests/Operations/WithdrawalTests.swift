import BlueCapFutures
import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// What becomes of an operation when the task that waits for it is cancelled.
final class WithdrawalTests: XCTestCase {
    private let answers = ChosenAnswers()

    private func stage(
        latency: TimeInterval = 0.5, security: AttributeSecurity = .none, isExplored: Bool = true
    ) throws -> AttributeStage {
        let service = VirtualService(
            "180D",
            characteristics: [
                VirtualCharacteristic(
                    "2A38", [.read, .write, .writeWithoutResponse], value: [1],
                    descriptors: [VirtualDescriptor("2904", value: [4], flags: [.read, .write])]),
                VirtualCharacteristic("2A39", [.read], value: [9], security: security),
            ])
        let stage = try AttributeStage([service], link: VirtualLink(callLatency: latency), behavior: answers)
        if isExplored { try stage.explore() } else { stage.connect() }
        return stage
    }

    private func task<T: Sendable>(
        _ stage: AttributeStage, _ work: @escaping @Sendable () async throws -> T
    ) async -> Task<T, any Error> {
        let task = Task(executorPreference: stage.simulator.taskExecutor) { try await work() }
        await stage.simulator.run()
        return task
    }

    private func calls(_ member: String, _ stage: AttributeStage) -> Int {
        stage.simulator.statistics.count(of: member)
    }

    // MARK: Operations on attributes

    func testAReadThatWaitsForItsTurnIsNeverSent() async throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A38")
        let before = calls("ReadValue", stage)
        let first = await task(stage) { try await characteristic.read() as Data }
        let second = await task(stage) { try await characteristic.read() as Data }
        let third = await task(stage) { try await characteristic.read() as Data }
        await stage.simulator.expectCancellation(of: second)
        await stage.simulator.advance(by: 10)
        let values = [try await first.value, try await third.value]
        XCTAssertEqual(values, [Data([1]), Data([1])])
        XCTAssertEqual(calls("ReadValue", stage) - before, 2)
    }

    func testAReadThatWasSentKeepsItsTurnAndTheNextGetsItsOwnValue() async throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A38")
        answers.answerReads(of: "2A38", .value([1]), .value([2]))
        let before = calls("ReadValue", stage)
        let first = await task(stage) { try await characteristic.read() as Data }
        await stage.simulator.advance(by: 0.1)
        XCTAssertEqual(calls("ReadValue", stage) - before, 1)
        await stage.simulator.expectCancellation(of: first)
        let second = await task(stage) { try await characteristic.read() as Data }
        XCTAssertEqual(calls("ReadValue", stage) - before, 1, "BlueZ has not replied to the first.")
        await stage.simulator.advance(by: 10)
        let value = try await second.value
        XCTAssertEqual(value, Data([2]))
        XCTAssertEqual(calls("ReadValue", stage) - before, 2)
    }

    func testAWriteAndADescriptorsReadThatWaitAreNeverSent() async throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A38")
        let descriptor = try XCTUnwrap(characteristic.descriptor(CBUUID(string: "2904")))
        let before = calls("ReadValue", stage)
        let first = await task(stage) { try await characteristic.write(data: Data([5])) }
        let second = await task(stage) { try await characteristic.write(UInt8(6)) }
        let third = await task(stage) { try await descriptor.read() }
        await stage.simulator.expectCancellation(of: second)
        await stage.simulator.expectCancellation(of: third)
        await stage.simulator.advance(by: 10)
        try await first.value
        XCTAssertEqual(answers.written, [[5]])
        XCTAssertEqual(calls("ReadValue", stage), before)
    }

    func testACancelledTransferWritesNoMore() async throws {
        let stage = try stage(latency: 0.05)
        let characteristic = try stage.characteristic("2A38")
        let transfer = await task(stage) { try await characteristic.transfer(Data(count: 10_000)) }
        await stage.simulator.advance(until: { self.answers.written.count > 2 }, limit: 10)
        await stage.simulator.expectCancellation(of: transfer)
        await stage.simulator.advance(by: 0.2)
        let count = answers.written.count
        XCTAssertLessThan(count, 100)
        await stage.simulator.advance(by: 20)
        XCTAssertEqual(answers.written.count, count)
        let next = await task(stage) { try await characteristic.write(data: Data([7])) }
        await stage.simulator.advance(by: 1)
        try await next.value
        XCTAssertEqual(answers.written.last, [7])
    }

    func testAReadByIdentifierThatWaitsForTheServicesIsNeverSent() async throws {
        let stage = try stage(isExplored: false)
        let peripheral = stage.peripheral
        let place = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
        let read = await task(stage) { try await peripheral.read(place) as Data }
        await stage.simulator.expectCancellation(of: read)
        let discovery = await task(stage) { try await peripheral.discoverServices() }
        await stage.simulator.expectCancellation(of: discovery)
        await stage.simulator.advance(by: 20)
        XCTAssertEqual(calls("ReadValue", stage), 0)
        XCTAssertEqual(peripheral.services, [], "Nothing was marked as discovered.")
    }

    func testATaskThatIsCancelledBeforeStartsNothing() async throws {
        let stage = try stage()
        let (peripheral, characteristic) = (stage.peripheral, try stage.characteristic("2A38"))
        let before = calls("ReadValue", stage)
        let gate = Promise<Void>()
        let early = Task(executorPreference: stage.simulator.taskExecutor) {
            try? await gate.future.value
            XCTAssertTrue(Task.isCancelled)
            return try await characteristic.read() as Data
        }
        early.cancel()
        let connect = Task(executorPreference: stage.simulator.taskExecutor) {
            try? await gate.future.value
            try await peripheral.connect()
        }
        connect.cancel()
        gate.success(())
        await stage.simulator.advance(by: 5)
        await early.expectThrown(CancellationError.self)
        await connect.expectThrown(CancellationError.self)
        XCTAssertEqual(calls("ReadValue", stage), before)
    }

    func testAnOutcomeThatIsThereIsNotLost() async throws {
        let stage = try stage(latency: 0)
        let characteristic = try stage.characteristic("2A38")
        let read = await task(stage) { try await characteristic.read() as Data }
        await stage.simulator.advance(by: 1)
        read.cancel()
        let value = try await read.value
        XCTAssertEqual(value, Data([1]))
    }

    // MARK: Pairing

    func testAPairingThatHasBegunContinues() async throws {
        let stage = try stage()
        stage.manager?.pairingPolicy = .justWorks
        let peripheral = stage.peripheral
        let pairing = await task(stage) { try await peripheral.pair() }
        await stage.simulator.advance(until: { self.calls("Pair", stage) == 1 }, limit: 5)
        await stage.simulator.expectCancellation(of: pairing)
        await stage.simulator.advance(by: 30)
        XCTAssertTrue(peripheral.isBonded)
        XCTAssertEqual(calls("CancelPairing", stage), 0)
    }

    func testAPairingThatWaitsForTheDeviceIsWithdrawn() async throws {
        let stage = try AttributeStage([])
        stage.manager?.pairingPolicy = .justWorks
        let peripheral = stage.peripheral
        stage.simulator.remove(AttributeStage.address)
        await stage.simulator.advance(by: 300)
        let pairing = await task(stage) { try await peripheral.pair() }
        await stage.simulator.advance(by: 5)
        let searches = calls("StopDiscovery", stage)
        await stage.simulator.expectCancellation(of: pairing)
        await stage.simulator.advance(by: 5)
        XCTAssertEqual(calls("StopDiscovery", stage), searches + 1, "The search for the device ends.")
        XCTAssertEqual(calls("Pair", stage), 0)
        XCTAssertFalse(peripheral.isPairing)
    }
}
