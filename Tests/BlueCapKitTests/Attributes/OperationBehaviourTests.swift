import BlueCapKit
import BlueZSimulator
import XCTest

/// What users suffer from while they read and write, and what happens here instead; the letters are those of the
/// behaviours in Documentation/Reliability.md.
final class OperationBehaviourTests: XCTestCase {
    private let answers = ChosenAnswers()
    private let service = VirtualService(
        "180D",
        characteristics: [
            VirtualCharacteristic("2A37", [.notify], value: [0, 72]),
            VirtualCharacteristic("2A38", [.read], value: [1]),
            VirtualCharacteristic(
                "2A39", [.read, .write, .writeWithoutResponse], value: [7],
                descriptors: [
                    .description("Control"), VirtualDescriptor("2904", value: [4], flags: [.read, .write]),
                ]),
            VirtualCharacteristic("2A3A", [.write, .read]),
        ])

    private func stage(_ link: VirtualLink = VirtualLink(), profiles: ProfileManager? = nil) throws
        -> AttributeStage
    {
        let stage = try AttributeStage([service], link: link, behavior: answers, profiles: profiles)
        try stage.explore()
        return stage
    }

    // MARK: Values

    func testAReadBringsTheValue() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A38")
        XCTAssertNil(characteristic.dataValue)
        let read: Future<Characteristic> = characteristic.read()
        XCTAssertIdentical(try stage.wait(read), characteristic)
        XCTAssertEqual(characteristic.dataValue, Data([1]))
        let value: UInt8? = characteristic.value()
        XCTAssertEqual(value, 1)
        try stage.wait(characteristic.read() as Future<Void>)
    }

    func testWritesInAllFormsReachThePeripheral() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A39")
        let futures: [Future<Characteristic>] = [
            characteristic.write(data: Data([1])), characteristic.write(UInt16(2)),
            characteristic.write(string: [characteristic.name: "03"]), characteristic.write(value: UInt8(4)),
            characteristic.writeData(Data([5])), characteristic.writeData(value: Data([6])),
            characteristic.writeString([characteristic.name: "07"]),
            characteristic.writeString(stringValue: [characteristic.name: "08"]),
            characteristic.write(data: Data([9]), type: .withoutResponse),
        ]
        for future in futures { try stage.wait(future) }
        try stage.wait(characteristic.write(UInt8(10)) as Future<Void>)
        XCTAssertEqual(answers.written, [[1], [2, 0], [3], [4], [5], [6], [7], [8], [9], [10]])
    }

    func testTheProfileGivesNameAndText() throws {
        let profiles = ProfileManager()
        let heartRate = ServiceProfile(uuid: "180D", name: "Heart")
        heartRate.addCharacteristic(CharacteristicProfile(uuid: "2A38", name: "Place"))
        profiles.addService(heartRate)
        let stage = try stage(profiles: profiles)
        let characteristic = try stage.characteristic("2A38")
        try stage.read(characteristic)
        XCTAssertEqual(characteristic.service?.name, "Heart")
        XCTAssertEqual(characteristic.stringValue, ["Place": "01"])
        XCTAssertEqual(try stage.characteristic("2A39").name, "Unknown")
    }

    func testDescriptorsAreReadAndWritten() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A39")
        XCTAssertEqual(characteristic.descriptors.map(\.uuid.uuidString), ["2901", "2904"])
        let description = try XCTUnwrap(characteristic.descriptor(CBUUID(string: "2901")))
        XCTAssertEqual(description.name, "Characteristic User Description")
        XCTAssertEqual(description.characteristic, characteristic)
        let read: Future<Descriptor> = description.read()
        XCTAssertEqual(try stage.wait(read).dataValue, Data("Control".utf8))
        let format = try XCTUnwrap(characteristic.descriptor(CBUUID(string: "2904")))
        try stage.wait(format.write(data: Data([8])) as Future<Descriptor>)
        XCTAssertEqual(answers.written, [[8]])
    }

    // MARK: E1, order

    func testFiftyWritesAtOnceArriveInOrderWithoutError() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A39")
        let futures: [Future<Characteristic>] = (0..<50).map { characteristic.write(UInt8($0)) }
        for future in futures { try stage.wait(future) }
        XCTAssertEqual(answers.written, (0..<50).map { [$0] })
    }

    func testASlowCharacteristicHoldsUpNoOther() throws {
        let stage = try stage()
        answers.answerReads(of: "2A38", .value([1], after: 5))
        let slow: Future<Characteristic> = try stage.characteristic("2A38").read()
        let other = try stage.characteristic("2A39")
        let queued: Future<Characteristic> = other.read()
        stage.simulator.advance(by: 0.001)
        // BlueZ has both; the link carries one request at a time.
        XCTAssertEqual(stage.simulator.statistics.count(of: "ReadValue"), 2)
        try stage.wait(queued)
        try stage.wait(slow)
    }

    func testWhatAnotherProgramIsBusyWithIsTriedAgain() throws {
        let stage = try stage()
        let other = try SecondManager(beside: stage)
        answers.answerWrites(to: "2A3A", AttributeAnswer(.success([]), after: 0.5))
        let theirs: Future<Characteristic> = try other.explore("2A3A", on: stage).write(UInt8(1))
        let ours: Future<Characteristic> = try stage.characteristic("2A3A").write(UInt8(2))
        try stage.wait(ours)
        try stage.wait(theirs)
        XCTAssertEqual(answers.written.count, 2)
        XCTAssertGreaterThan(stage.simulator.statistics.count(of: "WriteValue"), 2)
    }

    func testWhatStaysBusyFailsWithBlueZsWord() throws {
        let stage = try stage()
        let other = try SecondManager(beside: stage)
        answers.answerWrites(to: "2A3A", AttributeAnswer(.success([]), after: 20))
        let theirs: Future<Characteristic> = try other.explore("2A3A", on: stage).write(UInt8(1))
        stage.simulator.advance(by: 0.1)
        let ours: Future<Characteristic> = try stage.characteristic("2A3A").write(UInt8(2))
        guard case .writeFailed(let failure)? = stage.failure(of: ours, limit: 5) as? CharacteristicError else {
            return XCTFail("\(String(describing: ours.result))")
        }
        XCTAssertEqual(failure.name, "org.bluez.Error.InProgress")
        try stage.wait(theirs)
    }

    // MARK: Time-outs

    func testALateAnswerDoesNotSettleTheNextRead() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A38")
        answers.answerReads(of: "2A38", .value([8], after: 3), .value([9]))
        let first: Future<Characteristic> = characteristic.read(timeout: 1)
        let second: Future<Characteristic> = characteristic.read()
        XCTAssertEqual(stage.failure(of: first, limit: 1.1) as? CharacteristicError, .readTimeout)
        try stage.wait(second)
        XCTAssertEqual(characteristic.dataValue, Data([9]))
    }

    func testAWriteTimesOut() throws {
        let stage = try stage()
        answers.answerWrites(to: "2A39", AttributeAnswer(.success([]), after: 3))
        let write: Future<Characteristic> = try stage.characteristic("2A39").write(UInt8(1), timeout: 1)
        XCTAssertEqual(stage.failure(of: write) as? CharacteristicError, .writeTimeout)
        let next: Future<Characteristic> = try stage.characteristic("2A39").write(UInt8(2))
        try stage.wait(next)
    }

    // MARK: Lost links

    func testPendingOperationsFailWhenTheLinkDrops() throws {
        let stage = try stage()
        stage.simulator.simulateSilence(of: AttributeStage.address)
        let control = try stage.characteristic("2A39")
        let reads: [Future<Characteristic>] = [control.read(), control.read(), try stage.characteristic("2A38").read()]
        let write: Future<Characteristic> = control.write(UInt8(1))
        stage.simulator.advance(by: 1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        for future in reads + [write] {
            XCTAssertEqual(stage.failure(of: future, limit: 1) as? PeripheralError, .disconnected)
        }
    }

    func testASilentPeripheralFailsWhatIsPending() throws {
        let stage = try stage()
        stage.simulator.simulateSilence(of: AttributeStage.address)
        let read: Future<Characteristic> = try stage.characteristic("2A38").read()
        XCTAssertEqual(stage.failure(of: read, limit: 35) as? PeripheralError, .disconnected)
    }

    func testAWriteThatTheLinkDoesNotSurviveFails() throws {
        let stage = try stage()
        stage.simulator.simulateVanishingMidWrite(of: AttributeStage.address)
        let write: Future<Characteristic> = try stage.characteristic("2A39").write(data: Data(repeating: 1, count: 300))
        XCTAssertEqual(stage.failure(of: write) as? PeripheralError, .disconnected)
    }

    func testADaemonThatDiesFailsWhatIsPending() throws {
        let stage = try stage()
        stage.simulator.simulateSilence(of: AttributeStage.address)
        let read: Future<Characteristic> = try stage.characteristic("2A38").read()
        stage.simulator.advance(by: 1)
        stage.simulator.simulateDaemonDeath()
        XCTAssertEqual(stage.failure(of: read, limit: 1) as? PeripheralError, .disconnected)
    }

    func testAManagerThatEndsFailsWhatIsPending() throws {
        let stage = try stage()
        stage.simulator.simulateSilence(of: AttributeStage.address)
        let read: Future<Characteristic> = try stage.characteristic("2A38").read()
        stage.simulator.advance(by: 1)
        stage.endManager()
        XCTAssertNotNil(stage.failure(of: read, limit: 1) as? PeripheralError)
        let late: Future<Void> = stage.peripheral.discoverAllServices()
        XCTAssertNotNil(stage.failure(of: late, limit: 1) as? PeripheralError)
    }

    // MARK: What cannot be

    func testWhatACharacteristicCannotDoFailsBeforeBlueZIsAsked() throws {
        let stage = try stage()
        let calls = stage.simulator.statistics.count(of: "ReadValue")
        let read: Future<Characteristic> = try stage.characteristic("2A37").read()
        XCTAssertEqual(stage.failure(of: read, limit: 0.001) as? CharacteristicError, .readNotSupported)
        XCTAssertEqual(stage.simulator.statistics.count(of: "ReadValue"), calls)
        let write: Future<Characteristic> = try stage.characteristic("2A38").write(UInt8(1))
        XCTAssertEqual(stage.failure(of: write, limit: 0.001) as? CharacteristicError, .writeNotSupported)
        let command: Future<Characteristic> = try stage.characteristic("2A3A").write(UInt8(1), type: .withoutResponse)
        XCTAssertEqual(stage.failure(of: command, limit: 0.001) as? CharacteristicError, .writeNotSupported)
        let text: Future<Characteristic> = try stage.characteristic("2A39").write(string: ["Unknown": "x"])
        XCTAssertEqual(stage.failure(of: text, limit: 0.001) as? CharacteristicError, .notSerializable)
    }

    func testThePeripheralsRefusalIsReportedByItsCode() throws {
        let stage = try stage()
        answers.answerReads(of: "2A38", .error(0x85))
        let read: Future<Characteristic> = try stage.characteristic("2A38").read()
        guard case .readFailed(let failure)? = stage.failure(of: read) as? CharacteristicError else {
            return XCTFail("\(String(describing: read.result))")
        }
        XCTAssertEqual(failure.attError, CBATTError.Code(rawValue: 0x85))
        answers.answerWrites(to: "2A39", .error(0x0D))
        let write: Future<Characteristic> = try stage.characteristic("2A39").write(UInt8(1))
        guard case .writeFailed(let refusal)? = stage.failure(of: write) as? CharacteristicError else {
            return XCTFail("\(String(describing: write.result))")
        }
        XCTAssertEqual(refusal.attError, .invalidAttributeValueLength)
    }

    // MARK: E2, long values

    func testLongValuesAreWrittenAndReadWhole() throws {
        let stage = try stage(VirtualLink(mtu: 23))
        let characteristic = try stage.characteristic("2A39")
        let value = Data((0..<400).map { UInt8(truncatingIfNeeded: $0) })
        try stage.wait(characteristic.write(data: value) as Future<Characteristic>)
        try stage.read(characteristic)
        XCTAssertEqual(characteristic.dataValue, value)
    }

    func testWhatIsTooLongIsRefusedWithBothNumbers() throws {
        let stage = try stage(VirtualLink(mtu: 100))
        let characteristic = try stage.characteristic("2A39")
        XCTAssertEqual(stage.peripheral.mtu, 100)
        XCTAssertEqual(characteristic.maximumWriteValueLength(for: .withoutResponse), 97)
        XCTAssertEqual(stage.peripheral.maximumWriteValueLength(for: .withResponse), 512)
        let command: Future<Characteristic> = characteristic.write(
            data: Data(repeating: 0, count: 98), type: .withoutResponse)
        XCTAssertEqual(
            stage.failure(of: command, limit: 0.001) as? CharacteristicError, .valueTooLong(count: 98, maximum: 97))
        let request: Future<Characteristic> = characteristic.write(data: Data(repeating: 0, count: 513))
        XCTAssertEqual(
            stage.failure(of: request, limit: 0.001) as? CharacteristicError, .valueTooLong(count: 513, maximum: 512))
        XCTAssertEqual(stage.simulator.statistics.count(of: "WriteValue"), 0)
    }
}

extension OperationBehaviourTests {
    // MARK: E4, transfers

    func testATransferArrivesWholeInOrderAndFenced() throws {
        let stage = try stage(VirtualLink(callLatency: 0.02, mtu: 23))
        let characteristic = try stage.characteristic("2A39")
        let data = Data((0..<2_000).map { UInt8(truncatingIfNeeded: $0 >> 3) })
        let transfer = characteristic.transfer(data)
        let after: Future<Characteristic> = characteristic.write(UInt8(255))
        let report = try stage.wait(transfer)
        try stage.wait(after)
        XCTAssertEqual(report.bytes, 2_000)
        XCTAssertGreaterThan(report.fences, 2)
        XCTAssertGreaterThan(report.bytesPerSecond, 0)
        XCTAssertEqual(Data(answers.written.dropLast().joined()), data)
        XCTAssertEqual(answers.written.last, [255])
        XCTAssertTrue(answers.written.allSatisfy { $0.count <= 20 })
    }

    func testATransferThatTheLinkDoesNotSurviveFails() throws {
        let stage = try stage(VirtualLink(callLatency: 0.2, mtu: 23))
        let transfer = try stage.characteristic("2A39").transfer(Data(repeating: 1, count: 5_000))
        stage.simulator.advance(by: 0.1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: transfer, limit: 1) as? PeripheralError, .disconnected)
    }

    func testATransferThatTakesTooLongStopsAndFreesItsCharacteristic() throws {
        let stage = try stage(VirtualLink(callLatency: 0.1, mtu: 23))
        let characteristic = try stage.characteristic("2A39")
        let transfer = characteristic.transfer(Data(repeating: 1, count: 5_000), timeout: 0.5)
        XCTAssertEqual(stage.failure(of: transfer) as? CharacteristicError, .writeTimeout)
        try stage.wait(characteristic.write(UInt8(2)) as Future<Characteristic>)
        XCTAssertLessThan(answers.written.count, 250)
    }

    func testAValueIsReadFromAnOffsetOn() throws {
        let stage = try stage()
        let characteristic = try stage.characteristic("2A39")
        answers.answerReads(of: "2A39", .value([1, 2, 3, 4]))
        let part = characteristic.read(from: 2)
        XCTAssertEqual(try stage.wait(part), Data([3, 4]))
    }
}
