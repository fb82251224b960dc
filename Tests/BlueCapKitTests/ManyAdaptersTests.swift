import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

/// With many adapters the effort grew with the cube of their number, and the tool gave up with "The adapter hci0 is on."
final class ManyAdaptersTests: XCTestCase {
    private static let many = 1_000
    /// The simulator looks at all its adapters when one comes.
    private static let several = 200

    private func adapters(_ indices: Range<Int>) -> [VirtualAdapter] { indices.map { VirtualAdapter(index: $0) } }

    private func manager(_ simulator: Simulator, _ adapter: String? = nil) -> CentralManager {
        try! CentralManager(configuration: .init(busAddress: simulator.address, adapter: adapter))
    }

    private func examined(by manager: CentralManager) -> Int {
        manager.session.core.withLock { $0.shell.choice.examined }
    }

    func testEachAdapterThatIsThereIsExaminedAFewTimes() throws {
        let simulator = Simulator.inProcess(room: .empty, adapters: adapters(0..<Self.many))
        let central = manager(simulator)
        let last = manager(simulator, "hci\(Self.many - 1)")
        let missing = manager(simulator, "hci\(Self.many)")
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(
            simulator.advance(until: { central.poweredOn && last.poweredOn && peripheral.poweredOn }, limit: 5))
        XCTAssertEqual(missing.state, .unsupported)
        for manager in [central, last, missing] {
            XCTAssertLessThanOrEqual(examined(by: manager), 5 * Self.many)
        }
        XCTAssertLessThanOrEqual(
            peripheral.session.core.withLock { $0.shell.choice.examined }, 5 * Self.many)
    }

    func testEachAdapterThatComesIsExaminedAFewTimes() {
        let simulator = Simulator.inProcess(room: .empty)
        let central = manager(simulator)
        XCTAssertTrue(simulator.advance(until: { central.poweredOn }, limit: 5))
        let before = examined(by: central)
        for adapter in adapters(1..<Self.several) { simulator.simulateAdapterAddition(adapter) }
        simulator.run()
        XCTAssertEqual(simulator.adapters.count, Self.several)
        // Each adapter has several reports: of its object, of its power.
        XCTAssertLessThanOrEqual(examined(by: central) - before, 5 * Self.several)
        XCTAssertTrue(central.stateExplanation.contains("hci0"), central.stateExplanation)

        simulator.simulateAdapterRemoval(0)
        simulator.advance(by: 2)
        XCTAssertTrue(central.stateExplanation.contains("hci1 "), central.stateExplanation)
    }

    func testAWantedAdapterIsFoundAmongThoseThatCome() {
        let simulator = Simulator.inProcess(room: .empty)
        let central = manager(simulator, "hci7")
        simulator.advance(by: 1)
        XCTAssertTrue(central.stateExplanation.contains("choose among hci0."), central.stateExplanation)
        for adapter in adapters(1..<7) { simulator.simulateAdapterAddition(adapter) }
        simulator.advance(by: 1)
        XCTAssertTrue(central.stateExplanation.contains("hci0, hci1, hci2"), central.stateExplanation)
        XCTAssertFalse(central.poweredOn)
        simulator.simulateAdapterAddition(VirtualAdapter(index: 7))
        XCTAssertTrue(simulator.advance(until: { central.poweredOn }, limit: 5))
    }

    // MARK: The sentence

    /// While the objects are being read the state is not known, whatever is known of the adapters.
    func testAnAdapterIsNotSaidToBeOnBeforeTheManagerIs() {
        let simulator = Simulator.inProcess(room: .empty)
        let central = manager(simulator)
        let watcher = Watcher(central)
        let observation = BlueZClient.shared(at: simulator.address).observe(watcher)
        simulator.advance(by: 1)
        XCTAssertTrue(central.poweredOn)
        XCTAssertFalse(watcher.standings.isEmpty)
        for (state, explanation) in watcher.standings {
            XCTAssertEqual(state == .poweredOn, explanation.contains("is on."), "\(state): \(explanation)")
        }
        observation.cancel()
    }

    func testAManagerThatWasResetDoesNotSayThatTheAdapterIsOn() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let central = manager(simulator)
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { central.poweredOn && peripheral.poweredOn }, limit: 5))
        central.reset()
        peripheral.reset()
        for (state, explanation) in [central.standing, peripheral.standing] {
            XCTAssertEqual(state == .poweredOn, explanation.contains("is on."), "\(state): \(explanation)")
        }
        XCTAssertTrue(simulator.advance(until: { central.poweredOn && peripheral.poweredOn }, limit: 5))
        XCTAssertTrue(central.stateExplanation.contains("is on."), central.stateExplanation)
    }
}

/// Records a manager's state at each report; the manager receives the report first.
private final class Watcher: BlueZObserver, @unchecked Sendable {
    // Unchecked because it is on the test's thread.
    private let manager: CentralManager
    private(set) var standings: [(state: ManagerState, explanation: String)] = []

    init(_ manager: CentralManager) { self.manager = manager }

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        standings.append(manager.standing)
    }

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) { standings.append(manager.standing) }
    func batchEnded() {}
}
