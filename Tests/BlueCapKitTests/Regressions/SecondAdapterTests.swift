import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A manager that had changed to another adapter went on looking for peripherals on the former one, or left its links there:
/// nothing ended them, and the peripherals did not advertise again.
final class SecondAdapterTests: XCTestCase {
    private let simulator = Simulator.inProcess(
        room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
    private let journal = Journal()

    override func setUp() { simulator.add(.strap()) }

    func testAPeripheralThatTheOtherAdapterKnowsAlreadyIsConnectedThere() throws {
        let (manager, strap) = try simulator.firstPeripheral()
        let other = try simulator.centralManager(adapter: "hci1")
        journal.watch(other.startScanning())
        simulator.advance(by: 2)

        simulator.simulateAdapterRemoval(0)
        simulator.advance(by: 2)
        XCTAssertTrue(manager.poweredOn)
        journal.watch(strap.connect())

        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 5))
        XCTAssertEqual(simulator.links.map(\.adapter), [1])
    }

    func testALinkIsNotLeftBehindWhenTheFirstAdapterReturns() throws {
        let (manager, strap) = try simulator.firstPeripheral()
        simulator.simulateAdapterRemoval(0)
        simulator.advance(by: 2)
        journal.watch(strap.connect())
        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60))

        simulator.simulateAdapterAddition()
        simulator.advance(by: 5)
        XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect])
        XCTAssertEqual(simulator.links, [])
        strap.reconnect()

        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60))
        XCTAssertEqual(simulator.links.map(\.adapter), [0])
        withExtendedLifetime(manager) {}
    }

    func testAnAttemptIsNotLeftBehindWhenTheFirstAdapterReturns() throws {
        let (manager, strap) = try simulator.firstPeripheral()
        simulator.simulateAdapterRemoval(0)
        simulator.advance(by: 20)
        journal.watch(strap.connect())
        XCTAssertTrue(simulator.advance(until: { self.simulator.statistics.count(of: "Connect") > 0 }, limit: 60))

        simulator.simulateAdapterAddition()

        XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60))
        simulator.advance(by: 10)
        XCTAssertEqual(simulator.links.map(\.adapter), [0])
        withExtendedLifetime(manager) {}
    }
}
