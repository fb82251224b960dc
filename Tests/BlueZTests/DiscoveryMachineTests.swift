import BlueCapGATT
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class DiscoveryMachineTests: RandomTestCase {
    private typealias Machine = DiscoveryMachine

    private let a = ScanID(1)
    private let b = ScanID(2)
    private let all = DiscoveryFilter()
    private let heartRate = DiscoveryFilter(uuids: [CBUUID(string: "180D")])
    private let battery = DiscoveryFilter(uuids: [CBUUID(string: "180F")])
    private let inProgress = BlueZError(name: "org.bluez.Error.InProgress", message: "Operation already in progress")
    private let failed = BlueZError(name: "org.bluez.Error.Failed", message: "No discovery started")
    private let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply")

    /// A powered adapter with one running scan.
    private func runningMachine(_ filter: DiscoveryFilter = DiscoveryFilter(), watchdog: Double? = nil) -> Machine {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(Machine.Scan(id: a, filter: filter, watchdogSeconds: watchdog))
        _ = machine.replied(1, error: nil)
        _ = machine.replied(2, error: nil)
        XCTAssertEqual(machine.session, .running(filter))
        return machine
    }

    /// A powered adapter that is called for one scan: it sets the filter.
    private var asked: Machine {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        return machine
    }

    /// The same when the filter is set: it starts discovery.
    private var starting: Machine {
        var machine = asked
        _ = machine.replied(1, error: nil)
        return machine
    }

    private func scan(_ id: ScanID, _ filter: DiscoveryFilter) -> Machine.Scan {
        Machine.Scan(id: id, filter: filter, watchdogSeconds: nil)
    }

    // MARK: Starting and stopping

    func testTheLastScanThatEndsStopsDiscoveryAndTakesTheFilterBack() {
        check(
            "the last scan that ends stops discovery and takes the filter back", runningMachine(),
            (.scanRemoved(a), [.cancelTimer(.watchdog), .stopDiscovery(3)]), (.replied(3), [.clearFilter(4)]),
            (.holds { !$0.isAtRest }, nil), (.replied(4), []), (.holds { $0.isAtRest }, nil))
    }

    func testAStopIsTriedAgainUntilItIsNotRefused() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)
        var waits: [Machine.Effect] = []
        for request in 3...9 as ClosedRange<Machine.RequestID> {
            waits += machine.replied(request, error: inProgress)
            XCTAssertEqual(machine.timerFired(.retry), [.cancelTimer(.watchdog), .stopDiscovery(request + 1)])
        }
        XCTAssertEqual(waits, [0.1, 0.25, 0.5, 1, 1, 1, 1].map { .startTimer(.retry, seconds: $0) })
        XCTAssertEqual(machine.replied(10, error: nil), [.clearFilter(11)])
    }

    func testASessionWhoseStartIsRefusedAsBusyIsStoppedAfterTheScanHasFailed() {
        var machine = asked
        var effects: [Machine.Effect] = [.setFilter(1, all)]
        _ = secondsOfRefusedStarts(&machine, &effects, stopError: inProgress, from: 1)
        XCTAssertEqual(effects.first, .report(a, .failed(inProgress)))
        guard case .call(let request, .stopDiscovery)? = effects.last else { return XCTFail("no stop: \(effects)") }
        XCTAssertEqual(machine.replied(request, error: nil), [.clearFilter(request + 1)])
    }

    func testScansStartAndStopWithTheirFilters() {
        let union = DiscoveryFilter.union([heartRate, battery])
        let unknown = BlueZError(name: "org.freedesktop.DBus.Error.UnknownMethod")
        check(
            "a scan sets the filter then starts discovery", Machine(), (.poweredOn, []),
            (.scanAdded(scan(a, heartRate)), [.setFilter(1, heartRate)]), (.replied(1), [.startDiscovery(2)]),
            (.replied(2), [.report(a, .started)]), (.holds { [self] in $0.session == .running(heartRate) }, nil))
        check(
            "a scan that comes while the filter is taken back starts after it", runningMachine(),
            (.scanRemoved(a), nil), (.replied(3), nil), (.scanAdded(scan(b, all)), []),
            (.replied(4), [.setFilter(5, all)]))
        check(
            "a second scan widens the filter without a second start", runningMachine(heartRate),
            (.scanAdded(scan(b, battery)), [.setFilter(3, union)]), (.replied(3), [.report(b, .started)]),
            (.holds { $0.session == .running(union) }, nil))
        check(
            "a second scan that needs no more joins at once", runningMachine(all),
            (.scanAdded(scan(b, heartRate)), [.report(b, .started)]))
        check(
            "ending one of two scans narrows the filter and goes on", runningMachine(heartRate),
            (.scanAdded(scan(b, battery)), nil), (.replied(3), nil), (.scanRemoved(a), [.setFilter(4, battery)]),
            (.replied(4), []), (.holds { [self] in $0.session == .running(battery) }, nil))
        check(
            "changes during a call are made up for after it", runningMachine(heartRate),
            (.scanAdded(scan(b, battery)), nil), (.scanRemoved(b), []), (.replied(3), [.setFilter(4, heartRate)]))
        check(
            "a stop during a pending start waits for its answer", starting, (.scanRemoved(a), []),
            (.replied(2), [.cancelTimer(.watchdog), .stopDiscovery(3)]))
        check(
            "a scan that ends while its filter is being set starts nothing", asked, (.scanRemoved(a), []),
            (.replied(1), [.clearFilter(2)]),
            (.replied(2), []), (.holds { $0.isAtRest }, nil))
        check(
            "a start during a pending stop waits for its answer", runningMachine(), (.scanRemoved(a), nil),
            (.scanAdded(scan(b, all)), []), (.replied(3), [.setFilter(4, all)]))
        check(
            "a stop that says there was nothing to stop is a stop", runningMachine(), (.scanRemoved(a), nil),
            (.replied(3, failed), [.clearFilter(4)]))
        check(
            "a stop that is refused as busy is tried again", runningMachine(), (.scanRemoved(a), nil),
            (.replied(3, inProgress), [.startTimer(.retry, seconds: 0.1)]),
            (.timerFired(.retry), [.cancelTimer(.watchdog), .stopDiscovery(4)]), (.replied(4), [.clearFilter(5)]))
        check(
            "a daemon without filters is used without filters", Machine(), (.poweredOn, nil),
            (.scanAdded(scan(a, heartRate)), nil), (.replied(1, unknown), [.startDiscovery(2)]))
        check(
            "answers to calls of an earlier time are ignored", asked, (.adapterLost, nil),
            (.poweredOn, [.setFilter(2, all)]),
            (.replied(1), []), (.replied(1), []), (.holds { [self] in $0.session == .settingFilter(all) }, nil))
    }

    // MARK: Refusals (A3)

    func testAnAdapterThatStaysBusyFailsTheScansWithinTwoSecondsWithTheNameOfTheError() {
        var machine = asked
        _ = machine.scanAdded(scan(b, all))
        var effects = machine.replied(1, error: nil)
        var waited = 0.0
        var starts = 0
        var steps = 0
        while case let effect? = effects.last, steps < 100 {
            steps += 1
            switch effect {
            case .call(let request, .setFilter): effects = machine.replied(request, error: nil)
            case .call(let request, .startDiscovery):
                starts += 1
                effects = machine.replied(request, error: inProgress)
            case .call(let request, .stopDiscovery): effects = machine.replied(request, error: failed)
            case .startTimer(let timer, let seconds):
                waited += seconds
                effects = machine.timerFired(timer)
            case .report(_, .failed): return XCTFail("A failure is followed by the filter's end: \(effects)")
            case .cancelTimer, .report:
                return XCTFail("unexpected \(effect)")
            }
        }
        XCTAssertEqual(starts, 5)
        XCTAssertLessThan(waited, 2)
        XCTAssertTrue(machine.isAtRest)
    }

    func testARefusedStartIsRepeatedOrFails() {
        let refused = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        let union = DiscoveryFilter.union([heartRate, battery])
        check(
            "a busy adapter is cleared once then tried again", starting,
            (.replied(2, inProgress), [.cancelTimer(.watchdog), .stopDiscovery(3)]),
            (.replied(3, failed), [.startTimer(.retry, seconds: 0.1)]), (.timerFired(.retry), [.setFilter(4, all)]),
            (.replied(4), [.startDiscovery(5)]), (.replied(5, inProgress), [.startTimer(.retry, seconds: 0.25)]),
            (.timerFired(.retry), nil), (.replied(6), nil), (.replied(7), [.report(a, .started)]))
        check(
            "another scan succeeds after a failed one", asked,
            (.replied(1), nil), (.replied(2, refused), [.report(a, .failed(refused)), .clearFilter(3)]),
            (.replied(3), nil), (.scanAdded(scan(b, all)), [.setFilter(4, all)]))
        check(
            "a start without answer is cleared lest it succeed later", starting, (.scanRemoved(a), nil),
            (.replied(2, noReply), [.cancelTimer(.watchdog), .stopDiscovery(3)]))
        check(
            "giving up during the wait cancels it", asked,
            (.replied(1), nil), (.replied(2, inProgress), nil), (.replied(3, failed), nil),
            (.scanRemoved(a), [.cancelTimer(.retry), .clearFilter(4)]), (.timerFired(.retry), []))
        check(
            "a filter that the running session refuses is given to a new one", runningMachine(heartRate),
            (.scanAdded(scan(b, battery)), nil),
            (.replied(3, inProgress), [.cancelTimer(.watchdog), .stopDiscovery(4)]),
            (.replied(4), [.setFilter(5, union)]), (.replied(5), nil),
            (.replied(6), [.report(a, .restarted(.filterRefused)), .report(b, .started)]))
    }

    // MARK: Power, adapter, daemon

    func testAScanThatRanBearsABusyAdapterUntilTheKernelHasForgottenTheDeadDaemon() {
        var machine = runningMachine()
        _ = machine.adapterLost()
        assertOutlastsTheKernelsDiscovery(&machine)
    }

    func testAScanThatWasStartingBearsABusyAdapterAsLong() {
        var machine = asked
        XCTAssertEqual(machine.replied(1, error: nil), [.startDiscovery(2)])
        _ = machine.adapterLost()
        assertOutlastsTheKernelsDiscovery(&machine)
    }

    func testAScanAfterOneThatEndedWithItsAdapterGoneIsRefusedAsSoonAsAnyOther() {
        var machine = runningMachine()
        _ = machine.adapterLost()
        _ = machine.scanRemoved(a)
        XCTAssertEqual(machine.poweredOn(), [])
        var effects = machine.scanAdded(scan(b, all))
        let waited = secondsOfRefusedStarts(&machine, &effects)
        XCTAssertEqual(waited, Machine.retryDelays.reduce(0, +), accuracy: 0.001)
        XCTAssertEqual(effects.first, .report(b, .failed(inProgress)))
    }

    /// Each start is refused as busy, and each stop fails: how long the machine waits between them, until it gives up.
    private func secondsOfRefusedStarts(
        _ machine: inout Machine, _ effects: inout [Machine.Effect], stopError: BlueZError? = nil,
        from first: Machine.RequestID = 3
    ) -> Double {
        var request = first
        var waited = 0.0
        while effects.last == .setFilter(request, all) {
            _ = machine.replied(request, error: nil)
            effects = machine.replied(request + 1, error: inProgress)
            request += 2
            if case .report(_, .failed)? = effects.first { break }
            if effects.last == .stopDiscovery(request) {
                effects = machine.replied(request, error: stopError ?? failed)
                request += 1
            }
            guard case .startTimer(.retry, let seconds)? = effects.last else { break }
            waited += seconds
            effects = machine.timerFired(.retry)
        }
        return waited
    }

    /// The adapter returns, and each start is refused as busy: the scan fails, but not before the 10.24 s are over.
    private func assertOutlastsTheKernelsDiscovery(_ machine: inout Machine) {
        var effects = machine.poweredOn()
        let waited = secondsOfRefusedStarts(&machine, &effects)
        XCTAssertGreaterThan(waited, 10.24)
        XCTAssertEqual(effects.first, .report(a, .failed(inProgress)))
    }

    func testADaemonThatDiesDuringAStartFailsNothing() {
        var machine = starting
        XCTAssertEqual(machine.replied(2, error: BlueZError(name: "org.freedesktop.DBus.Error.NoReply")).count, 2)
        _ = machine.adapterLost()
        XCTAssertEqual(machine.poweredOn(), [.setFilter(4, all)])
        _ = machine.replied(4, error: nil)
        XCTAssertEqual(machine.replied(5, error: nil), [.report(a, .started)])
    }

    func testScansOutliveTheAdapterAndTheDaemon() {
        let notReady = BlueZError(name: "org.bluez.Error.NotReady")
        check(
            "a scan before the adapter is on waits for it", Machine(), (.scanAdded(scan(a, all)), []),
            (.poweredOn, [.setFilter(1, all)]))
        check(
            "a scan goes on when the adapter returns", runningMachine(),
            (.adapterLost, [.cancelTimer(.retry), .cancelTimer(.watchdog)]),
            (.holds { $0.session == .unavailable }, nil), (.poweredOn, [.setFilter(3, all)]),
            (.replied(3), [.startDiscovery(4)]), (.replied(4), [.report(a, .restarted(.adapterReturned))]))
        check(
            "a scan that ends while the adapter is off needs no call", runningMachine(), (.adapterLost, nil),
            (.scanRemoved(a), []), (.poweredOn, []), (.holds { $0.isAtRest }, nil))
        check(
            "an adapter that is not ready yet is asked again", asked,
            (.replied(1, notReady), [.startTimer(.retry, seconds: 0.1)]),
            (.timerFired(.retry), [.setFilter(2, all)]))
    }

    // MARK: Sessions that end without a request (A4)

    func testSessionsThatDieAgainAndAgainAreNotStartedInALoop() {
        var machine = runningMachine()
        var request: DiscoveryMachine.RequestID = 3
        var delays: [Double] = []
        for _ in 0..<8 {
            _ = machine.discoveringChanged(false)
            var effects = machine.replied(request, error: failed)
            if case .startTimer(.retry, let seconds)? = effects.first {
                delays.append(seconds)
                effects = machine.timerFired(.retry)
            }
            XCTAssertEqual(effects, [.setFilter(request + 1, all)])
            _ = machine.replied(request + 1, error: nil)
            _ = machine.replied(request + 2, error: nil)
            request += 3
        }
        XCTAssertEqual(delays, [1, 2, 4, 8, 16, 30, 30])
    }

    func testADiscoveredDeviceResetsTheWatchdog() {
        var machine = runningMachine(watchdog: 90)
        for _ in 0..<10 {
            XCTAssertEqual(machine.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)])
            XCTAssertEqual(machine.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)])
            machine.received()
        }
    }

    func testAQuietRoomIsDisturbedLessAndLess() {
        var machine = runningMachine(watchdog: 90)
        var ticksUntilRestart: [Int] = []
        var request: DiscoveryMachine.RequestID = 3
        for _ in 0..<5 {
            var ticks = 1
            while machine.timerFired(.watchdog) == [.startTimer(.watchdog, seconds: 30)] { ticks += 1 }
            ticksUntilRestart.append(ticks)
            if machine.replied(request, error: nil) != [.setFilter(request + 1, all)] {
                _ = machine.timerFired(.retry)
            }
            _ = machine.replied(request + 1, error: nil)
            _ = machine.replied(request + 2, error: nil)
            request += 3
        }
        XCTAssertEqual(ticksUntilRestart, [3, 6, 12, 24, 24])
    }

    func testASessionThatEndsIsStartedAgain() {
        check(
            "discovering that ends by itself is started again", runningMachine(), (.discoveringChanged(true), []),
            (.discoveringChanged(false), [.cancelTimer(.watchdog), .stopDiscovery(3)]),
            (.replied(3, failed), [.setFilter(4, all)]), (.replied(4), nil),
            (.replied(5), [.report(a, .restarted(.discoveringEnded))]))
        check(
            "the echo of the last session does not end the next", runningMachine(), (.scanRemoved(a), nil),
            (.scanAdded(scan(b, all)), nil), (.replied(3), nil), (.discoveringChanged(false), []), (.replied(4), nil),
            (.discoveringChanged(false), []), (.replied(5), [.report(b, .started)]))
        check(
            "silence restarts the session after the watchdogs time", Machine(), (.poweredOn, nil),
            (.scanAdded(Machine.Scan(id: a, filter: all, watchdogSeconds: 90)), nil), (.replied(1), nil),
            (.replied(2), [.startTimer(.watchdog, seconds: 30), .report(a, .started)]),
            (.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)]),
            (.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)]),
            (.timerFired(.watchdog), [.cancelTimer(.watchdog), .stopDiscovery(3)]), (.replied(3), nil),
            (.replied(4), nil),
            (.replied(5), [.startTimer(.watchdog, seconds: 30), .report(a, .restarted(.silence))]))
        check(
            "the watchdog can be off", asked,
            (.replied(1), nil), (.replied(2), [.report(a, .started)]))
        check(
            "a scan with a watchdog brings it along", runningMachine(),
            (
                .scanAdded(Machine.Scan(id: b, filter: all, watchdogSeconds: 9)),
                [.report(b, .started), .startTimer(.watchdog, seconds: 3)]
            ))
    }

    // MARK: A law

    /// In any order of events there is one call at a time, and no session remains without a scan.
    func testAnyOrderOfEventsEndsAtRestWithoutScans() {
        var random = TestRandom(self)
        for round in 0..<300 {
            var daemon = SessionKeeper()
            var machine = Machine()
            daemon.perform(machine.poweredOn())
            for _ in 0..<60 {
                switch random.next() % 9 {
                case 0: daemon.perform(machine.scanAdded(Machine.Scan(id: ScanID(random.next() % 3 + 10), filter: all)))
                case 1: daemon.perform(machine.scanAdded(scan(ScanID(random.next() % 3), heartRate)))
                case 2: daemon.perform(machine.scanRemoved(ScanID(random.next() % 3)))
                case 3: daemon.perform(machine.scanRemoved(ScanID(random.next() % 3 + 10)))
                case 4: daemon.perform(machine.discoveringChanged(random.next() % 2 == 0))
                case 5: daemon.perform(machine.timerFired(random.next() % 2 == 0 ? .retry : .watchdog))
                case 6:
                    daemon.powerOff()
                    daemon.perform(machine.adapterLost())
                    daemon.perform(machine.poweredOn())
                default: daemon.answerOne(&machine, refuses: random.next() % 4 == 0)
                }
            }
            while let scan = machine.scans.first { daemon.perform(machine.scanRemoved(scan.id)) }
            for _ in 0..<50 {
                daemon.answerOne(&machine, refuses: false)
                daemon.perform(machine.timerFired(.retry))
            }
            XCTAssertTrue(machine.isAtRest, "round \(round): \(machine.session)")
            XCTAssertFalse(daemon.isDiscovering, "round \(round)")
            XCTAssertFalse(daemon.hasFilter, "round \(round)")
        }
    }
}

extension DiscoveryMachine {
    /// Whether there are no scans and nothing is left in BlueZ.
    var isAtRest: Bool { scans.isEmpty && (session == .idle || session == .unavailable) }
}

extension DiscoveryMachine.Effect {
    static func setFilter(_ request: DiscoveryMachine.RequestID, _ filter: DiscoveryFilter) -> Self {
        .call(request, .setFilter(filter))
    }

    static func clearFilter(_ request: DiscoveryMachine.RequestID) -> Self { .call(request, .setFilter(nil)) }
    static func startDiscovery(_ request: DiscoveryMachine.RequestID) -> Self { .call(request, .startDiscovery) }
    static func stopDiscovery(_ request: DiscoveryMachine.RequestID) -> Self { .call(request, .stopDiscovery) }
}

/// Replies to calls in order and keeps a session as BlueZ does.
private struct SessionKeeper {
    private var calls: [(request: DiscoveryMachine.RequestID, call: DiscoveryMachine.Call)] = []
    private(set) var isDiscovering = false
    private(set) var hasFilter = false

    mutating func perform(_ effects: [DiscoveryMachine.Effect]) {
        for case .call(let request, let call) in effects { calls.append((request, call)) }
    }

    mutating func powerOff() {
        isDiscovering = false
        hasFilter = false
        calls = []
    }

    mutating func answerOne(_ machine: inout DiscoveryMachine, refuses: Bool) {
        guard !calls.isEmpty else { return }
        let busy = BlueZError(name: "org.bluez.Error.InProgress")
        let (request, call) = calls.removeFirst()
        switch call {
        case .setFilter(let filter):
            hasFilter = filter != nil
            perform(machine.replied(request, error: nil))
        case .startDiscovery:
            let error = refuses || isDiscovering ? busy : nil
            if error == nil { isDiscovering = true }
            perform(machine.replied(request, error: error))
        case .stopDiscovery:
            if !refuses { isDiscovering = false }
            perform(machine.replied(request, error: refuses ? busy : nil))
        }
    }
}
