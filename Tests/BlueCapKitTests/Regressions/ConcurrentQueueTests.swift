import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A manager on a concurrent queue, such as `DispatchQueue.global()`, reported its states in any order.
final class ConcurrentQueueTests: XCTestCase {
    func testAManagerOnAConcurrentQueueReportsItsStatesInTheirOrder() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let queue = DispatchQueue(label: "user", attributes: .concurrent)
        let manager = try CentralManager(
            queue: queue, configuration: .init(busAddress: simulator.address))
        let journal = Journal()
        journal.watchStates(of: manager)
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        var states: [ManagerState] = [.poweredOn]
        // All reports are waiting when the queue resumes, on any number of threads.
        queue.suspend()
        for _ in 0..<1_000 {
            simulator.simulatePowerOff()
            simulator.run()
            simulator.simulatePowerOn()
            simulator.run()
            states += [.poweredOff, .poweredOn]
        }
        queue.resume()

        XCTAssertTrue(journal.wait(limit: 60) { $0.states.count == states.count })
        XCTAssertEqual(journal.states, states)
    }
}
