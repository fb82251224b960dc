import TestSupport
import XCTest

/// Ring 4: Bluejay on real `bluetoothd`, with a peripheral that shares no code with us.
final class RadioBluejayTests: XCTestCase {
    private func bodies() throws -> BluejayBodies { BluejayBodies(on: try RadioStage()) }

    func testTheHeartRateExampleRuns() throws { try bodies().theHeartRateExampleRuns() }
    func testABatchFailsWithItsLinkAndTheNextOneRuns() throws {
        try bodies().aBatchFailsWithItsLinkAndTheNextOneRuns()
    }
}
