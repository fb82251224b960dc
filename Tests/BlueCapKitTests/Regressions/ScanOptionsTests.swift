import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// In the library's ancestors a scan without services dropped its options.
final class ScanOptionsTests: XCTestCase {
    func testAScanWithoutServicesKeepsItsOptions() throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let manager = try simulator.centralManager()
        let journal = Journal()

        journal.watch(manager.startScanning(options: ScanOptions(allowsDuplicates: true)))
        simulator.advance(by: 5)

        XCTAssertGreaterThan(journal.sightings.count, Set(journal.sightings).count, "Each was reported again.")
    }
}
