import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// The centrals that are connected to a peripheral of ours.
final class ConnectedCentralsTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)
    private let reported = Locked<[[String]]>([])

    private func manager() throws -> PeripheralManager {
        let manager = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        manager.whenCentralsChange().onSuccess(context: ImmediateContext()) { [reported] centrals in
            reported.withLock { $0.append(centrals.map { $0.address?.description ?? "?" }) }
        }
        let advertising = manager.startAdvertising("Desk")
        XCTAssertTrue(simulator.advance(until: { advertising.completed }, limit: 10))
        return manager
    }

    private func connect(_ address: VirtualAddress) -> CentralLink {
        let link = simulator.connect(VirtualCentral(address))
        XCTAssertTrue(simulator.advance(until: { link.state == .connected }, limit: 10))
        simulator.run()
        return link
    }

    func testCentralsThatComeAndGoAreReportedInTheOrderOfComing() throws {
        let manager = try manager()
        let (first, second) = (connect("C0:FF:EE:00:CE:01"), connect("C0:FF:EE:00:CE:02"))
        XCTAssertEqual(manager.centrals.map(\.address?.description), ["C0:FF:EE:00:CE:01", "C0:FF:EE:00:CE:02"])
        first.disconnect()
        second.disconnect()
        simulator.advance(by: 1)
        XCTAssertEqual(manager.centrals, [])
        XCTAssertEqual(
            reported.withLock { $0 },
            [["C0:FF:EE:00:CE:01"], ["C0:FF:EE:00:CE:01", "C0:FF:EE:00:CE:02"], ["C0:FF:EE:00:CE:02"], []])
    }

    func testWhoIsThereAlreadyIsThereForALaterManager() throws {
        let first = try manager()
        let link = connect("C0:FF:EE:00:CE:01")
        let second = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        simulator.run()
        XCTAssertEqual(second.centrals.count, 1)
        XCTAssertEqual(second.centrals, first.centrals)
        withExtendedLifetime(link) {}
    }

    func testNobodyIsThereWhenTheDaemonOrTheAdapterIsGone() throws {
        let manager = try manager()
        let link = connect("C0:FF:EE:00:CE:01")
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        XCTAssertEqual(manager.centrals, [])
        XCTAssertEqual(link.state, .disconnected)
        simulator.simulateDaemonReturn()
        simulator.advance(by: 5)
        _ = connect("C0:FF:EE:00:CE:01")
        XCTAssertEqual(manager.centrals.count, 1)
        simulator.simulatePowerOff()
        simulator.advance(by: 1)
        XCTAssertEqual(manager.centrals, [])
    }
}
