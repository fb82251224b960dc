import BlueCapKit
import TestSupport
import XCTest

/// What becomes of a manager's state when real `bluetoothd` and its adapter come and go.
final class RadioStateTests: XCTestCase {
    private let journal = Journal()

    private func manager(on stage: RadioStage) throws -> CentralManager {
        let manager = try CentralManager(configuration: stage.centralConfiguration)
        journal.watchStates(of: manager)
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.contains(.poweredOn) }, manager.stateExplanation)
        return manager
    }

    override func tearDownWithError() throws { try RadioLab.reset() }

    func testAKilledDaemonIsResettingUntilItReturns() throws {
        let stage = try RadioStage()
        let manager = try manager(on: stage)

        try RadioLab.order(.server, "bluetoothd", "kill")
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.last == .resetting }, "\(journal.states)")
        try RadioLab.order(.server, "bluetoothd", "start")
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.last == .poweredOn }, "\(journal.states)")

        XCTAssertEqual(journal.states, [.poweredOn, .resetting, .poweredOn])
        XCTAssertEqual(manager.state, .poweredOn)
    }

    func testADaemonThatIsStoppedIsResettingToo() throws {
        let stage = try RadioStage()
        let manager = try manager(on: stage)

        try RadioLab.order(.server, "bluetoothd", "stop")
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.last == .resetting }, "\(journal.states)")
        XCTAssertEqual(manager.state, .resetting)
    }

    func testARadioThatIsBlockedIsPoweredOff() throws {
        let stage = try RadioStage()
        let manager = try manager(on: stage)

        try RadioLab.order(.server, "power", "hci0", "block")
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.last == .poweredOff }, "\(journal.states)")
        XCTAssertEqual(manager.state, .poweredOff)
    }

    func testAManagerThatBeginsWithoutADaemonIsPoweredOnWhenItComes() throws {
        let stage = try RadioStage()
        try RadioLab.order(.server, "bluetoothd", "kill")

        let manager = try CentralManager(configuration: stage.centralConfiguration)
        journal.watchStates(of: manager)
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.contains(.unsupported) }, "\(journal.states)")
        try RadioLab.order(.server, "bluetoothd", "start")
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.last == .poweredOn }, "\(journal.states)")
        XCTAssertEqual(manager.state, .poweredOn)
    }
}
