import BlueCapKit
import XCTest

@testable import bluecap

final class RadioWaitTests: XCTestCase {
    private func states(_ states: ManagerState...) -> FutureStream<ManagerState> {
        let promise = StreamPromise<ManagerState>(capacity: 8)
        for state in states { promise.success(state) }
        return promise.stream
    }

    func testAStateThatHasPassedIsNoFailure() async throws {
        try await RadioWait.untilUsable(states(.unsupported, .resetting), isSimulated: true) {
            (.poweredOn, "The adapter hci0 (00:00:00:00:00:01) is on.")
        }
    }

    func testAnUnusableRadioIsAFailureWithItsExplanation() async {
        do {
            try await RadioWait.untilUsable(states(.unsupported), isSimulated: true) {
                (.unsupported, "bluetoothd is not running.")
            }
            XCTFail("usable")
        } catch {
            XCTAssertTrue("\(error)".contains("bluetoothd is not running."), "\(error)")
        }
    }
}
