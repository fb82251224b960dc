import BlueCapBlueZ
import BlueCapDBus
import XCTest

@testable import BlueCapKit

final class ManagerStateMachineTests: XCTestCase {
    private typealias Event = ManagerStateMachine.Event
    private typealias Effect = ManagerStateMachine.Effect

    /// Runs the events and gives, for each, the state afterwards and what was to be done.
    private func states(_ events: [Event]) -> [ManagerState] {
        var machine = ManagerStateMachine()
        return events.map { event in
            _ = machine.event(event)
            return machine.state
        }
    }

    func testNobodyHasAnsweredYet() {
        XCTAssertEqual(ManagerStateMachine().state, .unknown)
        XCTAssertEqual(states([.reached(.connecting), .reached(.loading)]), [.unknown, .unknown])
    }

    func testWithoutBusOrDaemonOrAdapterItIsUnsupported() {
        XCTAssertEqual(
            states([.reached(.noBus(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: "")))]),
            [.unsupported])
        XCTAssertEqual(states([.reached(.noDaemon)]), [.unsupported])
        XCTAssertEqual(states([.reached(.ready)]), [.unsupported])
    }

    func testANewTryDoesNotHideThatThereIsNothing() {
        XCTAssertEqual(
            states([
                .reached(.noBus(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: ""))),
                .reached(.connecting),
            ])
            .last, .unsupported)
    }

    func testARefusalIsUnauthorized() {
        XCTAssertEqual(
            states([
                .reached(.loading),
                .reached(.refused(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: ""))),
            ]).last,
            .unauthorized)
        XCTAssertEqual(
            states([
                .reached(.refused(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: ""))),
                .reached(.connecting),
            ])
            .last, .unauthorized)
    }

    func testPowerDecidesOnceReady() {
        XCTAssertEqual(
            states([.reached(.ready), .adapterPower(false), .adapterPower(true), .adapterPower(nil)]),
            [.unsupported, .poweredOff, .poweredOn, .unsupported])
    }

    func testADaemonThatGoesAwayIsResettingUntilItIsBack() {
        XCTAssertEqual(
            states([
                .reached(.ready), .adapterPower(true), .reached(.noDaemon), .reached(.loading), .reached(.ready),
                .adapterPower(true),
            ]),
            [.unsupported, .poweredOn, .resetting, .resetting, .resetting, .poweredOn])
    }

    func testABusThatGoesAwayIsResettingToo() {
        XCTAssertEqual(
            states([
                .reached(.ready), .adapterPower(true),
                .reached(.noBus(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: ""))),
                .reached(.connecting),
            ]).last, .resetting)
    }

    func testADaemonReplacedWithoutAGapIsResetting() {
        XCTAssertEqual(states([.reached(.ready), .adapterPower(true), .reached(.loading)]).last, .resetting)
    }

    func testAReturningDaemonHasTimeToFindItsAdapter() {
        var machine = ManagerStateMachine()
        for event: Event in [.reached(.ready), .adapterPower(true), .reached(.noDaemon)] { _ = machine.event(event) }
        XCTAssertEqual(machine.event(.reached(.ready)), [.startGrace])
        XCTAssertEqual(machine.event(.adapterPower(nil)), [])
        XCTAssertEqual(machine.state, .resetting)
        XCTAssertEqual(machine.event(.adapterPower(false)), [.cancelGrace, .announce(.poweredOff)])
    }

    func testAfterTheGraceTimeThereIsNoAdapter() {
        var machine = ManagerStateMachine()
        for event: Event in [.reached(.ready), .adapterPower(true), .reached(.noDaemon), .reached(.ready)] {
            _ = machine.event(event)
        }
        XCTAssertEqual(machine.event(.graceEnded), [.announce(.unsupported)])
    }

    func testADaemonLostDuringTheGraceTimeEndsIt() {
        var machine = ManagerStateMachine()
        for event: Event in [.reached(.ready), .adapterPower(true), .reached(.noDaemon), .reached(.ready)] {
            _ = machine.event(event)
        }
        XCTAssertEqual(machine.event(.reached(.noDaemon)), [.cancelGrace])
        XCTAssertEqual(machine.state, .resetting)
    }

    func testEachStateIsAnnouncedOnce() {
        var machine = ManagerStateMachine()
        _ = machine.event(.reached(.ready))
        XCTAssertEqual(machine.event(.adapterPower(true)), [.announce(.poweredOn)])
        XCTAssertEqual(machine.event(.adapterPower(true)), [])
    }
}
