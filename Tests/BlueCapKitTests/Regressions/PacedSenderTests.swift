import BlueCapKit
import BlueZSimulator
import TestBasics
import TestSupport
import XCTest

/// A sender that waits for `whenDrained` between messages was never resumed if libdbus had written the queued messages together
/// with the next one: the simulator's flood stopped after some hundred sightings.
final class PacedSenderTests: XCTestCase, StartsPrograms {
    func testAFloodOnARealBusComesToItsEnd() throws {
        let stage = try SimulatedStage.onPrivateBus(room: .crowd(200, interval: 20))
        let manager = try CentralManager(configuration: stage.centralConfiguration)
        let journal = Journal()
        journal.watchStates(of: manager)
        XCTAssertTrue(journal.wait(limit: 60) { $0.states.contains(.poweredOn) })
        journal.watch(manager.startScanning(capacity: 0))
        XCTAssertTrue(
            stage.simulator.wait(until: { stage.simulator.adapters.contains(where: \.isDiscovering) }, limit: 20))

        let finished = expectation(description: "the bus has taken them all")
        stage.simulator.simulateFlood(updates: 3_000) { finished.fulfill() }

        wait(for: [finished], timeout: 60)
    }
}
