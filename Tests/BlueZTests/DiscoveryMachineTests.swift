import BlueCapGATT
import TestRandomness
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
        _ = machine.scanAdded(Machine.Scan(a, filter, watchdogSeconds: watchdog))
        _ = machine.replied(1, error: nil)
        _ = machine.replied(2, error: nil)
        XCTAssertEqual(machine.session, .running(filter))
        return machine
    }

    private func scan(_ id: ScanID, _ filter: DiscoveryFilter) -> Machine.Scan {
        Machine.Scan(id, filter, watchdogSeconds: nil)
    }

    // MARK: Starting and stopping

    func testAScanSetsTheFilterThenStartsDiscovery() {
        var machine = Machine()
        XCTAssertEqual(machine.poweredOn(), [])

        XCTAssertEqual(machine.scanAdded(scan(a, heartRate)), [.setFilter(1, heartRate)])
        XCTAssertEqual(machine.replied(1, error: nil), [.startDiscovery(2)])
        XCTAssertEqual(machine.replied(2, error: nil), [.report(a, .started)])
        XCTAssertEqual(machine.session, .running(heartRate))
    }

    func testTheLastScanThatEndsStopsDiscoveryAndTakesTheFilterBack() {
        var machine = runningMachine()

        XCTAssertEqual(machine.scanRemoved(a), [.cancelTimer(.watchdog), .stopDiscovery(3)])
        XCTAssertEqual(machine.replied(3, error: nil), [.clearFilter(4)])
        XCTAssertFalse(machine.isAtRest)
        XCTAssertEqual(machine.replied(4, error: nil), [])
        XCTAssertTrue(machine.isAtRest)
    }

    func testAScanThatComesWhileTheFilterIsTakenBackStartsAfterIt() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)
        _ = machine.replied(3, error: nil)

        XCTAssertEqual(machine.scanAdded(scan(b, all)), [])
        XCTAssertEqual(machine.replied(4, error: nil), [.setFilter(5, all)])
    }

    func testASecondScanWidensTheFilterWithoutASecondStart() {
        var machine = runningMachine(heartRate)
        let union = DiscoveryFilter.union([heartRate, battery])

        XCTAssertEqual(machine.scanAdded(scan(b, battery)), [.setFilter(3, union)])
        XCTAssertEqual(machine.replied(3, error: nil), [.report(b, .started)])
        XCTAssertEqual(machine.session, .running(union))
    }

    func testASecondScanThatNeedsNoMoreJoinsAtOnce() {
        var machine = runningMachine(all)
        XCTAssertEqual(machine.scanAdded(scan(b, heartRate)), [.report(b, .started)])
    }

    func testEndingOneOfTwoScansNarrowsTheFilterAndGoesOn() {
        var machine = runningMachine(heartRate)
        _ = machine.scanAdded(scan(b, battery))
        _ = machine.replied(3, error: nil)

        XCTAssertEqual(machine.scanRemoved(a), [.setFilter(4, battery)])
        XCTAssertEqual(machine.replied(4, error: nil), [])
        XCTAssertEqual(machine.session, .running(battery))
    }

    func testChangesDuringACallAreMadeUpForAfterIt() {
        var machine = runningMachine(heartRate)
        _ = machine.scanAdded(scan(b, battery))
        XCTAssertEqual(machine.scanRemoved(b), [])

        XCTAssertEqual(machine.replied(3, error: nil), [.setFilter(4, heartRate)])
    }

    func testAStopDuringAPendingStartWaitsForItsAnswer() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)

        XCTAssertEqual(machine.scanRemoved(a), [])
        XCTAssertEqual(machine.replied(2, error: nil), [.cancelTimer(.watchdog), .stopDiscovery(3)])
    }

    func testAScanThatEndsWhileItsFilterIsBeingSetStartsNothing() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        XCTAssertEqual(machine.scanRemoved(a), [])
        XCTAssertEqual(machine.replied(1, error: nil), [.clearFilter(2)])
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertTrue(machine.isAtRest)
    }

    func testAStartDuringAPendingStopWaitsForItsAnswer() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)

        XCTAssertEqual(machine.scanAdded(scan(b, all)), [])
        XCTAssertEqual(machine.replied(3, error: nil), [.setFilter(4, all)])
    }

    func testAStopThatSaysThereWasNothingToStopIsAStop() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)
        XCTAssertEqual(machine.replied(3, error: failed), [.clearFilter(4)])
    }

    func testAStopThatIsRefusedAsBusyIsTriedAgain() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)
        XCTAssertEqual(machine.replied(3, error: inProgress), [.startTimer(.retry, seconds: 0.1)])
        XCTAssertEqual(machine.timerFired(.retry), [.cancelTimer(.watchdog), .stopDiscovery(4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.clearFilter(5)])
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
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        var effects: [Machine.Effect] = [.setFilter(1, all)]
        _ = secondsOfRefusedStarts(&machine, &effects, stopError: inProgress, from: 1)
        XCTAssertEqual(effects.first, .report(a, .failed(inProgress)))
        guard case .call(let request, .stopDiscovery)? = effects.last else { return XCTFail("no stop: \(effects)") }
        XCTAssertEqual(machine.replied(request, error: nil), [.clearFilter(request + 1)])
    }

    func testADaemonWithoutFiltersIsUsedWithoutFilters() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, heartRate))
        let unknown = BlueZError(name: "org.freedesktop.DBus.Error.UnknownMethod")
        XCTAssertEqual(machine.replied(1, error: unknown), [.startDiscovery(2)])
    }

    func testAnswersToCallsOfAnEarlierTimeAreIgnored() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.adapterLost()
        XCTAssertEqual(machine.poweredOn(), [.setFilter(2, all)])

        XCTAssertEqual(machine.replied(1, error: nil), [])
        XCTAssertEqual(machine.replied(1, error: nil), [])
        XCTAssertEqual(machine.session, .settingFilter(all))
    }

    // MARK: Refusals (A3)

    func testABusyAdapterIsClearedOnceThenTriedAgain() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)

        XCTAssertEqual(machine.replied(2, error: inProgress), [.cancelTimer(.watchdog), .stopDiscovery(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.startTimer(.retry, seconds: 0.1)])
        XCTAssertEqual(machine.timerFired(.retry), [.setFilter(4, all)])
        XCTAssertEqual(machine.replied(4, error: nil), [.startDiscovery(5)])
        XCTAssertEqual(machine.replied(5, error: inProgress), [.startTimer(.retry, seconds: 0.25)])
        _ = machine.timerFired(.retry)
        _ = machine.replied(6, error: nil)
        XCTAssertEqual(machine.replied(7, error: nil), [.report(a, .started)])
    }

    func testAnAdapterThatStaysBusyFailsTheScansWithinTwoSecondsWithTheNameOfTheError() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
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

    func testAnotherScanSucceedsAfterAFailedOne() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)
        let refused = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        XCTAssertEqual(machine.replied(2, error: refused), [.report(a, .failed(refused)), .clearFilter(3)])
        _ = machine.replied(3, error: nil)

        XCTAssertEqual(machine.scanAdded(scan(b, all)), [.setFilter(4, all)])
    }

    func testAStartWithoutAnswerIsClearedLestItSucceedLater() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)
        _ = machine.scanRemoved(a)
        XCTAssertEqual(machine.replied(2, error: noReply), [.cancelTimer(.watchdog), .stopDiscovery(3)])
    }

    func testGivingUpDuringTheWaitCancelsIt() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)
        _ = machine.replied(2, error: inProgress)
        _ = machine.replied(3, error: failed)

        XCTAssertEqual(machine.scanRemoved(a), [.cancelTimer(.retry), .clearFilter(4)])
        XCTAssertEqual(machine.timerFired(.retry), [])
    }

    func testAFilterThatTheRunningSessionRefusesIsGivenToANewOne() {
        var machine = runningMachine(heartRate)
        _ = machine.scanAdded(scan(b, battery))
        XCTAssertEqual(machine.replied(3, error: inProgress), [.cancelTimer(.watchdog), .stopDiscovery(4)])
        let union = DiscoveryFilter.union([heartRate, battery])
        XCTAssertEqual(machine.replied(4, error: nil), [.setFilter(5, union)])
        _ = machine.replied(5, error: nil)
        XCTAssertEqual(
            machine.replied(6, error: nil), [.report(a, .restarted(.filterRefused)), .report(b, .started)])
    }

    // MARK: Power, adapter, daemon

    func testAScanBeforeTheAdapterIsOnWaitsForIt() {
        var machine = Machine()
        XCTAssertEqual(machine.scanAdded(scan(a, all)), [])
        XCTAssertEqual(machine.poweredOn(), [.setFilter(1, all)])
    }

    func testAScanGoesOnWhenTheAdapterReturns() {
        var machine = runningMachine()
        XCTAssertEqual(machine.adapterLost(), [.cancelTimer(.retry), .cancelTimer(.watchdog)])
        XCTAssertEqual(machine.session, .unavailable)

        XCTAssertEqual(machine.poweredOn(), [.setFilter(3, all)])
        XCTAssertEqual(machine.replied(3, error: nil), [.startDiscovery(4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.report(a, .restarted(.adapterReturned))])
    }

    func testAScanThatRanBearsABusyAdapterUntilTheKernelHasForgottenTheDeadDaemon() {
        var machine = runningMachine()
        _ = machine.adapterLost()
        assertOutlastsTheKernelsDiscovery(&machine)
    }

    func testAScanThatWasStartingBearsABusyAdapterAsLong() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
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

    func testAScanThatEndsWhileTheAdapterIsOffNeedsNoCall() {
        var machine = runningMachine()
        _ = machine.adapterLost()
        XCTAssertEqual(machine.scanRemoved(a), [])
        XCTAssertEqual(machine.poweredOn(), [])
        XCTAssertTrue(machine.isAtRest)
    }

    func testAnAdapterThatIsNotReadyYetIsAskedAgain() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        let notReady = BlueZError(name: "org.bluez.Error.NotReady")
        XCTAssertEqual(machine.replied(1, error: notReady), [.startTimer(.retry, seconds: 0.1)])
        XCTAssertEqual(machine.timerFired(.retry), [.setFilter(2, all)])
    }

    func testADaemonThatDiesDuringAStartFailsNothing() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.replied(2, error: BlueZError(name: "org.freedesktop.DBus.Error.NoReply")).count, 2)
        _ = machine.adapterLost()
        XCTAssertEqual(machine.poweredOn(), [.setFilter(4, all)])
        _ = machine.replied(4, error: nil)
        XCTAssertEqual(machine.replied(5, error: nil), [.report(a, .started)])
    }

    // MARK: Sessions that end without a request (A4)

    func testDiscoveringThatEndsByItselfIsStartedAgain() {
        var machine = runningMachine()
        XCTAssertEqual(machine.discoveringChanged(true), [])
        XCTAssertEqual(machine.discoveringChanged(false), [.cancelTimer(.watchdog), .stopDiscovery(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.setFilter(4, all)])
        _ = machine.replied(4, error: nil)
        XCTAssertEqual(machine.replied(5, error: nil), [.report(a, .restarted(.discoveringEnded))])
    }

    func testTheEchoOfTheLastSessionDoesNotEndTheNext() {
        var machine = runningMachine()
        _ = machine.scanRemoved(a)
        _ = machine.scanAdded(scan(b, all))
        _ = machine.replied(3, error: nil)
        XCTAssertEqual(machine.discoveringChanged(false), [])
        _ = machine.replied(4, error: nil)
        XCTAssertEqual(machine.discoveringChanged(false), [])
        XCTAssertEqual(machine.replied(5, error: nil), [.report(b, .started)])
    }

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

    func testSilenceRestartsTheSessionAfterTheWatchdogsTime() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(Machine.Scan(a, all, watchdogSeconds: 90))
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(
            machine.replied(2, error: nil), [.startTimer(.watchdog, seconds: 30), .report(a, .started)])

        XCTAssertEqual(machine.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)])
        XCTAssertEqual(machine.timerFired(.watchdog), [.startTimer(.watchdog, seconds: 30)])
        XCTAssertEqual(machine.timerFired(.watchdog), [.cancelTimer(.watchdog), .stopDiscovery(3)])
        _ = machine.replied(3, error: nil)
        _ = machine.replied(4, error: nil)
        XCTAssertEqual(
            machine.replied(5, error: nil),
            [.startTimer(.watchdog, seconds: 30), .report(a, .restarted(.silence))])
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

    func testTheWatchdogCanBeOff() {
        var machine = Machine()
        _ = machine.poweredOn()
        _ = machine.scanAdded(scan(a, all))
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.replied(2, error: nil), [.report(a, .started)])
    }

    func testAScanWithAWatchdogBringsItAlong() {
        var machine = runningMachine()
        XCTAssertEqual(
            machine.scanAdded(Machine.Scan(b, all, watchdogSeconds: 9)),
            [.report(b, .started), .startTimer(.watchdog, seconds: 3)])
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
                case 0: daemon.perform(machine.scanAdded(Machine.Scan(ScanID(random.next() % 3 + 10), all)))
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
