import BlueCapBlueZ
import TestRandomness
import XCTest

@testable import BlueCapKit

/// The table of `ConnectionMachine`: what each event leads to.
final class ConnectionMachineTests: RandomTestCase {
    private typealias Machine = ConnectionMachine

    private let transient = BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local")
    private let busy = BlueZError(name: "org.bluez.Error.Failed", message: "Operation already in progress")
    private let unknown = BlueZError(name: "org.bluez.Error.Failed", message: "Something new")
    private let notFound = BlueZError(name: "org.freedesktop.DBus.Error.UnknownObject")
    private let refusal = BlueZError(name: "org.bluez.Error.AuthenticationFailed")
    private let cancelled = BlueZError(name: "org.bluez.Error.Canceled")

    private func machine(isUsable: Bool = true, isPresent: Bool = true, isLinkUp: Bool = false) -> ReportedMachine {
        ReportedMachine(backOff: BackOff(seed: 1), isUsable: isUsable, isPresent: isPresent, isLinkUp: isLinkUp)
    }

    private func connecting(timeout: TimeInterval? = nil, retries: UInt = .max) -> ReportedMachine {
        var machine = machine()
        _ = machine.event(
            .connectAsked(ConnectionPolicy(timeoutRetries: retries, disconnectRetries: retries, timeout: timeout)))
        _ = machine.event(.connectStarted(1))
        return machine
    }

    private func connected(timeout: TimeInterval? = nil, retries: UInt = .max) -> ReportedMachine {
        var machine = connecting(timeout: timeout, retries: retries)
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.event(.connectReplied(1, nil))
        XCTAssertEqual(machine.state, .connected)
        return machine
    }

    // MARK: Missing keys

    func testAPeripheralWithoutItsKeysIsNotTriedAtOnce() {
        var machine = connected()
        _ = machine.event(.keysMissing)
        _ = machine.deviceChanged(isConnected: false)
        XCTAssertEqual(
            machine.event(.reconnectAsked(delay: 0)).first, .startTimer(.wait, ConnectionMachine.missingKeysDelay))
        // The application decides.
        XCTAssertTrue(machine.event(.connectAsked(ConnectionPolicy())).contains(.callConnect(2)))
    }

    func testAPairingOrALastingLinkEndsThatWait() {
        for event in [Machine.Event.linkMade(isOurs: true), .timerFired(.stability)] {
            var machine = connected()
            _ = machine.event(.keysMissing)
            _ = machine.event(event)
            _ = machine.deviceChanged(isConnected: false)
            XCTAssertTrue(machine.event(.reconnectAsked(delay: 0)).contains(.callConnect(2)))
        }
    }

    func testALinkThatAPairingHasMadeIsOurs() {
        var machine = machine()
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        _ = machine.deviceChanged(isConnected: true)
        XCTAssertEqual(machine.state, .connected)
        XCTAssertFalse(machine.isOurs)
        _ = machine.event(.linkMade(isOurs: true))
        XCTAssertTrue(machine.isOurs)
    }

    // MARK: The plain way

    func testAConnectIsCalledAndItsReplyReportsTheLink() {
        var machine = machine()
        XCTAssertEqual(machine.event(.connectAsked(ConnectionPolicy(timeout: 10))), [.callConnect(1)])
        XCTAssertEqual(
            machine.event(.connectStarted(1)), [.startTimer(.timeout, 10)])
        XCTAssertEqual(machine.deviceChanged(isConnected: true), [])
        XCTAssertEqual(
            machine.event(.connectReplied(1, nil)),
            [
                .cancelTimer(.timeout), .startTimer(.stability, 3), .linkWentUp, .report(1, .connected),
            ])
        XCTAssertTrue(machine.isOurs)
    }

    func testTheTimeOutBeginsWhenTheCallsTurnHasCome() {
        var machine = machine()
        XCTAssertEqual(machine.event(.connectAsked(ConnectionPolicy(timeout: 10))), [.callConnect(1)])
        XCTAssertFalse(machine.timers.contains(.timeout))
        XCTAssertEqual(machine.event(.connectStarted(1)).first, .startTimer(.timeout, 10))
        XCTAssertEqual(machine.event(.connectStarted(1)), [])
    }

    func testALostLinkIsReportedOnceAndFailsWhatIsUnderWay() {
        var machine = connected()
        XCTAssertEqual(
            machine.deviceChanged(isConnected: false),
            [
                .cancelTimer(.stability), .linkWentDown(.linkLost), .startTimer(.loss, Machine.lossLimit),
                .report(1, .disconnected),
            ])
        XCTAssertEqual(machine.deviceChanged(isConnected: false), [])
        XCTAssertEqual(machine.deviceChanged(isPresent: false, isConnected: false), [])
        XCTAssertEqual(machine.adapterUsable(false), [.cancelTimer(.loss)])
    }

    func testARemovedDeviceIsALostLink() {
        var machine = connected()
        XCTAssertEqual(
            machine.deviceChanged(isPresent: false, isConnected: false),
            [
                .cancelTimer(.stability), .linkWentDown(.linkLost), .startTimer(.loss, Machine.lossLimit),
                .report(1, .disconnected),
            ])
    }

    // MARK: Callers that no longer wait

    func testAWithdrawnConnectEndsItsAttempt() {
        var machine = connecting(timeout: 10, retries: 0)
        XCTAssertEqual(
            machine.event(.connectWithdrawn(.forced, leavingFor: nil)), [.cancelTimer(.timeout), .cancelConnect])
        XCTAssertFalse(machine.isWanted)
        XCTAssertEqual(machine.event(.connectReplied(1, cancelled)), [.report(1, .forced)])
        XCTAssertEqual(machine.state, .disconnected)
    }

    func testAWithdrawnConnectLeavesItsAttemptToARun() {
        var machine = connecting(timeout: 10, retries: 0)
        XCTAssertEqual(machine.event(.connectWithdrawn(.forced, leavingFor: .run)), [])
        XCTAssertEqual(machine.purpose, .run)
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [.cancelTimer(.timeout), .cancelConnect])
    }

    func testAConnectThatIsWithdrawnDuringTheEndOfALinkDoesNotFollowIt() {
        var machine = connected()
        _ = machine.event(.disconnectAsked)
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(machine.state, .ending(nil, .connect(after: 0)))
        XCTAssertEqual(machine.event(.connectWithdrawn(.forced, leavingFor: nil)), [])
        XCTAssertEqual(machine.event(.disconnectReplied), [.report(2, .forced)])
        XCTAssertEqual(machine.state, .disconnected)
    }

    // MARK: Counts

    func testTimeOutsInARowBeyondTheCountGiveUp() {
        var machine = connecting(timeout: 10, retries: 1)
        for attempt in 1...2 as ClosedRange<UInt32> {
            XCTAssertTrue(machine.event(.timerFired(.timeout)).contains(.cancelConnect))
            let effects = machine.event(.connectReplied(attempt, cancelled))
            if attempt == 1 {
                XCTAssertEqual(effects, [.report(1, .timedOut)])
                XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)), [.callConnect(2)])
                _ = machine.event(.connectStarted(2))
            } else {
                XCTAssertEqual(
                    effects,
                    [.report(1, .gaveUp(after: .timedOut)), .finishStream(1)])
            }
        }
        XCTAssertEqual(machine.state, .disconnected)
    }

    func testAConnectionCountsTimeOutsAnew() {
        var machine = connecting(timeout: 10, retries: 1)
        _ = machine.event(.timerFired(.timeout))
        _ = machine.event(.connectReplied(1, cancelled))
        _ = machine.event(.reconnectAsked(delay: 0))
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.event(.connectReplied(2, nil))
        XCTAssertEqual(machine.timeouts, 0)
        XCTAssertEqual(machine.deviceChanged(isConnected: false).last, .report(1, .disconnected))
    }

    func testDisconnectionsBeyondTheCountGiveUp() {
        var machine = connected(retries: 0)
        XCTAssertEqual(
            machine.deviceChanged(isConnected: false),
            [
                .cancelTimer(.stability), .linkWentDown(.linkLost), .startTimer(.loss, Machine.lossLimit),
                .report(1, .gaveUp(after: .disconnected)), .finishStream(1),
            ])
    }

    // MARK: Back-off (B3, B8)

    func testTransientFailuresAreRetriedSilentlyWithABackOff() {
        var machine = connecting(timeout: 30)
        var waits: [TimeInterval] = []
        for attempt in 1...7 as ClosedRange<UInt32> {
            let effects = machine.event(.connectReplied(attempt, transient))
            for case .startTimer(.connection(.wait), let seconds) in effects { waits.append(seconds) }
            XCTAssertEqual(effects.count, 1)
            XCTAssertEqual(machine.event(.timerFired(.wait)), [.callConnect(attempt + 1)])
        }
        for (wait, step) in zip(waits, BackOff.steps + [4]) { XCTAssertEqual(wait, step, accuracy: step * 0.25) }
        XCTAssertEqual(machine.failures.map(\.message), Array(repeating: transient.message, count: 7))
    }

    // MARK: Scans rest

    func testASearchGoesOnDuringTheFirstAttempts() {
        var machine = machine(isPresent: false)
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        var orders = machine.deviceChanged(isConnected: false)
        for attempt in 1...3 as ClosedRange<UInt32> {
            XCTAssertEqual(orders.last, .callConnect(attempt, pausesScans: attempt == 3))
            _ = machine.event(.connectReplied(attempt, transient))
            orders = machine.event(.timerFired(.wait))
        }
    }

    func testARefusalThatNoRetryCuresIsAFailureAtOnce() {
        var machine = connecting(timeout: 30)
        XCTAssertEqual(
            machine.event(.connectReplied(1, refusal)),
            [.cancelTimer(.timeout), .reportFailure(1, .connectionFailed(BusError(refusal)))])
        XCTAssertEqual(machine.state, .disconnected)
    }

    func testAnUnknownRefusalIsRetriedTwice() {
        var machine = connecting()
        for attempt in 1...2 as ClosedRange<UInt32> {
            _ = machine.event(.connectReplied(attempt, unknown))
            _ = machine.event(.timerFired(.wait))
        }
        XCTAssertEqual(
            machine.event(.connectReplied(3, unknown)).last, .reportFailure(1, .connectionFailed(BusError(unknown))))
    }

    func testAnAttemptThatSomebodyLeftBehindIsTakenBack() {
        var machine = connecting()
        for attempt in 1...4 as ClosedRange<UInt32> {
            XCTAssertFalse(machine.event(.connectReplied(attempt, busy)).contains(.callDisconnect))
            _ = machine.event(.timerFired(.wait))
        }
        XCTAssertTrue(machine.event(.connectReplied(5, busy)).contains(.callDisconnect))
    }

    func testReconnectingIsHeldUpMoreAfterEachFruitlessTry() {
        var machine = connecting(timeout: 1)
        var waits: [TimeInterval] = []
        for _ in 1...4 {
            _ = machine.event(.timerFired(.timeout))
            _ = machine.event(.connectReplied(machine.lastAttempt, cancelled))
            for case .startTimer(.connection(.wait), let seconds) in machine.event(.reconnectAsked(delay: 0)) {
                waits.append(seconds)
                _ = machine.event(.timerFired(.wait))
            }
            _ = machine.event(.connectStarted(machine.lastAttempt))
        }
        XCTAssertEqual(waits.count, 3, "The first reconnect is not held up.")
        for (wait, step) in zip(waits, BackOff.steps) { XCTAssertEqual(wait, step, accuracy: step * 0.25) }
    }

    func testAConnectionThatHeldClearsTheBackOff() {
        var machine = connected()
        for round in 1...3 {
            _ = machine.event(.timerFired(.stability))
            _ = machine.deviceChanged(isConnected: false)
            XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)), [.callConnect(machine.lastAttempt)], "\(round)")
            _ = machine.deviceChanged(isConnected: true)
            _ = machine.event(.connectReplied(machine.lastAttempt, nil))
        }
    }

    func testAPeripheralThatDropsEachLinkAtOnceIsNotHammered() {
        var machine = connected()
        _ = machine.deviceChanged(isConnected: false)
        XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)), [.callConnect(2)])
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.event(.connectReplied(2, nil))
        _ = machine.deviceChanged(isConnected: false)
        XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)).count, 1)
        XCTAssertEqual(machine.state, .waiting(.delay))
    }

    // MARK: Taking back (B2)

    func testATimeOutIsReportedWhenBlueZHasLetGo() {
        var machine = connecting(timeout: 10)
        XCTAssertEqual(machine.event(.timerFired(.timeout)), [.cancelConnect])
        XCTAssertEqual(
            machine.event(.connectReplied(1, cancelled)), [.report(1, .timedOut)])
    }

    /// The connector ends such a link before it reports the end of the attempt.
    func testALinkThatAppearsDuringTheCancellationIsNotUsed() {
        var machine = connecting(timeout: 10)
        _ = machine.event(.timerFired(.timeout))
        XCTAssertEqual(machine.deviceChanged(isConnected: true), [])
        XCTAssertEqual(machine.deviceChanged(isConnected: false), [])
        XCTAssertTrue(machine.isInUse, "A released peripheral is kept until its link has ended.")
        XCTAssertEqual(machine.event(.connectReplied(1, cancelled)), [.report(1, .timedOut)])
    }

    func testALateReplyOfAnOlderAttemptIsHarmless() {
        var machine = connecting(timeout: 10)
        _ = machine.event(.connectReplied(1, transient))
        XCTAssertEqual(machine.event(.timerFired(.wait)), [.callConnect(2)])
        let before = machine
        XCTAssertEqual(machine.event(.connectReplied(1, transient)), [])
        XCTAssertEqual(machine, before)
    }

    func testTheReplyOfAnAttemptInPlaceOfWhichALinkWasAdoptedEndsNothing() {
        var machine = machine()
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(
            machine.deviceChanged(isConnected: true),
            [.cancelConnect, .startTimer(.stability, 3), .linkWentUp, .report(1, .connected)])
        XCTAssertFalse(machine.isOurs)
        _ = machine.event(.disconnectAsked)
        XCTAssertEqual(machine.event(.connectReplied(1, cancelled)), [])
        XCTAssertEqual(machine.event(.disconnectReplied), [.report(1, .forced)])
    }

    func testAReconnectDuringTheTakingBackFollowsTheReport() {
        var machine = connecting(timeout: 10)
        _ = machine.event(.timerFired(.timeout))
        XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)), [])
        XCTAssertEqual(
            machine.event(.connectReplied(1, cancelled)),
            [.report(1, .timedOut), .callConnect(2)])
    }

    // MARK: disconnect (B2a)

    func testADisconnectFailsWhatIsUnderWayAtOnceAndIsReportedWhenTheLinkHasEnded() {
        var machine = connected()
        XCTAssertEqual(
            machine.event(.disconnectAsked),
            [.cancelTimer(.stability), .linkWentDown(.application), .callDisconnect])
        XCTAssertEqual(machine.event(.disconnectAsked), [])
        XCTAssertEqual(machine.deviceChanged(isConnected: false), [])
        XCTAssertEqual(machine.event(.disconnectReplied), [.report(1, .forced)])
        XCTAssertEqual(machine.event(.disconnectReplied), [])
    }

    func testADisconnectWithoutAConnectionFails() {
        var machine = machine()
        XCTAssertEqual(machine.event(.disconnectAsked), [.reportFailure(0, .disconnected)])
    }

    func testADisconnectWhileConnectingTakesTheAttemptBack() {
        var machine = connecting(timeout: 10)
        XCTAssertEqual(
            machine.event(.disconnectAsked),
            [.cancelTimer(.timeout), .cancelConnect])
        XCTAssertEqual(
            machine.event(.connectReplied(1, cancelled)), [.report(1, .forced)])
    }

    func testADisconnectEndsEveryKindOfWaiting() {
        var waitsForPower = machine(isUsable: false)
        _ = waitsForPower.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(waitsForPower.event(.disconnectAsked), [.report(1, .forced)])

        var waitsForDelay = machine()
        _ = waitsForDelay.event(.reconnectAsked(delay: 5))
        XCTAssertEqual(waitsForDelay.event(.disconnectAsked), [.cancelTimer(.wait), .report(0, .forced)])

        var waitsToRetry = connecting()
        _ = waitsToRetry.event(.connectReplied(1, transient))
        XCTAssertEqual(waitsToRetry.event(.disconnectAsked), [.cancelTimer(.wait), .report(1, .forced)])

        var seeks = machine(isPresent: false)
        _ = seeks.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(seeks.event(.disconnectAsked), [.cancelTimer(.wait), .stopSeeking, .report(1, .forced)])
        for machine in [waitsForPower, waitsForDelay, waitsToRetry, seeks] {
            XCTAssertEqual(machine.state, .disconnected)
        }
    }

    func testAConnectDuringADisconnectWaitsForTheEndOfTheLink() {
        var machine = connected()
        _ = machine.event(.disconnectAsked)
        XCTAssertEqual(
            machine.event(.connectAsked(ConnectionPolicy())), [.report(1, .forced), .finishStream(1)])
        XCTAssertEqual(machine.deviceChanged(isConnected: false), [])
        XCTAssertEqual(machine.event(.disconnectReplied), [.callConnect(2)])
    }

    /// The connector gives up at its limit.
    func testADisconnectThatDoesNotEndTheLinkIsReportedToo() {
        var machine = connected()
        _ = machine.event(.disconnectAsked)
        XCTAssertEqual(machine.event(.disconnectReplied), [.report(1, .forced)])
        XCTAssertEqual(machine.state, .disconnected)
    }

    func testTerminateForgetsAtOnceAndFinishesAfterTheLastEvent() {
        var machine = connected()
        XCTAssertEqual(machine.event(.terminateAsked).last, .forget)
        XCTAssertEqual(
            machine.event(.disconnectReplied), [.report(1, .forced), .finishStream(1)])
        XCTAssertEqual(machine.event(.terminateAsked), [.forget])
    }

    // MARK: Seeking (B4)

    func testADeviceThatBlueZDroppedIsSoughtAndDiscoveryLastsUntilTheLink() {
        var machine = connecting(timeout: 30)
        _ = machine.deviceChanged(isPresent: false, isConnected: false)
        XCTAssertEqual(machine.event(.connectReplied(1, notFound)), [.seek, .startTimer(.wait, 10)])
        XCTAssertEqual(
            machine.deviceChanged(isConnected: false),
            [.cancelTimer(.wait), .callConnect(2, pausesScans: false)])
        _ = machine.event(.connectStarted(2))
        _ = machine.deviceChanged(isConnected: true)
        XCTAssertEqual(
            machine.event(.connectReplied(2, nil)),
            [.cancelTimer(.timeout), .stopSeeking, .startTimer(.stability, 3), .linkWentUp, .report(1, .connected)])
    }

    func testASearchIsBoundedAndThenRepeatedAfterABackOff() {
        var machine = machine(isPresent: false)
        XCTAssertEqual(machine.event(.connectAsked(ConnectionPolicy())), [.seek, .startTimer(.wait, 10)])
        let effects = machine.event(.timerFired(.wait))
        XCTAssertEqual(effects.first, .stopSeeking)
        XCTAssertEqual(machine.state, .waiting(.backOff))
        XCTAssertEqual(machine.event(.timerFired(.wait)), [.seek, .startTimer(.wait, 10)])
    }

    func testASearchEndsWithTheTimeOut() {
        var machine = machine(isPresent: false)
        XCTAssertEqual(
            machine.event(.connectAsked(ConnectionPolicy(timeout: 5))),
            [.seek, .startTimer(.timeout, 5), .startTimer(.wait, 10)])
        XCTAssertEqual(
            machine.event(.timerFired(.timeout)), [.cancelTimer(.wait), .stopSeeking, .report(1, .timedOut)])
    }

    // MARK: Adopting (B5)

    func testALinkThatIsThereAlreadyIsAdoptedWithoutAConnect() {
        var machine = machine(isLinkUp: true)
        XCTAssertEqual(
            machine.event(.connectAsked(ConnectionPolicy())),
            [.startTimer(.stability, 3), .linkWentUp, .report(1, .connected)])
        XCTAssertFalse(machine.isOurs)
        XCTAssertFalse(machine.event(.closed(keepingLinks: false)).contains(.callDisconnect))
    }

    func testALinkThatSomebodyElseOpensMeanwhileIsAdopted() {
        var machine = connecting()
        _ = machine.event(.connectReplied(1, busy))
        XCTAssertEqual(
            machine.deviceChanged(isConnected: true),
            [.cancelTimer(.wait), .startTimer(.stability, 3), .linkWentUp, .report(1, .connected)])
    }

    func testASecondConnectTakesOver() {
        var machine = connected()
        XCTAssertEqual(
            machine.event(.connectAsked(ConnectionPolicy())), [.finishStream(1), .report(2, .connected)])

        var tries = connecting(timeout: 10)
        XCTAssertEqual(
            tries.event(.connectAsked(ConnectionPolicy(timeout: 3))),
            [.cancelTimer(.timeout), .finishStream(1), .startTimer(.timeout, 3)])
    }

    // MARK: Replies that are not true (B6)

    func testAGoodReplyWithoutALinkIsATransientFailure() {
        var machine = connecting()
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.deviceChanged(isConnected: false)
        XCTAssertTrue(machine.hasFallen)
        for error in [nil, BlueZError.noLink] {
            var machine = machine
            _ = machine.event(.connectReplied(1, error))
            XCTAssertEqual(machine.state, .waiting(.backOff))
            XCTAssertEqual(machine.failures, [.noLink])
        }
    }

    func testAReplyWhoseMeaningIsKnownIsAFailureAtOnce() {
        var machine = connecting()
        XCTAssertEqual(
            machine.event(.connectReplied(1, transient, .keyMissing(isCertain: false))),
            [.reportFailure(1, .pairing(.keyMissing(isCertain: false)))])
        XCTAssertEqual(machine.state, .disconnected)
    }

    // MARK: The adapter (F1, F2)

    func testAnAdapterThatGoesEndsWhatIsUnderWayOnceAndTheNextTryWaitsForIt() {
        let cases: [(ReportedMachine, [Order.Action])] = [
            (connecting(timeout: 9), [.cancelConnect, .cancelTimer(.timeout), .report(1, .disconnected)]),
            (connected(), [.cancelTimer(.stability), .linkWentDown(.adapterLost), .report(1, .disconnected)]),
        ]
        for (start, effects) in cases {
            var machine = start
            XCTAssertEqual(machine.adapterUsable(false), effects)
            XCTAssertEqual(machine.adapterUsable(false), [])
            _ = machine.event(.reconnectAsked(delay: 0))
            XCTAssertEqual(machine.state, .waiting(.power))
            XCTAssertEqual(machine.adapterUsable(true).last, .callConnect(2))
        }
    }

    func testATryAfterAReportedLossWaitsForTheAdapterWithoutASecondReport() {
        var machine = connected(timeout: 9)
        XCTAssertEqual(machine.deviceChanged(isConnected: false).last, .report(1, .disconnected))
        _ = machine.event(.reconnectAsked(delay: 0))
        XCTAssertEqual(machine.state, .connecting(isUnderWay: false))
        _ = machine.event(.connectStarted(2))
        XCTAssertEqual(
            machine.adapterUsable(false),
            [
                .cancelTimer(.loss), .cancelConnect, .cancelTimer(.timeout), .startTimer(.timeout, 9),
            ])
        XCTAssertEqual(machine.state, .waiting(.power))
        XCTAssertEqual(machine.event(.connectReplied(2, notFound)), [])
        XCTAssertEqual(machine.adapterUsable(true), [.cancelTimer(.timeout), .callConnect(3)])
        // That was another loss.
        XCTAssertEqual(machine.adapterUsable(false).last, .report(1, .disconnected))
    }

    func testATryForARunWaitsForTheAdapterAfterAReportedLoss() {
        var machine = connected(retries: 1)
        XCTAssertEqual(machine.deviceChanged(isConnected: false).last, .report(1, .disconnected))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [.callConnect(2)])
        XCTAssertEqual(machine.adapterUsable(false), [.cancelTimer(.loss), .cancelConnect])
        XCTAssertEqual(machine.state, .waiting(.power))
        XCTAssertEqual(machine.disconnections, 1)
        XCTAssertEqual(machine.adapterUsable(true), [.callConnect(3)])
    }

    func testAnAdapterThatGoesLongAfterAReportedLossIsReported() {
        var machine = connected(timeout: 9)
        _ = machine.deviceChanged(isConnected: false)
        _ = machine.event(.reconnectAsked(delay: 0))
        _ = machine.event(.connectStarted(2))
        XCTAssertEqual(machine.event(.timerFired(.loss)), [])
        XCTAssertEqual(
            machine.adapterUsable(false),
            [.cancelConnect, .cancelTimer(.timeout), .report(1, .disconnected)])
        XCTAssertEqual(machine.state, .disconnected)
    }

    func testALinkAfterAReportedLossIsLostWithTheAdapter() {
        var machine = connected()
        _ = machine.deviceChanged(isConnected: false)
        _ = machine.event(.reconnectAsked(delay: 0))
        _ = machine.event(.connectStarted(2))
        _ = machine.deviceChanged(isConnected: true)
        XCTAssertTrue(machine.event(.connectReplied(2, nil)).contains(.cancelTimer(.loss)))
        XCTAssertEqual(machine.adapterUsable(false).last, .report(1, .disconnected))
    }

    func testWaitingForPowerHasTheSameLimitAndTheRadioItsFullTimeAfterwards() {
        var machine = machine(isUsable: false)
        XCTAssertEqual(
            machine.event(.connectAsked(ConnectionPolicy(timeout: 10))), [.startTimer(.timeout, 10)])
        XCTAssertEqual(machine.event(.timerFired(.timeout)), [.report(1, .timedOut)])
        XCTAssertEqual(machine.event(.reconnectAsked(delay: 0)), [.startTimer(.timeout, 10)])
        XCTAssertEqual(machine.adapterUsable(true), [.cancelTimer(.timeout), .callConnect(1)])
        XCTAssertEqual(machine.event(.connectStarted(1)).first, .startTimer(.timeout, 10))
    }

    func testAnAdapterThatGoesCompletesWhatWasEnding() {
        var times = connecting(timeout: 10)
        _ = times.event(.timerFired(.timeout))
        XCTAssertEqual(times.adapterUsable(false), [.report(1, .timedOut)])
        var ends = connected()
        _ = ends.event(.disconnectAsked)
        XCTAssertEqual(ends.adapterUsable(false), [.report(1, .forced)])
    }

    // MARK: The end (B7)

    func testAManagerThatGoesEndsTheLinksItOpened() {
        var own = connected()
        XCTAssertEqual(
            own.event(.closed(keepingLinks: false)),
            [.linkWentDown(.application), .callDisconnect, .cancelTimer(.stability), .finishStream(1)])
        var kept = connected()
        XCTAssertFalse(kept.event(.closed(keepingLinks: true)).contains(.callDisconnect))
        var tries = connecting()
        XCTAssertEqual(tries.event(.closed(keepingLinks: true)), [.cancelConnect, .finishStream(1)])
        XCTAssertEqual(
            tries.event(.connectAsked(ConnectionPolicy())), [.reportFailure(2, .disconnected), .finishStream(2)])
    }

    // MARK: Laws

    /// Whatever happens in whatever order: timers that run are known, every stream finishes once, links go up and down in
    /// turn, searches end, and a machine that is left alone comes to rest.
    func testLawsHoldForEventsInAnyOrder() {
        var random = TestRandom(self)
        for round in 0..<400 {
            var play = MachinePlay(random.split())
            for _ in 0..<200 { play.step() }
            play.end()
            XCTAssertEqual(play.faults, [], "round \(round): \(play.history.suffix(12))")
        }
    }
}
