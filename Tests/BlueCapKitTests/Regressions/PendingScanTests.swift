import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// BlueZ was killed while `StartDiscovery` was pending. The kernel may have begun the discovery by then; it continues for 10.24 s
/// and refuses that of the next daemon. The scan was tried again for 2 s only, and failed: only scans that had been running
/// were tried for longer.
final class PendingScanTests: XCTestCase {
    func testAScanWhoseStartIsPendingWhenTheDaemonDiesIsTriedUntilTheKernelHasEndedItsDiscovery() throws {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(VirtualPeripheral("C0:00:00:00:00:01", advertisement: Advertisement(localName: "Strap")))
        let manager = try simulator.centralManager()
        let journal = Journal()

        simulator.simulateUnansweredCalls(1, of: "StartDiscovery")
        journal.watch(manager.startScanning())
        simulator.advance(by: 1)
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateStartDiscoveryFailures(7)
        simulator.simulateDaemonReturn()

        XCTAssertTrue(simulator.advance(until: { !journal.read { $0.sightings(named: "Strap") }.isEmpty }, limit: 30))
        XCTAssertEqual(journal.failures, [])
    }
}
