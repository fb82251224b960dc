import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A callback may end or release its own manager, which is still calling it.
final class ReentrantManagerTests: XCTestCase {
    func testACallbackMayResetItsManager() throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let journal = Journal()
        journal.watchStates(of: manager)
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))

        manager.startScanning().onSuccess(context: ImmediateContext()) { [weak manager] peripheral in
            journal.write { $0.sightings.append(peripheral) }
            manager?.reset()
        }
        XCTAssertTrue(simulator.advance(until: { journal.states.count == 2 }, limit: 10))

        XCTAssertEqual(journal.states, [.poweredOn, .poweredOn])
        XCTAssertFalse(manager.isScanning)
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    func testACallbackMayReleaseItsManager() throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let holder = Holder(
            try CentralManager(configuration: .init(busAddress: simulator.address)))
        XCTAssertTrue(simulator.advance(until: { holder.manager?.poweredOn == true }, limit: 5))
        weak let manager = holder.manager

        manager?.startScanning().onSuccess(context: ImmediateContext()) { _ in holder.manager = nil }
        XCTAssertTrue(simulator.advance(until: { manager == nil }, limit: 10))
        simulator.advance(by: 1)

        XCTAssertEqual(simulator.discoverySessions, [])
    }

    /// Unchecked because everything here runs on the thread of the test.
    private final class Holder: @unchecked Sendable {
        var manager: CentralManager?

        init(_ manager: CentralManager) { self.manager = manager }
    }
}
