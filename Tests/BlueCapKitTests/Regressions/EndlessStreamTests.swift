import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// In the library's ancestors a stream kept every element, so that a long scan was a leak.
final class EndlessStreamTests: XCTestCase {
    func testAScanOfUnlimitedCapacityKeepsABoundedNumberOfSightings() throws {
        let simulator = Simulator.inProcess(room: .crowd(100, interval: 0.1))
        let manager = try simulator.centralManager()

        let stream = manager.startScanning(options: ScanOptions(allowsDuplicates: true))
        simulator.advance(by: 3)

        XCTAssertEqual(stream.count, 1_024)
    }
}
