import Foundation
import XCTest

@testable import BlueCapKit

final class ValueGateTests: XCTestCase {
    private var gate = ValueGate()
    private var batch: [Data?] = []

    private func value(_ byte: UInt8) -> Data { Data([byte]) }

    private func told(_ bytes: UInt8...) {
        for byte in bytes { gate.told(value(byte), into: &batch) }
    }

    /// What has come through: a number for each value, `nil` for a gap.
    private var through: [UInt8?] { batch.map { $0?.first } }

    func testNothingComesThroughBeforeItIsOpened() {
        told(1)
        gate.received([value(2)], into: &batch)
        XCTAssertEqual(through, [])
    }

    func testValuesComeThroughInTheirOrder() {
        gate.open(.signals, afterGap: false)
        told(1, 2, 2, 3)
        XCTAssertEqual(through, [1, 2, 2, 3])
    }

    func testAClosedGateLetsNothingThrough() {
        gate.open(.signals, afterGap: false)
        gate.close()
        told(1)
        XCTAssertEqual(through, [])
    }

    func testOverASocketSignalsAreNoNotifications() {
        gate.open(.socket, afterGap: false)
        told(9)
        gate.received([value(1), value(2)], into: &batch)
        XCTAssertEqual(through, [1, 2])
    }

    func testOverSignalsASocketIsNotListenedTo() {
        gate.open(.signals, afterGap: false)
        gate.received([value(1)], into: &batch)
        XCTAssertEqual(through, [])
    }

    func testTheGapMarkComesBeforeTheFirstValueAndOnce() {
        gate.open(.signals, afterGap: true)
        told(1)
        gate.markGap(into: &batch)
        told(2)
        XCTAssertEqual(through, [nil, 1, 2])
    }

    func testTheGapMarkComesWithoutAValueToo() {
        gate.open(.socket, afterGap: true)
        gate.markGap(into: &batch)
        gate.received([value(1)], into: &batch)
        XCTAssertEqual(through, [nil, 1])
    }

    func testAGapThatEndsInAnotherGapIsOne() {
        gate.open(.signals, afterGap: true)
        gate.close()
        gate.open(.signals, afterGap: true)
        told(1)
        XCTAssertEqual(through, [nil, 1])
    }

    func testTheValueOfOurOwnReadIsNoNotification() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        told(7)
        gate.readEnded(value(7), into: &batch)
        told(8)
        XCTAssertEqual(through, [8])
    }

    func testNotificationsAroundAReadKeepTheirOrder() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        told(1, 2, 7)
        XCTAssertEqual(through, [])
        gate.readEnded(value(7), into: &batch)
        XCTAssertEqual(through, [1, 2])
    }

    func testOfEqualValuesOnlyTheLastWasTheReads() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        told(7, 1, 7)
        gate.readEnded(value(7), into: &batch)
        XCTAssertEqual(through, [7, 1])
    }

    func testAFailedReadTakesNothingAway() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        told(1, 2)
        gate.readEnded(nil, into: &batch)
        XCTAssertEqual(through, [1, 2])
    }

    func testAReadFromAnOffsetIsKnownByTheEndOfItsValue() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        gate.told(Data([1, 2, 3]), into: &batch)
        gate.readEnded(Data([2, 3]), offset: 1, into: &batch)
        XCTAssertEqual(batch, [])
    }

    func testASlowReadDoesNotHoldUpTheStream() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        for number in 0..<UInt8(ValueGate.patience + 3) { told(number) }
        XCTAssertEqual(through, [0, 1, 2])
        gate.readEnded(nil, into: &batch)
        XCTAssertEqual(through, (0..<UInt8(ValueGate.patience + 3)).map { $0 })
    }

    func testWhatCameBeforeTheGateClosedStillComesThrough() {
        gate.open(.signals, afterGap: false)
        gate.readBegan()
        told(1)
        gate.close()
        gate.readEnded(nil, into: &batch)
        XCTAssertEqual(through, [1])
    }

    func testAReadBeforeTheSubscriptionCountsToo() {
        gate.readBegan()
        gate.open(.signals, afterGap: false)
        told(7)
        gate.readEnded(value(7), into: &batch)
        XCTAssertEqual(through, [])
    }
}
