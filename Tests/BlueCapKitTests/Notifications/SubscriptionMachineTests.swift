import XCTest

@testable import BlueCapKit

/// The subscription's table: starting, stopping, and who waits for it.
final class SubscriptionMachineTests: XCTestCase {
    private typealias Effect = Order.Action
    private typealias Failure = PeripheralFailure

    private var machine = SubscriptionMachine(isReady: true)

    private func event(_ event: SubscriptionMachine.Event) -> [Effect] { machine.event(event) }
    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }
    private func call(_ number: UInt32) -> SubscriptionMachine.Call { .init(rawValue: number) }
    private let busy = Failure.characteristic(
        .acquiredByOther(BusFailure(name: "org.bluez.Error.InProgress", message: "")))

    /// Brings the machine to `on`, with one call.
    private func turnOn(_ transport: NotificationTransport = .signals) {
        _ = event(.startAsked(id(100), transport))
        _ = event(.startReplied(call(1), isNotifying: true))
        XCTAssertTrue(machine.isNotifying)
    }

    // MARK: Starting

    func testTheGateIsOpenBeforeTheDaemonIsAsked() {
        XCTAssertEqual(
            event(.startAsked(id(1), .signals)), [.openGate(.signals, afterGap: false), .callStart(call(1))])
        XCTAssertFalse(machine.isNotifying)
    }

    func testItHasStartedWhenTheDaemonSaysThatItNotifies() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: true)), [.markGap, .settle(id(1), nil)])
        XCTAssertTrue(machine.isNotifying)
    }

    func testAYesAloneIsNotEnough() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(
            event(.startReplied(call(1), isNotifying: false)), [.startTimer(SubscriptionMachine.Timer.confirmation)])
        XCTAssertEqual(
            event(.notifyingChanged(true)),
            [.cancelTimer(SubscriptionMachine.Timer.confirmation), .markGap, .settle(id(1), nil)])
    }

    func testAYesThatNothingFollowsFailsInTheEndAndIsTakenBack() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: false))
        XCTAssertEqual(
            event(.fired(.confirmation)),
            [.settle(id(1), .characteristic(.notifyTimeout)), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testASocketIsEnough() {
        XCTAssertEqual(
            event(.startAsked(id(1), .socket)), [.openGate(.socket, afterGap: false), .acquire(call(1))])
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: false)), [.markGap, .settle(id(1), nil)])
    }

    func testARefusalIsToldAndClosesTheGate() {
        _ = event(.startAsked(id(1), .socket))
        XCTAssertEqual(event(.startFailed(call(1), busy)), [.closeGate, .settle(id(1), busy)])
        XCTAssertEqual(machine.state, .off)
    }

    func testStartingTwiceIsOneCall() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [])
        XCTAssertEqual(
            event(.startReplied(call(1), isNotifying: true)), [.markGap, .settle(id(1), nil), .settle(id(2), nil)])
        XCTAssertEqual(event(.startAsked(id(3), .socket)), [.settle(id(3), nil)])
    }

    func testWhoWaitsBehindARefusalIsTriedInItsTurn() {
        _ = event(.startAsked(id(1), .socket))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(
            event(.startFailed(call(1), busy)),
            [.closeGate, .settle(id(1), busy), .openGate(.signals, afterGap: false), .callStart(call(2))])
    }

    func testWithoutALinkItFailsAtOnce() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(event(.stopAsked(id(2))), [.settle(id(2), .peripheral(.disconnected))])
    }

    // MARK: Stopping

    func testStoppingClosesTheGateAndTellsTheDaemon() {
        turnOn()
        XCTAssertEqual(event(.stopAsked(id(1))), [.closeGate, .callStop(call(2))])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [.settle(id(1), nil)])
        XCTAssertEqual(machine.state, .off)
    }

    func testTheSocketIsClosedAfterTheDaemonKnows() {
        turnOn(.socket)
        XCTAssertEqual(event(.stopAsked(id(1))), [.closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.socketClosed(call(1))), [])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [.closeSocket(call(1)), .settle(id(1), nil)])
    }

    func testStoppingWhatIsNotStartedSucceeds() {
        XCTAssertEqual(event(.stopAsked(id(1))), [.settle(id(1), nil)])
    }

    func testAStopWhileStartingComesAfterTheStart() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.stopAsked(id(2))), [])
        XCTAssertEqual(
            event(.startReplied(call(1), isNotifying: true)),
            [.markGap, .settle(id(1), nil), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [.settle(id(2), nil)])
    }

    func testAStartWhileStoppingComesAfterTheStop() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [])
        XCTAssertEqual(
            event(.stopReplied(call(2), nil)),
            [.settle(id(1), nil), .openGate(.signals, afterGap: false), .callStart(call(3))])
    }

    func testARefusedStopIsTold() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.stopReplied(call(2), busy)), [.settle(id(1), busy)])
        XCTAssertEqual(machine.state, .off)
    }

    // MARK: Answers that come too late

    func testAnAnswerToAnEarlierCallIsNotTakenForThisOne() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.stopReplied(call(1), nil)), [])
        _ = event(.stopReplied(call(2), nil))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.startFailed(call(1), busy)), [])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
    }

    func testASocketThatNobodyWaitsForIsClosed() {
        _ = event(.startAsked(id(1), .socket))
        _ = event(.linkWentDown(.disconnected, canCall: true))
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: false)), [.closeSocket(call(1))])
    }

    // MARK: Security

    func testItStartsAgainAfterAPairing() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.securityNeeded(call(1))), [])
        XCTAssertTrue(machine.isSecuring)
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [])
        XCTAssertEqual(event(.secured(nil)), [.callStart(call(2))])
        XCTAssertEqual(
            event(.startReplied(call(2), isNotifying: true)), [.markGap, .settle(id(1), nil), .settle(id(2), nil)])
    }

    func testAFailedPairingFailsTheSubscription() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(
            event(.secured(.timedOut)), [.closeGate, .settle(id(1), .characteristic(.pairingFailed(.timedOut)))])
        XCTAssertEqual(machine.state, .off)
        XCTAssertEqual(event(.secured(nil)), [])
    }

    func testARejectedPairingFailsTheSubscriptionAndStopsIt() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(
            event(.pairingRejected(.timedOut)),
            [.settle(id(1), .characteristic(.pairingFailed(.timedOut))), .closeGate, .callStop(call(2))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(machine.state, .off)
        XCTAssertEqual(event(.pairingRejected(.timedOut)), [])
    }

    func testTheWaitOutlivesALinkThatThePairingEnds() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(event(.linkWentDown(.disconnected, canCall: true, keepsSecuring: true)), [.closeGate])
        XCTAssertTrue(machine.isSecuring)
        XCTAssertEqual(event(.secured(nil)), [])
        XCTAssertFalse(machine.isSecuring)
        XCTAssertTrue(machine.isAwaitingLink)
        XCTAssertEqual(event(.linkWentUp), [])
        XCTAssertFalse(machine.isAwaitingLink)
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(2))])
        XCTAssertEqual(event(.startReplied(call(2), isNotifying: true)), [.markGap, .settle(id(1), nil)])
    }

    func testTheNewLinkMayBeUpBeforeThePairingEnds() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        _ = event(.linkWentDown(.disconnected, canCall: true, keepsSecuring: true))
        _ = event(.linkWentUp)
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(event(.secured(nil)), [.openGate(.signals, afterGap: false), .callStart(call(2))])
    }

    func testAPairingThatMakesNoLinkFailsTheSubscription() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        _ = event(.linkWentDown(.disconnected, canCall: true, keepsSecuring: true))
        _ = event(.secured(nil))
        XCTAssertEqual(
            event(.linkWentDown(.disconnected, canCall: false)),
            [.settle(id(1), .peripheral(.disconnected)), .closeGate])
        XCTAssertEqual(machine.state, .off)
    }

    func testALostLinkEndsTheWaitForAPairing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(
            event(.linkWentDown(.disconnected, canCall: true)),
            [.settle(id(1), .peripheral(.disconnected)), .closeGate])
        XCTAssertEqual(machine.state, .off)
    }

    func testATimeOutEndsTheWaitForAPairing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(
            event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout)), .closeGate])
        XCTAssertEqual(machine.state, .off)
    }
}
