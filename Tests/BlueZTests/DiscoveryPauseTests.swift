import TestSupport
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
        _ = machine.scanAdded(Machine.Scan(id: a, filter: all, watchdogSeconds: 90))
        _ = machine.replied(1, error: nil)
        _ = machine.replied(2, error: nil)
        XCTAssertEqual(machine.session, .running(all))
        return machine
    }

    func testScansRestDuringAPause() {
        check(
            "a pause stops the session and keeps scans and filter", runningMachine(),
            (.paused(true), [.cancelTimer(.watchdog), .stopDiscovery(3)]), (.replied(3), []),
            (.holds { $0.isSettled }, nil), (.holds { !$0.isAtRest }, nil), (.discoveringChanged(false), []))
        check(
            "the end of a pause starts the session again in silence", runningMachine(), (.paused(true), nil),
            (.replied(3), nil), (.paused(false), [.setFilter(4, all)]), (.replied(4), [.startDiscovery(5)]),
            (.replied(5), [.startTimer(.watchdog, seconds: 30)]),
            (.holds { [self] in $0.session == .running(all) }, nil))
        check(
            "a pause during a pause changes nothing", runningMachine(), (.paused(false), []), (.paused(true), nil),
            (.paused(true), []), (.replied(3), nil), (.paused(false), [.setFilter(4, all)]), (.paused(false), []))
        check(
            "a pause that ends before the stop is answered starts again after it", runningMachine(),
            (.paused(true), nil), (.paused(false), []), (.replied(3), [.setFilter(4, all)]))
        check(
            "a pause during a start stops what has started", Machine(), (.poweredOn, nil),
            (.scanAdded(Machine.Scan(id: a, filter: all, watchdogSeconds: nil)), nil), (.paused(true), []),
            (.replied(1), []),
            (.holds { $0.session == .idle }, nil), (.paused(false), [.setFilter(2, all)]), (.replied(2), nil),
            (.paused(true), []), (.replied(3), [.report(a, .started), .cancelTimer(.watchdog), .stopDiscovery(4)]))
        check(
            "a refused stop is tried again while the pause lasts", runningMachine(), (.paused(true), nil),
            (.replied(3, inProgress), [.startTimer(.retry, seconds: Machine.retryDelays[0])]),
            (.timerFired(.retry), [.cancelTimer(.watchdog), .stopDiscovery(4)]))
        check(
            "scans that end during a pause leave nothing behind", runningMachine(), (.paused(true), nil),
            (.replied(3), nil), (.scanRemoved(a), [.clearFilter(4)]), (.replied(4), nil),
            (.holds { $0.isAtRest }, nil), (.paused(false), []))
        check(
            "an adapter that comes back during a pause is left alone", runningMachine(), (.paused(true), nil),
            (.adapterLost, nil), (.poweredOn, []), (.paused(false), [.setFilter(4, all)]))
    }
}
