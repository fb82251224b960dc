import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// Writing over a socket.
final class CharacteristicWriterTests: XCTestCase {
    private let answers = ChosenAnswers()

    private func makeStage(link: VirtualLink = VirtualLink()) throws -> AttributeStage {
        let stage = try AttributeStage([AttributeStage.heart], link: link, behavior: answers)
        try stage.explore()
        return stage
    }

    private func acquire(on stage: AttributeStage) throws -> CharacteristicWriter {
        try stage.wait(stage.characteristic("2A3B").acquireWriter())
    }

    private func acquired(
        link: VirtualLink = VirtualLink()
    ) throws -> (stage: AttributeStage, writer: CharacteristicWriter) {
        let stage = try makeStage(link: link)
        return (stage, try acquire(on: stage))
    }

    func testEachValueIsAWriteInItsOrder() throws {
        let (stage, writer) = try acquired()
        let writes = (0..<200 as Range<UInt8>).map { writer.write(Data([$0, 1, 2])) }
        for write in writes { try stage.wait(write) }
        XCTAssertTrue(stage.simulator.advance(until: { self.answers.written.count == 200 }, limit: 60))
        XCTAssertEqual(answers.written.map(\.first), (0..<200).map { $0 })
        XCTAssertEqual(stage.count(of: "WriteValue"), 0)
    }

    func testWhatDoesNotFitIsRefusedWithBothNumbers() throws {
        let (stage, writer) = try acquired(link: VirtualLink(mtu: 100))
        XCTAssertEqual(writer.mtu, 100)
        XCTAssertEqual(writer.maximumLength, 97)
        XCTAssertEqual(
            stage.failure(of: writer.write(Data(count: 98))) as? CharacteristicError,
            .valueTooLong(count: 98, maximum: 97))
        XCTAssertEqual(
            stage.failure(of: writer.write(Data())) as? CharacteristicError, .valueTooLong(count: 0, maximum: 97))
        try stage.wait(writer.write(Data(count: 97)))
    }

    func testACharacteristicThatTakesNoCommandsHasNoWriter() throws {
        let stage = try makeStage()
        XCTAssertEqual(
            stage.failure(of: try stage.characteristic("2A38").acquireWriter()) as? CharacteristicError,
            .writeNotSupported)
    }

    func testThereIsOneWriterAtATime() throws {
        let stage = try makeStage()
        let first = try acquire(on: stage)
        guard
            case .acquiredByOther? = stage.failure(of: try stage.characteristic("2A3B").acquireWriter())
                as? CharacteristicError
        else { return XCTFail("another writer") }
        first.close()
        stage.simulator.advance(by: 1)
        _ = try acquire(on: stage)
    }

    func testAWriterThatNobodyHoldsGivesTheSocketBackWhenAllIsTaken() throws {
        let stage = try makeStage()
        let write = try acquire(on: stage).write(Data([1]))
        try stage.wait(write)
        stage.simulator.advance(by: 1)
        XCTAssertEqual(answers.written, [[1]])
        _ = try acquire(on: stage)
    }

    func testAClosedWriterWritesNothing() throws {
        let (stage, writer) = try acquired()
        writer.close()
        XCTAssertTrue(writer.isClosed)
        XCTAssertEqual(stage.failure(of: writer.write(Data([1]))) as? CharacteristicError, .writerClosed)
        try stage.wait(writer.whenClosed())
    }

    func testItEndsWithTheLink() throws {
        let (stage, writer) = try acquired()
        stage.loseLink()
        try stage.wait(writer.whenClosed())
        XCTAssertEqual(stage.failure(of: writer.write(Data([1]))) as? PeripheralError, .disconnected)
        XCTAssertEqual(
            stage.failure(of: try stage.characteristic("2A3B").acquireWriter()) as? PeripheralError, .disconnected)
    }

    /// The failure said that the peripheral was not connected.
    func testASocketThatTheDaemonClosesIsNotReportedAsALostLink() throws {
        let (stage, writer) = try acquired()
        stage.simulator.simulateSocketLoss(of: AttributeStage.address)
        stage.simulator.advance(by: 0.1)
        let write = writer.write(Data([1]))
        XCTAssertEqual(stage.failure(of: write) as? CharacteristicError, .writerClosed)
        try stage.wait(writer.whenClosed())
        XCTAssertTrue(stage.isLinked)
        XCTAssertEqual(stage.failure(of: writer.write(Data([2]))) as? CharacteristicError, .writerClosed)
        try stage.wait(try acquire(on: stage).write(Data([3])))
    }

    func testAWriteBetweenTheEndOfTheSocketAndThatOfTheLinkFailsWithTheLink() throws {
        let (stage, writer) = try acquired()
        stage.simulator.simulateSocketLoss(of: AttributeStage.address)
        stage.simulator.advance(by: 0.1)
        let write = writer.write(Data([1]))
        stage.simulator.advance(by: 0.1)
        XCTAssertFalse(write.completed)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: write) as? PeripheralError, .disconnected)
    }

    func testItEndsWithALinkThatTheApplicationEnds() throws {
        let (stage, writer) = try acquired()
        stage.peripheral.disconnect()
        try stage.wait(writer.whenClosed())
        XCTAssertEqual(stage.failure(of: writer.write(Data([1]))) as? PeripheralError, .forcedDisconnect)
    }

    func testItEndsWithTheDaemonAndTheManager() throws {
        let (stage, writer) = try acquired()
        stage.simulator.simulateDaemonDeath()
        try stage.wait(writer.whenClosed())

        let other = try makeStage()
        let another = try acquire(on: other)
        other.endManager()
        try other.wait(another.whenClosed())
    }

    func testAWriterThatIsAskedForBeforeTheServicesAreKnownWaitsForThem() throws {
        let stage = try makeStage()
        let characteristic = try stage.characteristic("2A3B")
        stage.loseLink()
        stage.reconnect()
        let writer = try stage.wait(characteristic.acquireWriter())
        try stage.wait(writer.write(Data([1])))
    }

    /// The link takes one value at a time. A program that waits for each write has no more writes under way than the socket holds.
    func testAFullSocketMakesWritesWait() throws {
        let (stage, writer) = try acquired(link: VirtualLink(callLatency: 0.01))
        let writes = (0..<5_000).map { number in
            writer.write(Data([UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]))
        }
        for write in writes { try stage.wait(write, limit: 600) }
        XCTAssertTrue(stage.simulator.advance(until: { self.answers.written.count == 5_000 }, limit: 600))
        let numbers = answers.written.map { Int($0[0]) | Int($0[1]) << 8 }
        XCTAssertEqual(numbers, Array(0..<5_000))
    }

    func testWritesThatWaitFailWithTheLinkEachOnce() throws {
        let (stage, writer) = try acquired()
        let failures = Locked(0), successes = Locked(0)
        for number in 0..<5_000 {
            let write = writer.write(Data([UInt8(truncatingIfNeeded: number)]))
            write.onSuccess(context: ImmediateContext()) { successes.withLock { $0 += 1 } }
            write.onFailure(context: ImmediateContext()) { _ in failures.withLock { $0 += 1 } }
        }
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        try stage.wait(writer.whenClosed())
        stage.simulator.advance(by: 1)
        XCTAssertEqual(failures.withLock { $0 } + successes.withLock { $0 }, 5_000)
    }
}
