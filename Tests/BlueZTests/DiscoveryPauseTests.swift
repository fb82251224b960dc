import XCTest

@testable import BlueCapBlueZ

final class DiscoveryPauseTests: XCTestCase {
    private typealias Machine = DiscoveryMachine

    private let a = ScanID(1)
    private let all = DiscoveryFilter()
    private let inProgress = BlueZError(name: "org.bluez.Error.InProgress", message: "Operation already in progress")

    private func runningMachine() -> Machine {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(Machine.Scan(a, all, watchdogSeconds: 90))
        _ = machine.replied(1, error: nil)
        _ = machine.replied(2, error: nil)
        XCTAssertEqual(machine.session, .running(all))
        return machine
    }

    func testAPauseStopsTheSessionAndKeepsScansAndFilter() {
        var machine = runningMachine()
        XCTAssertEqual(machine.paused(true), [.cancelTimer(.watchdog), .stopDiscovery(3)])
        XCTAssertEqual(machine.replied(3, error: nil), [])
        XCTAssertTrue(machine.isSettled)
        XCTAssertFalse(machine.isAtRest)
        XCTAssertEqual(machine.discoveringChanged(false), [])
    }

    func testTheEndOfAPauseStartsTheSessionAgainInSilence() {
        var machine = runningMachine()
        _ = machine.paused(true)
        _ = machine.replied(3, error: nil)
        XCTAssertEqual(machine.paused(false), [.setFilter(4, all)])
        XCTAssertEqual(machine.replied(4, error: nil), [.startDiscovery(5)])
        XCTAssertEqual(machine.replied(5, error: nil), [.startTimer(.watchdog, seconds: 30)])
        XCTAssertEqual(machine.session, .running(all))
    }

    func testAPauseDuringAPauseChangesNothing() {
        var machine = runningMachine()
        XCTAssertEqual(machine.paused(false), [])
        _ = machine.paused(true)
        XCTAssertEqual(machine.paused(true), [])
        _ = machine.replied(3, error: nil)
        XCTAssertEqual(machine.paused(false), [.setFilter(4, all)])
        XCTAssertEqual(machine.paused(false), [])
    }

    func testAPauseThatEndsBeforeTheStopIsAnsweredStartsAgainAfterIt() {
        var machine = runningMachine()
        _ = machine.paused(true)
        XCTAssertEqual(machine.paused(false), [])
        XCTAssertEqual(machine.replied(3, error: nil), [.setFilter(4, all)])
    }

    func testAPauseDuringAStartStopsWhatHasStarted() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(Machine.Scan(a, all, watchdogSeconds: nil))
        XCTAssertEqual(machine.paused(true), [])
        XCTAssertEqual(machine.replied(1, error: nil), [])
        XCTAssertEqual(machine.session, .idle)
        XCTAssertEqual(machine.paused(false), [.setFilter(2, all)])
        _ = machine.replied(2, error: nil)
        XCTAssertEqual(machine.paused(true), [])
        XCTAssertEqual(
            machine.replied(3, error: nil), [.report(a, .started), .cancelTimer(.watchdog), .stopDiscovery(4)])
    }

    func testARefusedStopIsTriedAgainWhileThePauseLasts() {
        var machine = runningMachine()
        _ = machine.paused(true)
        XCTAssertEqual(
            machine.replied(3, error: inProgress), [.startTimer(.retry, seconds: Machine.retryDelays[0])])
        XCTAssertEqual(machine.timerFired(.retry), [.cancelTimer(.watchdog), .stopDiscovery(4)])
    }

    func testScansThatEndDuringAPauseLeaveNothingBehind() {
        var machine = runningMachine()
        _ = machine.paused(true)
        _ = machine.replied(3, error: nil)
        XCTAssertEqual(machine.scanRemoved(a), [.clearFilter(4)])
        _ = machine.replied(4, error: nil)
        XCTAssertTrue(machine.isAtRest)
        XCTAssertEqual(machine.paused(false), [])
    }

    func testAnAdapterThatComesBackDuringAPauseIsLeftAlone() {
        var machine = runningMachine()
        _ = machine.paused(true)
        _ = machine.adapterLost()
        XCTAssertEqual(machine.poweredOn(), [])
        XCTAssertEqual(machine.paused(false), [.setFilter(4, all)])
    }
}
