import XCTest

@testable import bluecap

/// `timeout` of GNU coreutils sends a signal twice. The second one must not end the command at once, as a user's second Ctrl-C
/// does.
final class EndRequestsTests: XCTestCase {
    func testSignalsInQuickSuccessionAreOneRequest() {
        var requests = EndRequests()
        XCTAssertEqual([10, 10, 10.000_1, 10.29].map { requests.receive(at: $0) }, [true, false, false, false])
        XCTAssertEqual(requests.count, 1)
    }

    func testALaterSignalIsAnotherRequest() {
        var requests = EndRequests()
        XCTAssertEqual([0, 0.31, 0.4, 0.7].map { requests.receive(at: $0) }, [true, true, false, true])
        XCTAssertEqual(requests.count, 3)
    }

    func testAKeyThatIsHeldDownIsASecondRequestInTheEnd() {
        var requests = EndRequests()
        for tick in 0..<20 { _ = requests.receive(at: Double(tick) / 30) }
        XCTAssertGreaterThan(requests.count, 1)
    }
}
