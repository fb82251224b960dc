import TestSupport
import XCTest

/// Ring 3: Bluejay through a real `dbus-daemon`, in real time.
final class WireBluejayTests: XCTestCase {
    private func bodies() throws -> BluejayBodies { BluejayBodies(on: try SimulatedStage.onPrivateBus()) }

    func testTheHeartRateExampleRuns() throws { try bodies().theHeartRateExampleRuns() }
    func testABatchFailsWithItsLinkAndTheNextOneRuns() throws {
        try bodies().aBatchFailsWithItsLinkAndTheNextOneRuns()
    }
}
