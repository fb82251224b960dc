import XCTest

@testable import BlueCapBlueZ

final class ValueGateTests: XCTestCase {
    private var gate = ValueGate()

    private func value(_ byte: UInt8) -> Data { Data([byte]) }

    private func signalled(_ bytes: UInt8..., isReading: Bool = false) {
        for byte in bytes { gate.signalled(value(byte), isReading: isReading) }
    }

    /// What has come through: a number for each value.
    private var through: [UInt8?] { gate.batch.map(\.first) }

    func testValuesComeThroughInTheirOrder() {
        signalled(1, 2, 2, 3)
        XCTAssertEqual(through, [1, 2, 2, 3])
        XCTAssertEqual(gate.takeBatch().count, 4)
        XCTAssertEqual(through, [])
    }

    func testTheValueOfOurOwnReadIsNoNotification() {
        signalled(7, isReading: true)
        gate.readEnded(value(7))
        signalled(8)
        XCTAssertEqual(through, [8])
    }

    func testNotificationsAroundAReadKeepTheirOrder() {
        signalled(1, 2, 7, isReading: true)
        XCTAssertEqual(through, [])
        XCTAssertTrue(gate.isHolding)
        gate.readEnded(value(7))
        XCTAssertEqual(through, [1, 2])
        XCTAssertFalse(gate.isHolding)
    }

    func testOfEqualValuesOnlyTheLastWasTheReads() {
        signalled(7, 1, 7, isReading: true)
        gate.readEnded(value(7))
        XCTAssertEqual(through, [7, 1])
    }

    func testAFailedReadTakesNothingAway() {
        signalled(1, 2, isReading: true)
        gate.readEnded(nil)
        XCTAssertEqual(through, [1, 2])
    }

    func testOfTwoReadsEachTakesItsValueAndTheLastOpensTheGate() {
        signalled(1, 7, 8, isReading: true)
        gate.readEnded(value(7), isLast: false)
        XCTAssertEqual(through, [])
        gate.readEnded(value(8))
        XCTAssertEqual(through, [1])
    }

    func testAReadFromAnOffsetIsKnownByTheEndOfItsValue() {
        gate.signalled(Data([1, 2, 3]), isReading: true)
        gate.readEnded(Data([2, 3]), offset: 1)
        XCTAssertEqual(gate.batch, [])
    }

    func testASlowReadDoesNotHoldUpTheStream() {
        for number in 0..<UInt8(ValueGate.patience + 3) { signalled(number, isReading: true) }
        XCTAssertEqual(through, [0, 1, 2])
        gate.readEnded(nil)
        XCTAssertEqual(through, (0..<UInt8(ValueGate.patience + 3)).map { $0 })
    }
}
