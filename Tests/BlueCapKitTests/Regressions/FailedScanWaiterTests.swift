import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// The future that waits for the end of a scan was not completed if the scan failed instead of being stopped.
final class FailedScanWaiterTests: XCTestCase {
    func testTheEndOfAScanThatFailsIsReportedToo() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try simulator.centralManager()
        simulator.simulateStartDiscoveryFailures(1_000)
        let journal = Journal()

        journal.watch(manager.startScanning())
        journal.watch(manager.whenScanningStopped())
        XCTAssertTrue(simulator.advance(until: { !journal.failures.isEmpty }, limit: 5))
        simulator.run()

        XCTAssertEqual(journal.read(\.completions), 1)
    }
}
