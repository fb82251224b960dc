import Reactor
import XCTest

@testable import BlueCapKit

final class TimeLimitsTests: XCTestCase {
    private var limits = TimeLimits()
    private let peripheral = PeripheralKey(rawValue: 1)

    private func time(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    private func add(_ id: UInt64, _ seconds: Double, at now: Double) -> Bool {
        limits.add(OperationID(rawValue: id), of: peripheral, seconds: seconds, at: time(now))
    }

    private func exceeded(at now: Double) -> [UInt64] { limits.takeExceeded(at: time(now)).map(\.id.rawValue) }

    func testTheTimerIsSetToTheEarliestLimit() {
        XCTAssertTrue(add(1, 30, at: 0))
        XCTAssertFalse(add(2, 40, at: 0))
        XCTAssertTrue(add(3, 10, at: 0))
        XCTAssertEqual(exceeded(at: 10), [3])
        XCTAssertEqual(limits.restart(at: time(10)), 20)
    }

    /// The timer has fired, and is not set again yet: a limit that is added now sets it, and setting it again keeps the
    /// earlier limit.
    func testALimitThatIsAddedWhileTheTimerFiresIsNotDelayed() {
        XCTAssertTrue(add(1, 30, at: 0))
        XCTAssertTrue(add(2, 5, at: 0))
        limits.remove(OperationID(rawValue: 2))
        XCTAssertEqual(exceeded(at: 5), [])
        XCTAssertTrue(add(3, 1, at: 5))
        XCTAssertEqual(limits.restart(at: time(5)), 1)
        XCTAssertEqual(exceeded(at: 6), [3])
        XCTAssertEqual(limits.restart(at: time(6)), 24)
    }

    func testWithoutLimitsTheTimerIsNotSet() {
        XCTAssertTrue(add(1, 1, at: 0))
        XCTAssertEqual(exceeded(at: 1), [1])
        XCTAssertNil(limits.restart(at: time(1)))
    }
}
