import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// In the library's ancestors callbacks ran while a lock was held, and a getter waited for its own queue: a call of the manager
/// in a callback did not return.
final class CallbackDeadlockTests: XCTestCase {
    func testACallbackMayAskAndCommandItsManager() throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let journal = Journal()
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { [weak manager] state in
            guard let manager, state == .poweredOn else { return }
            XCTAssertTrue(manager.poweredOn)
            manager.startScanning().onSuccess(context: ImmediateContext()) { [weak manager] peripheral in
                guard let manager else { return }
                XCTAssertTrue(manager.peripherals.contains(peripheral))
                XCTAssertFalse(peripheral.address.isEmpty)
                manager.stopScanning()
                journal.write { $0.sightings.append(peripheral) }
            }
        }

        XCTAssertTrue(simulator.advance(until: { !journal.sightings.isEmpty }, limit: 10))
        simulator.advance(by: 5)

        XCTAssertFalse(manager.isScanning)
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    func testAQueueOfTheUsersOwnMayAskWhileItIsCalled() throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let queue = DispatchQueue(label: "user")
        let manager = try CentralManager(
            queue: queue, configuration: .init(busAddress: simulator.address))
        let journal = Journal()
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { [weak manager] state in
            dispatchPrecondition(condition: .onQueue(queue))
            journal.write { $0.states.append(manager?.state ?? state) }
        }

        simulator.run()
        queue.sync {}

        XCTAssertEqual(journal.states, [.poweredOn])
    }
}
