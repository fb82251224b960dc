import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Three defects of `terminate()`. A peripheral that was connected again right after it was missing from the manager's list. A
/// peripheral that was refreshing its services returned to the list after `terminate()` and `disconnect()`. The polling of a
/// peripheral's signal strength did not end.
final class EndedPeripheralTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)
    private let journal = Journal()

    private func connected() throws -> (manager: CentralManager, peripheral: Peripheral) {
        simulator.add(.strap())
        let (manager, peripheral) = try simulator.firstPeripheral()
        journal.watch(peripheral.connect())
        XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 20))
        return (manager, peripheral)
    }

    func testWhoIsConnectedAgainAtOnceIsOnTheList() throws {
        let (manager, strap) = try connected()
        strap.terminate()
        journal.watch(strap.connect())

        XCTAssertTrue(
            simulator.advance(until: { journal.connectionEvents == [.connect, .forceDisconnect, .connect] }, limit: 20))
        simulator.advance(by: 5)
        XCTAssertEqual(strap.state, .connected)
        XCTAssertEqual(manager.peripherals, [strap])
    }

    func testPollingTheSignalStrengthEndsWithTerminate() throws {
        let (manager, strap) = try connected()
        let readings = Locked(0)
        let ended = strap.startPollingRSSI(period: 1)
        ended.onComplete(context: ImmediateContext()) { _ in readings.withLock { $0 += 1 } }
        simulator.advance(by: 3.5)
        let before = readings.withLock { $0 }
        XCTAssertGreaterThan(before, 2)
        strap.terminate()
        let next = strap.startPollingRSSI(period: 1)
        simulator.advance(by: 10)
        XCTAssertEqual(readings.withLock { $0 }, before)
        XCTAssertFalse(ended.success(0), "The stream is finished.")
        XCTAssertTrue(next.success(0), "What is asked for afterwards is something else.")
        strap.stopPollingRSSI()
        withExtendedLifetime(manager) {}
    }

    func testARefreshEndsWithTerminate() throws { try refreshEnds { $1.terminate() } }

    func testARefreshEndsWithDisconnect() throws { try refreshEnds { $1.disconnect() } }

    func testARefreshEndsWithDisconnectAllPeripherals() throws {
        try refreshEnds { manager, _ in manager.disconnectAllPeripherals() }
    }

    private func refreshEnds(_ end: (CentralManager, Peripheral) -> Void) throws {
        let (manager, strap) = try connected()
        let refreshed = strap.refreshServices(timeout: .infinity)
        simulator.advance(by: 0.01)
        end(manager, strap)
        XCTAssertTrue(simulator.advance(until: { refreshed.completed }, limit: 1))
        XCTAssertEqual(refreshed.result?.error as? PeripheralError, .forcedDisconnect)
        simulator.advance(by: 60)
        XCTAssertEqual(strap.state, .disconnected)
        XCTAssertEqual(simulator.links, [])
    }
}
