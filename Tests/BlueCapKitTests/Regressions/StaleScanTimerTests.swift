import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// In the library's ancestors the timer of a scan that had been stopped ended the scan that came after it.
final class StaleScanTimerTests: XCTestCase {
    func testTheTimeOutOfAStoppedScanDoesNotEndALaterOne() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try simulator.centralManager()
        let journal = Journal()

        journal.watch(manager.startScanning(timeout: 5))
        simulator.advance(by: 3)
        manager.stopScanning()
        journal.watch(manager.startScanning(timeout: 60))
        simulator.advance(by: 30)

        XCTAssertTrue(manager.isScanning)
        XCTAssertEqual(journal.failures, [])
    }
}
