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
    private let lost = SubscriptionMachine.Event.linkWentDown(.disconnected)
    private let busy = Failure.characteristic(
        .acquiredByOther(
            BusError(name: "org.bluez.Error.NotPermitted", message: "Notify acquired")))

    private func turnOn(_ transport: NotificationTransport = .signals) {
        _ = event(.startAsked(id(100), transport))
        _ = event(.began(call(1)))
    }

    // MARK: The link falls and returns

    func testAtTheLinksEndItUnsubscribes() {
        for transport in NotificationTransport.allCases {
            machine = SubscriptionMachine(isReady: true)
            turnOn(transport)
            XCTAssertEqual(event(lost), [.unsubscribe(call(1))])
            XCTAssertFalse(machine.isNotifying)
            XCTAssertEqual(event(.stopped(call(1), busy)), [])
            XCTAssertEqual(machine.state, .suspended)
            XCTAssertEqual(machine.wanted, transport)
        }
    }

    func testWhenTheLinkIsBackThereIsOneStartAndAGapMark() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals, afterGap: true)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: true)])
        XCTAssertTrue(machine.isNotifying)
    }

    func testASecondLossWhileItIsResumedKeepsTheRequest() {
        turnOn()
        _ = event(lost)
        _ = event(.attributesReady)
        XCTAssertEqual(event(lost), [.unsubscribe(call(2))])
        XCTAssertEqual(machine.state, .suspended)
        XCTAssertEqual(event(.began(call(2))), [])
        XCTAssertEqual(machine.state, .suspended)
    }

    func testALossWhileStoppingLeavesNothingToTakeUp() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(lost), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(event(.stopped(call(1), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testALossWhileStartingFailsWhoWaitsAndWithdrawsTheCall() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(
            event(.linkWentDown(.forcedDisconnect)),
            [
                .unsubscribe(call(1)), .settle(id(1), .peripheral(.forcedDisconnect)),
                .settle(id(2), .peripheral(.forcedDisconnect)),
            ])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testALossFailsWhatWaitsBehindAStop() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.stopAsked(id(2)))
        _ = event(.startAsked(id(3), .signals))
        _ = event(.startAsked(id(4), .socket, outlivesLinks: true))
        XCTAssertEqual(
            event(.linkWentDown(.forcedDisconnect)),
            [.unsubscribe(call(1))] + (1...3).map { .settle(id($0), .peripheral(.forcedDisconnect)) })
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .socket)])
    }

    func testTheRequestCanBeCancelledWithoutALink() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.stopAsked(id(1))), [.settle(id(1), nil)])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAStartWithoutALinkFailsAtOnceAndKeepsTheRequest() {
        turnOn()
        _ = event(lost)
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .suspended)
    }

    func testAStopWhileItIsResumedCancelsTheRequest() {
        turnOn()
        _ = event(lost)
        _ = event(.attributesReady)
        XCTAssertEqual(event(.stopAsked(id(1))), [.unsubscribe(call(2))])
        XCTAssertEqual(event(lost), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .off)
    }

    func testASubscriptionThatCannotBeResumedIsReportedToTheStreams() {
        turnOn()
        _ = event(lost)
        _ = event(.attributesReady)
        XCTAssertEqual(event(.failed(call(2), busy)), [.deliver(busy)])
        XCTAssertEqual(machine.state, .off)
    }

    // MARK: An earlier process

    func testASubscriptionOfAnEarlierProcessIsResumed() {
        XCTAssertEqual(event(.restored(.signals)), [.subscribe(call(1), .signals)])
        XCTAssertEqual(machine.wanted, .signals)
        XCTAssertEqual(event(.restored(.signals)), [], "It is being resumed.")
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: false)])
        XCTAssertTrue(machine.isNotifying)
    }

    func testTheStreamsReceiveTheFailureOfASubscriptionOfAnEarlierProcess() {
        _ = event(.restored(.signals))
        XCTAssertEqual(event(.failed(call(1), busy)), [.deliver(busy)])
        XCTAssertEqual(machine.state, .off)
    }

    func testASubscriptionOfAnEarlierProcessWaitsForTheLink() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.restored(.socket)), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(1), .socket)])
    }

    // MARK: Interruptions under a link that seems to be up

    func testAnInterruptionMostlyMeansThatTheLinkFalls() {
        turnOn(.socket)
        XCTAssertEqual(event(.interrupted(call(1))), [])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(event(lost), [.unsubscribe(call(1))])
        XCTAssertEqual(machine.state, .suspended)
    }

    func testAnInterruptionUnderALinkEndsWithAGapMark() {
        turnOn()
        _ = event(.interrupted(call(1)))
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [])
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: true), .settle(id(1), nil)])
        XCTAssertTrue(machine.isNotifying)
    }

    func testADaemonThatSaysNotConnectedIsAskedAgainLater() {
        turnOn()
        _ = event(.interrupted(call(1)))
        XCTAssertEqual(
            event(.failed(call(1), .peripheral(.disconnected))),
            [.subscribe(call(2), .signals, afterGap: true, isRepeated: true)])
    }

    func testADaemonThatIsStillAtItIsAskedAgainLater() {
        turnOn()
        _ = event(lost)
        _ = event(.attributesReady)
        let underWay = Failure.characteristic(
            .acquiredByOther(BusError(name: "org.bluez.Error.InProgress", message: "In Progress")))
        XCTAssertEqual(
            event(.failed(call(2), underWay)), [.subscribe(call(3), .signals, afterGap: true, isRepeated: true)])
    }

    func testAnInterruptedSubscriptionCanBeStopped() {
        turnOn()
        _ = event(.interrupted(call(1)))
        XCTAssertEqual(event(.stopAsked(id(1))), [.unsubscribe(call(1))])
    }

    // MARK: Ends

    func testAnInvalidCharacteristicEndsItsStreamsAndAsksNothingMore() {
        turnOn()
        XCTAssertEqual(event(.invalidated), [.unsubscribe(call(1)), .finish(.characteristic(.invalidated))])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .characteristic(.invalidated))])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAnAttributeThatIsRemovedAndReturnsIsSubscribedToAgain() {
        turnOn(.socket)
        XCTAssertEqual(event(.attributeRemoved), [.unsubscribe(call(1))])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .socket, afterGap: true)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: true), .settle(id(1), nil)])
    }

    func testWhatIsAskedBeforeTheTableIsReadWaitsForIt() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.linkWentUp), [])
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(1), .signals)])
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
            event(.failed(call(1), .characteristic(.invalidated))),
            [.settle(id(1), .characteristic(.invalidated))])
        XCTAssertEqual(machine.state, .off)
    }

    func testAManagerThatEndsLeavesNothingBehind() {
        turnOn(.socket)
        XCTAssertEqual(event(.closed), [.unsubscribe(call(1)), .finish(nil)])
        XCTAssertEqual(machine.state, .off)
    }

    func testAManagerThatEndsFailsWhoWaits() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.stopAsked(id(2)))
        XCTAssertEqual(
            event(.closed),
            [
                .unsubscribe(call(1)), .settle(id(1), .peripheral(.disconnected)),
                .settle(id(2), .peripheral(.disconnected)), .finish(nil),
            ])
    }
}
