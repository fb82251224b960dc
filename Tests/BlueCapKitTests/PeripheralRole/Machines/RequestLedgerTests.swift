import Reactor
import XCTest

@testable import BlueCapKit

final class RequestLedgerTests: XCTestCase {
    private var ledger = RequestLedger()
    private func at(_ seconds: Double) -> Instant { Instant(nanoseconds: 0).advanced(by: seconds) }

    func testEachRequestIsAnsweredOnce() {
        let first = ledger.arrived(at: at(0)).number
        let second = ledger.arrived(at: at(0)).number
        XCTAssertNotEqual(first, second)
        XCTAssertTrue(ledger.answered(second))
        XCTAssertFalse(ledger.answered(second))
        XCTAssertTrue(ledger.answered(first))
        XCTAssertEqual(ledger.count, 0)
    }

    func testOneTimerIsEnough() {
        XCTAssertEqual(ledger.arrived(at: at(0)).timer, RequestLedger.limit)
        XCTAssertNil(ledger.arrived(at: at(1)).timer)
    }

    func testWhatIsNotAnsweredExpiresWhenItsTimeIsUp() {
        let first = ledger.arrived(at: at(0)).number
        let second = ledger.arrived(at: at(1)).number
        var fired = ledger.timerFired(at: at(RequestLedger.limit))
        XCTAssertEqual(fired.expired, [first])
        XCTAssertEqual(fired.timer ?? 0, 1, accuracy: 0.001)
        XCTAssertFalse(ledger.answered(first), "Too late.")
        fired = ledger.timerFired(at: at(RequestLedger.limit + 1))
        XCTAssertEqual(fired.expired, [second])
        XCTAssertNil(fired.timer)
        XCTAssertEqual(ledger.arrived(at: at(9)).timer, RequestLedger.limit, "The next one begins anew.")
    }

    func testTheTimerOfAnAnsweredRequestDoesNothing() {
        XCTAssertTrue(ledger.answered(ledger.arrived(at: at(0)).number))
        let fired = ledger.timerFired(at: at(RequestLedger.limit))
        XCTAssertEqual(fired.expired, [])
        XCTAssertNil(fired.timer)
    }

    func testAllCanBeClosed() {
        let numbers = [ledger.arrived(at: at(0)).number, ledger.arrived(at: at(0)).number]
        XCTAssertEqual(ledger.closeAll(), numbers)
        XCTAssertEqual(ledger.closeAll(), [])
        XCTAssertFalse(ledger.answered(numbers[0]))
    }
}
