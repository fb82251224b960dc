import Foundation
import XCTest

@testable import BlueCapKit

final class ValueGateTests: XCTestCase {
    private var gate = ValueGate()

    private func value(_ byte: UInt8) -> Data { Data([byte]) }

    private func signalled(_ bytes: UInt8...) {
        for byte in bytes { gate.signalled(value(byte)) }
    }

    /// What has come through: a number for each value, `nil` for a gap.
    private var through: [UInt8?] { gate.batch.map { $0?.first } }

    func testNothingComesThroughBeforeItIsOpened() {
        signalled(1)
        gate.received([value(2)])
        XCTAssertEqual(through, [])
    }

    func testValuesComeThroughInTheirOrder() {
        gate.open(.signals, afterGap: false)
        signalled(1, 2, 2, 3)
        XCTAssertEqual(through, [1, 2, 2, 3])
    }

    func testAClosedGateLetsNothingThrough() {
        gate.open(.signals, afterGap: false)
        gate.close()
        signalled(1)
        XCTAssertEqual(through, [])
    }

    func testOverASocketSignalsAreNoNotifications() {
        gate.open(.socket, afterGap: false)
        signalled(9)
        gate.received([value(1), value(2)])
        XCTAssertEqual(through, [1, 2])
    }

    func testOverSignalsASocketIsNotListenedTo() {
        gate.open(.signals, afterGap: false)
        gate.received([value(1)])
        XCTAssertEqual(through, [])
    }

    func testTheGapMarkComesBeforeTheFirstValueAndOnce() {
        gate.open(.signals, afterGap: true)
        signalled(1)
        gate.markGap()
        signalled(2)
        XCTAssertEqual(through, [nil, 1, 2])
    }

    func testTheGapMarkComesWithoutAValueToo() {
        gate.open(.socket, afterGap: true)
        gate.markGap()
        gate.received([value(1)])
        XCTAssertEqual(through, [nil, 1])
    }

    func testAGapThatEndsInAnotherGapIsOne() {
        gate.open(.signals, afterGap: true)
        gate.close()
        gate.open(.signals, afterGap: true)
        signalled(1)
        XCTAssertEqual(through, [nil, 1])
    }

    func testTheValueOfOurOwnReadIsNoNotification() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        signalled(7)
        gate.readEnded(value(7))
        signalled(8)
        XCTAssertEqual(through, [8])
    }

    func testNotificationsAroundAReadKeepTheirOrder() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        signalled(1, 2, 7)
        XCTAssertEqual(through, [])
        gate.readEnded(value(7))
        XCTAssertEqual(through, [1, 2])
    }

    func testOfEqualValuesOnlyTheLastWasTheReads() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        signalled(7, 1, 7)
        gate.readEnded(value(7))
        XCTAssertEqual(through, [7, 1])
    }

    func testAFailedReadTakesNothingAway() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        signalled(1, 2)
        gate.readEnded(nil)
        XCTAssertEqual(through, [1, 2])
    }

    func testAReadFromAnOffsetIsKnownByTheEndOfItsValue() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        gate.signalled(Data([1, 2, 3]))
        gate.readEnded(Data([2, 3]), offset: 1)
        XCTAssertEqual(gate.batch, [])
    }

    func testASlowReadDoesNotHoldUpTheStream() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        for number in 0..<UInt8(ValueGate.patience + 3) { signalled(number) }
        XCTAssertEqual(through, [0, 1, 2])
        gate.readEnded(nil)
        XCTAssertEqual(through, (0..<UInt8(ValueGate.patience + 3)).map { $0 })
    }

    func testWhatCameBeforeTheGateClosedStillComesThrough() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        signalled(1)
        gate.close()
        gate.readEnded(nil)
        XCTAssertEqual(through, [1])
    }

    func testAReadBeforeTheSubscriptionCountsToo() {
        gate.readBegan()
        gate.open(.signals, afterGap: false)
        signalled(7)
        gate.readEnded(value(7))
        XCTAssertEqual(through, [])
    }
}
