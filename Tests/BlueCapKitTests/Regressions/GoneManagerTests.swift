import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// A loop over a manager's streams never ended when the manager had gone.
final class GoneManagerTests: XCTestCase {
    func testLoopsOverAManagersStreamsEndWithTheManager() throws {
        let simulator = Simulator.inProcess(room: .empty)
        var manager: CentralManager? = try CentralManager(configuration: .init(busAddress: simulator.address))
        let ended = expectation(description: "ended")
        ended.expectedFulfillmentCount = 3
        watch(manager?.whenStateChanges(), ended)
        watch(manager?.whenPeripheralsExpire(), ended)
        watch(manager?.whenScanningRestarts(), ended)
        simulator.run()

        manager = nil
        simulator.run()

        wait(for: [ended], timeout: 60)
    }

    private func watch(_ stream: FutureStream<some Sendable>?, _ ended: XCTestExpectation) {
        Task {
            if let stream { for await _ in stream.outcomes {} }
            ended.fulfill()
        }
    }
}
