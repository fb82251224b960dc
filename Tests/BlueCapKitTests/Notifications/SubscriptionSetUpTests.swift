import XCTest

@testable import BlueCapKit

/// The subscription's table: those that outlive links, and those that wait for a limited time.
final class SubscriptionSetUpTests: XCTestCase {
    private typealias Effect = Order.Action
    private typealias Failure = PeripheralFailure

    private var machine = SubscriptionMachine(isReady: true)

    private func event(_ event: SubscriptionMachine.Event) -> [Effect] { machine.event(event) }
    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }
    private func call(_ number: UInt32) -> SubscriptionMachine.Call { .init(rawValue: number) }
    private let lost = SubscriptionMachine.Event.linkWentDown(.disconnected, canCall: true)
    private let refused = Failure.characteristic(
        .notifyFailed(BusFailure(name: "org.bluez.Error.Failed", message: "no")))

    private func askLasting(
        _ number: UInt64 = 1, _ transport: NotificationTransport = .signals
    ) -> [Effect] {
        event(.startAsked(id(number), transport, outlivesLinks: true))
    }

    // MARK: Links

    func testALossWhileStartingIsFollowedByAnotherStartWithoutAGapMark() {
        XCTAssertEqual(askLasting(), [.openGate(.signals, afterGap: false), .callStart(call(1))])
        XCTAssertEqual(event(lost), [.closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(3))])
        XCTAssertEqual(event(.startReplied(call(3), isNotifying: true)), [.markGap, .settle(id(1), nil)])
    }

    func testALossBeforeTheConfirmationIsFollowedByAnotherStart() {
        _ = askLasting()
        _ = event(.startReplied(call(1), isNotifying: false))
        XCTAssertEqual(
            event(lost), [.cancelTimer(SubscriptionMachine.Timer.confirmation), .closeGate, .callStop(call(2))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(3))])
    }

    func testValuesThatCameBeforeTheLossAreFollowedByAGap() {
        _ = askLasting()
        _ = event(lost)
        XCTAssertEqual(event(.valuesCame), [])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: true), .callStart(call(3))])
    }

    func testALossWhileASocketIsAcquiredIsFollowedByAnotherAcquisition() {
        XCTAssertEqual(askLasting(1, .socket), [.openGate(.socket, afterGap: false), .acquire(call(1))])
        XCTAssertEqual(event(lost), [.closeSocket(call(1)), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: false)), [.closeSocket(call(1))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.socket, afterGap: false), .acquire(call(3))])
    }

    func testALossWhileTheTableIsReadIsFollowedByAStart() {
        machine = SubscriptionMachine(isReady: false)
        _ = event(.linkWentUp)
        XCTAssertEqual(askLasting(), [])
        XCTAssertEqual(event(lost), [])
        XCTAssertEqual(machine.state, .suspended(.signals))
        _ = event(.linkWentUp)
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(1))])
    }

    func testItMayBeAskedForWithoutALink() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(askLasting(), [])
        XCTAssertEqual(machine.wanted, .signals)
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(1))])
    }

    func testAReplyThatThereIsNoLinkIsNoRefusal() {
        _ = askLasting()
        XCTAssertEqual(
            event(.startFailed(call(1), .peripheral(.disconnected))), [.closeGate, .startTimer(.interruption)])
        XCTAssertEqual(event(.fired(.interruption)), [.openGate(.signals, afterGap: false), .callStart(call(2))])
    }

    func testARefusalThatMayBeTheLinksEndIsTriedOnceMore() {
        let unlikely = Failure.characteristic(
            .notifyFailed(
                BusFailure(name: "org.bluez.Error.Failed", message: "0x0e", attError: .unlikelyError)))
        for failure in [unlikely, .characteristic(.invalidated)] {
            machine = SubscriptionMachine(isReady: true)
            _ = askLasting()
            XCTAssertEqual(event(.startFailed(call(1), failure)), [.closeGate, .startTimer(.interruption)])
            XCTAssertEqual(event(.fired(.interruption)), [.openGate(.signals, afterGap: false), .callStart(call(2))])
            XCTAssertEqual(
                event(.startFailed(call(2), failure)), [.closeGate, .settle(id(1), failure), .deliver(failure)])
        }
    }

    func testARefusalIsFinalOnALaterLinkToo() {
        _ = askLasting()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        _ = event(.attributesReady)
        XCTAssertEqual(
            event(.startFailed(call(3), refused)), [.closeGate, .settle(id(1), refused), .deliver(refused)])
        XCTAssertEqual(machine.state, .off)
    }

    func testAFirstRefusalIsNotDeliveredToOtherStreams() {
        _ = askLasting()
        XCTAssertEqual(event(.startFailed(call(1), refused)), [.closeGate, .settle(id(1), refused)])
    }

    func testOneThatFailsWithTheLinkDoesNotTakeTheOtherAlong() {
        _ = askLasting(1)
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(lost), [.closeGate, .callStop(call(2)), .settle(id(2), .peripheral(.disconnected))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(machine.state, .suspended(.signals))
    }

    func testOneBehindASubscriptionThatFailsWithTheLinkIsBegunOnTheNext() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(askLasting(2, .socket), [])
        XCTAssertEqual(event(lost), [.settle(id(1), .peripheral(.disconnected)), .closeGate, .callStop(call(2))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.socket, afterGap: false), .acquire(call(3))])
        XCTAssertEqual(event(.startReplied(call(3), isNotifying: true)), [.markGap, .settle(id(2), nil)])
    }

    func testAnEstablishedSubscriptionIsNotLostWithAnotherAsk() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: true))
        _ = event(.notifyingChanged(false))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(
            event(lost), [.settle(id(2), .peripheral(.disconnected)), .closeGate, .callStop(call(3))])
        _ = event(.stopReplied(call(3), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: true), .callStart(call(4))])
    }

    // MARK: Ends

    func testAStopWithoutALinkEndsTheWait() {
        _ = askLasting()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.stopAsked(id(2))), [.settle(id(1), .cancelled), .settle(id(2), nil)])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAStopThatWaitedAtTheLossEndsTheWait() {
        _ = askLasting()
        _ = event(.stopAsked(id(2)))
        XCTAssertEqual(
            event(lost),
            [.closeGate, .callStop(call(2)), .settle(id(1), .cancelled), .settle(id(2), .peripheral(.disconnected))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(machine.state, .off)
    }

    func testTheManagersEndIsNoFailure() {
        _ = askLasting()
        XCTAssertEqual(
            event(.closed(canCall: false)), [.closeGate, .settle(id(1), .cancelled), .finish(nil)])
    }

    func testACharacteristicThatIsGoneOnTheNextLinkIsAFailure() {
        _ = askLasting()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(
            event(.invalidated),
            [.settle(id(1), .characteristic(.invalidated)), .finish(.characteristic(.invalidated))])
    }

    // MARK: Time

    func testWhatTakesTooLongIsTakenBack() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(
            event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout)), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: true)), [.closeSocket(call(1))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testWhatIsNotConfirmedInTimeIsTakenBack() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: false))
        XCTAssertEqual(
            event(.timedOut(id(1))),
            [
                .settle(id(1), .characteristic(.notifyTimeout)), .cancelTimer(SubscriptionMachine.Timer.confirmation),
                .closeGate,
                .callStop(call(2)),
            ])
    }

    func testASocketThatTakesTooLongIsClosed() {
        _ = event(.startAsked(id(1), .socket))
        XCTAssertEqual(
            event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout)), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [.closeSocket(call(1))])
    }

    func testTheNextUsesTheCallThatTookTooLongForTheFirst() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: true)), [.markGap, .settle(id(2), nil)])
    }

    func testALastingOneUsesTheCallThatTookTooLongForTheFirst() {
        _ = event(.startAsked(id(1), .signals))
        _ = askLasting(2)
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        _ = event(lost)
        XCTAssertEqual(machine.wanted, .signals)
    }

    func testOneThatWaitsBehindAnotherRunsOutByItself() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: true)), [.markGap, .settle(id(1), nil)])
    }

    func testALastingOneRunsOutWithoutALink() {
        _ = askLasting()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        XCTAssertEqual(machine.state, .off)
    }

    func testAnEstablishedSubscriptionSurvivesTheTimeOutOfAnotherAsk() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: true))
        _ = event(.notifyingChanged(false))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.startReplied(call(2), isNotifying: true)), [.markGap])
    }

    func testAStopThatTakesTooLongGoesOn() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: true))
        _ = event(.stopAsked(id(2)))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testATimeOutOfWhatIsSettledDoesNothing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: true))
        XCTAssertEqual(event(.timedOut(id(1))), [])
    }
}
