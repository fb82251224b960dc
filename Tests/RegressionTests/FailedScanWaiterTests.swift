import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// Who asked during a scan to be told of its end waited for ever when the scan failed in the place of being stopped.
final class FailedScanWaiterTests: XCTestCase {
    func testTheEndOfAScanThatFailsIsToldToo() {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = CentralManager(options: [CentralManagerOptionBusAddressKey: simulator.address])
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        simulator.simulateStartDiscoveryFailures(1_000)
        let journal = Journal()

        journal.watch(manager.startScanning())
        journal.watch(manager.whenScanningStopped())
        XCTAssertTrue(simulator.advance(until: { !journal.failures.isEmpty }, limit: 5))
        simulator.run()

        XCTAssertEqual(journal.read(\.completions), 1)
    }
}
