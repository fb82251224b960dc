import XCTest

@testable import BlueCapKit

/// The subscription's table: links that fall and return, daemons that go, attributes that change.
final class SubscriptionLinkTests: XCTestCase {
    private typealias Effect = Order.Action
    private typealias Failure = PeripheralFailure

    private var machine = SubscriptionMachine(isReady: true)

    private func event(_ event: SubscriptionMachine.Event) -> [Effect] { machine.event(event) }
    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }
    private func call(_ number: UInt32) -> SubscriptionMachine.Call { .init(rawValue: number) }
    private let lost = SubscriptionMachine.Event.linkWentDown(.disconnected, canCall: true)
    private let busy = Failure.characteristic(
        .acquiredByOther(
            BusFailure(name: "org.bluez.Error.NotPermitted", message: "Notify acquired")))

    private func turnOn(_ transport: NotificationTransport = .signals) {
        _ = event(.startAsked(id(100), transport))
        _ = event(.startReplied(call(1), isNotifying: true))
    }

    // MARK: The link falls and returns

    func testAtTheLinksEndTheDaemonIsToldToStop() {
        turnOn()
        XCTAssertEqual(event(lost), [.closeGate, .callStop(call(2))])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .suspended(.signals))
    }

    func testASocketIsClosedAndTheDaemonToldTheSame() {
        turnOn(.socket)
        XCTAssertEqual(event(lost), [.closeSocket(call(1)), .closeGate, .callStop(call(2))])
        XCTAssertEqual(event(.stopReplied(call(2), busy)), [])
        XCTAssertEqual(machine.state, .suspended(.socket))
    }

    func testWhenTheLinkIsBackThereIsOneStartAndAGapMark() {
        turnOn()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: true), .callStart(call(3))])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(event(.startReplied(call(3), isNotifying: true)), [.markGap])
        XCTAssertTrue(machine.isNotifying)
    }

    func testALinkThatIsBackBeforeTheStopIsAnsweredWaitsForIt() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(
            event(.stopReplied(call(2), nil)), [.openGate(.signals, afterGap: true), .callStart(call(3))])
    }

    func testASecondLossWhileItIsTakenUpAgainKeepsTheWish() {
        turnOn()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        _ = event(.attributesReady)
        XCTAssertEqual(event(lost), [.closeGate, .callStop(call(4))])
        _ = event(.stopReplied(call(4), nil))
        XCTAssertEqual(machine.state, .suspended(.signals))
        XCTAssertEqual(event(.startReplied(call(3), isNotifying: true)), [.closeSocket(call(3))])
        XCTAssertEqual(machine.state, .suspended(.signals))
    }

    func testALossWhileStoppingLeavesNothingToTakeUp() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(lost), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testALossWhileStartingFailsWhoWaitsAndWithdrawsTheCall() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(
            event(.linkWentDown(.forcedDisconnect, canCall: true)),
            [
                .settle(id(1), .peripheral(.forcedDisconnect)), .closeGate, .callStop(call(2)),
                .settle(id(2), .peripheral(.forcedDisconnect)),
            ])
        _ = event(.attributesReady)
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testALossBeforeTheConfirmationFailsWhoWaits() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startReplied(call(1), isNotifying: false))
        XCTAssertEqual(
            event(lost),
            [
                .cancelTimer(SubscriptionMachine.Timer.confirmation), .settle(id(1), .peripheral(.disconnected)),
                .closeGate,
                .callStop(call(2)),
            ])
    }

    func testTheWishCanBeTakenBackWithoutALink() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.stopAsked(id(1))), [])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [.settle(id(1), nil)])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAStartWithoutALinkFailsAtOnceAndKeepsTheWish() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .peripheral(.disconnected))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(machine.state, .suspended(.signals))
    }

    func testAStopThatWaitedAtTheLossCountsAsAsked() {
        turnOn()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        _ = event(.attributesReady)
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(
            event(lost), [.closeGate, .callStop(call(4)), .settle(id(1), .peripheral(.disconnected))])
        _ = event(.stopReplied(call(4), nil))
        XCTAssertEqual(machine.state, .off)
    }

    func testASubscriptionThatCannotBeTakenUpAgainIsToldToTheStreams() {
        turnOn()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        _ = event(.attributesReady)
        XCTAssertEqual(event(.startFailed(call(3), busy)), [.closeGate, .deliver(busy)])
        XCTAssertEqual(machine.state, .off)
    }

    // MARK: An earlier process

    func testASubscriptionOfAnEarlierProcessIsResumed() {
        XCTAssertEqual(event(.restored(.signals)), [.openGate(.signals, afterGap: false), .callStart(call(1))])
        XCTAssertEqual(machine.wanted, .signals)
        XCTAssertEqual(event(.restored(.signals)), [], "It is being resumed.")
        XCTAssertEqual(event(.startReplied(call(1), isNotifying: true)), [.markGap])
        XCTAssertTrue(machine.isNotifying)
    }

    func testTheStreamsReceiveTheFailureOfASubscriptionOfAnEarlierProcess() {
        _ = event(.restored(.signals))
        XCTAssertEqual(event(.startFailed(call(1), busy)), [.closeGate, .deliver(busy)])
        XCTAssertEqual(machine.state, .off)
    }

    func testASubscriptionOfAnEarlierProcessWaitsForTheLink() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.restored(.socket)), [])
        XCTAssertEqual(event(.attributesReady), [.openGate(.socket, afterGap: false), .acquire(call(1))])
    }

    // MARK: The daemon

    func testADaemonThatIsGoneIsNotCalled() {
        turnOn()
        XCTAssertEqual(event(.linkWentDown(.disconnected, canCall: false)), [.closeGate])
        XCTAssertEqual(machine.state, .suspended(.signals))
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: true), .callStart(call(2))])
    }

    func testADaemonThatGoesWhileStoppingNeedNotAnswer() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.linkWentDown(.disconnected, canCall: false)), [])
        XCTAssertEqual(machine.state, .suspended(.signals))
    }

    // MARK: Interruptions under a link that seems to be up

    func testASocketThatClosesMostlyMeansThatTheLinkFalls() {
        turnOn(.socket)
        XCTAssertEqual(
            event(.socketClosed(call(1))), [.closeGate, .closeSocket(call(1)), .startTimer(.interruption)])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(
            event(lost), [.cancelTimer(.interruption), .closeSocket(call(1)), .closeGate, .callStop(call(2))])
        _ = event(.stopReplied(call(2), nil))
        XCTAssertEqual(machine.state, .suspended(.socket))
    }

    func testASocketThatClosesUnderALinkIsAcquiredAgain() {
        turnOn(.socket)
        _ = event(.socketClosed(call(1)))
        XCTAssertEqual(event(.fired(.interruption)), [.openGate(.socket, afterGap: true), .acquire(call(2))])
        XCTAssertEqual(event(.startReplied(call(2), isNotifying: false)), [.markGap])
    }

    func testNotifyingThatEndsByItselfIsAskedForAgain() {
        turnOn()
        XCTAssertEqual(
            event(.notifyingChanged(false)), [.openGate(.signals, afterGap: true), .startTimer(.interruption)])
        XCTAssertEqual(event(.fired(.interruption)), [.openGate(.signals, afterGap: true), .callStart(call(2))])
    }

    func testNotifyingThatReturnsByItselfLeavesAGapMark() {
        turnOn()
        _ = event(.notifyingChanged(false))
        XCTAssertEqual(event(.notifyingChanged(true)), [.cancelTimer(.interruption), .markGap])
        XCTAssertTrue(machine.isNotifying)
    }

    func testADaemonThatSaysNotConnectedIsAskedAgainLater() {
        turnOn()
        _ = event(.notifyingChanged(false))
        _ = event(.fired(.interruption))
        XCTAssertEqual(
            event(.startFailed(call(2), .peripheral(.disconnected))), [.closeGate, .startTimer(.interruption)])
    }

    func testADaemonThatIsStillAtItIsAskedAgainLater() {
        turnOn()
        _ = event(lost)
        _ = event(.stopReplied(call(2), nil))
        _ = event(.attributesReady)
        let underWay = Failure.characteristic(
            .acquiredByOther(BusFailure(name: "org.bluez.Error.InProgress", message: "In Progress")))
        XCTAssertEqual(event(.startFailed(call(3), underWay)), [.closeGate, .startTimer(.interruption)])
        XCTAssertEqual(event(.fired(.interruption)), [.openGate(.signals, afterGap: true), .callStart(call(4))])
    }

    func testAnInterruptedSubscriptionCanBeStopped() {
        turnOn()
        _ = event(.notifyingChanged(false))
        XCTAssertEqual(
            event(.stopAsked(id(1))), [.cancelTimer(.interruption), .closeGate, .callStop(call(2))])
    }

    func testAnInterruptedSubscriptionIsTakenUpAtOnceWhenAsked() {
        turnOn()
        _ = event(.notifyingChanged(false))
        XCTAssertEqual(
            event(.startAsked(id(1), .signals)),
            [.cancelTimer(.interruption), .openGate(.signals, afterGap: true), .callStart(call(2))])
        XCTAssertEqual(event(.startReplied(call(2), isNotifying: true)), [.markGap, .settle(id(1), nil)])
    }

    func testWhatOthersDoWithTheCharacteristicIsNoneOfOurs() {
        XCTAssertEqual(event(.notifyingChanged(true)), [])
        XCTAssertEqual(event(.notifyingChanged(false)), [])
        XCTAssertEqual(machine.state, .off)
    }

    // MARK: Ends

    func testAnInvalidCharacteristicEndsItsStreamsAndAsksNothingMore() {
        turnOn()
        XCTAssertEqual(event(.invalidated), [.closeGate, .finish(.characteristic(.invalidated))])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .characteristic(.invalidated))])
        XCTAssertEqual(event(.invalidated), [])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAnAttributeThatIsRemovedAndReturnsIsSubscribedToAgain() {
        turnOn(.socket)
        XCTAssertEqual(event(.attributeRemoved), [.closeSocket(call(1)), .closeGate])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [])
        XCTAssertEqual(event(.attributesReady), [.openGate(.socket, afterGap: true), .acquire(call(2))])
        XCTAssertEqual(event(.startReplied(call(2), isNotifying: false)), [.markGap, .settle(id(1), nil)])
    }

    func testWhatIsAskedBeforeTheTableIsReadWaitsForIt() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.linkWentUp), [])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [])
        XCTAssertEqual(event(.attributesReady), [.openGate(.signals, afterGap: false), .callStart(call(1))])
    }

    func testWhatWaitsForATableWithoutTheAttributeIsInvalid() {
        machine = SubscriptionMachine(isReady: false)
        _ = event(.linkWentUp)
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(
            event(.invalidated),
            [.settle(id(1), .characteristic(.invalidated)), .finish(.characteristic(.invalidated))])
    }

    func testWhatWaitsForTheTableFailsWithTheLink() {
        machine = SubscriptionMachine(isReady: false)
        _ = event(.linkWentUp)
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(lost), [.settle(id(1), .peripheral(.disconnected))])
    }

    func testAnAttributeThatIsRemovedWhileStartingLeavesTheAnswerToTheDaemon() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.attributeRemoved), [])
        XCTAssertEqual(
            event(.startFailed(call(1), .characteristic(.invalidated))),
            [.closeGate, .settle(id(1), .characteristic(.invalidated))])
    }

    func testAManagerThatEndsLeavesNothingBehind() {
        turnOn(.socket)
        XCTAssertEqual(
            event(.closed(canCall: true)), [.closeSocket(call(1)), .closeGate, .callStop(call(2)), .finish(nil)])
        XCTAssertEqual(event(.stopReplied(call(2), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAManagerThatEndsFailsWhoWaits() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.stopAsked(id(2)))
        XCTAssertEqual(
            event(.closed(canCall: false)),
            [
                .settle(id(1), .peripheral(.disconnected)), .closeGate, .settle(id(2), .peripheral(.disconnected)),
                .finish(nil),
            ])
    }
}
