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
    private let lost = SubscriptionMachine.Event.linkWentDown(.disconnected)
    private let refused = Failure.characteristic(
        .notifyFailed(BusError(name: "org.bluez.Error.Failed", message: "no")))

    private func askLasting(
        _ number: UInt64 = 1, _ transport: NotificationTransport = .signals
    ) -> [Effect] {
        event(.startAsked(id(number), transport, outlivesLinks: true))
    }

    // MARK: Links

    func testALossWhileStartingIsFollowedByAnotherStartWithoutAGapMark() {
        XCTAssertEqual(askLasting(), [.subscribe(call(1), .signals)])
        XCTAssertEqual(event(lost), [.unsubscribe(call(1))])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(1), nil)])
    }

    func testValuesThatCameBeforeTheLossAreFollowedByAGap() {
        _ = askLasting()
        XCTAssertEqual(event(.valuesCame(call(1))), [])
        _ = event(lost)
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals, afterGap: true)])
    }

    func testValuesThatAreReportedAfterTheLossAreFollowedByAGapToo() {
        _ = askLasting()
        _ = event(lost)
        XCTAssertEqual(event(.valuesCame(call(1))), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals, afterGap: true)])
    }

    func testALossWhileASocketIsAcquiredIsFollowedByAnotherAcquisition() {
        XCTAssertEqual(askLasting(1, .socket), [.subscribe(call(1), .socket)])
        XCTAssertEqual(event(lost), [.unsubscribe(call(1))])
        XCTAssertEqual(event(.began(call(1))), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .socket)])
    }

    func testALossWhileTheTableIsReadIsFollowedByAStart() {
        machine = SubscriptionMachine(isReady: false)
        _ = event(.linkWentUp)
        XCTAssertEqual(askLasting(), [])
        XCTAssertEqual(event(lost), [])
        XCTAssertEqual(machine.state, .suspended)
        _ = event(.linkWentUp)
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(1), .signals)])
    }

    func testItMayBeAskedForWithoutALink() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(askLasting(), [])
        XCTAssertEqual(machine.wanted, .signals)
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(1), .signals)])
    }

    func testAReplyThatThereIsNoLinkIsNoRefusal() {
        _ = askLasting()
        XCTAssertEqual(
            event(.failed(call(1), .peripheral(.disconnected))),
            [.subscribe(call(2), .signals, isRepeated: true)])
    }

    func testARefusalThatMayBeTheLinksEndIsTriedOnceMore() {
        let unlikely = Failure.characteristic(
            .notifyFailed(
                BusError(name: "org.bluez.Error.Failed", message: "0x0e", attError: .unlikelyError)))
        for failure in [unlikely, .characteristic(.invalidated)] {
            machine = SubscriptionMachine(isReady: true)
            _ = askLasting()
            XCTAssertEqual(
                event(.failed(call(1), failure)), [.subscribe(call(2), .signals, isRepeated: true)])
            XCTAssertEqual(event(.failed(call(2), failure)), [.settle(id(1), failure), .deliver(failure)])
        }
    }

    func testARefusalIsFinalOnALaterLinkToo() {
        _ = askLasting()
        _ = event(lost)
        _ = event(.attributesReady)
        XCTAssertEqual(event(.failed(call(2), refused)), [.settle(id(1), refused), .deliver(refused)])
        XCTAssertEqual(machine.state, .off)
    }

    func testAFirstRefusalIsNotDeliveredToOtherStreams() {
        _ = askLasting()
        XCTAssertEqual(event(.failed(call(1), refused)), [.settle(id(1), refused)])
    }

    func testOneThatFailsWithTheLinkDoesNotTakeTheOtherAlong() {
        _ = askLasting(1)
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(lost), [.unsubscribe(call(1)), .settle(id(2), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .suspended)
    }

    func testOneBesideASubscriptionThatFailsWithTheLinkIsBegunOnTheNext() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(askLasting(2, .socket), [])
        XCTAssertEqual(event(lost), [.unsubscribe(call(1)), .settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .socket)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(2), nil)])
    }

    func testEndedAttemptsAreReportedFromTheThirdOn() {
        _ = askLasting()
        for number in 1...2 as ClosedRange<UInt32> {
            XCTAssertEqual(event(lost), [.unsubscribe(call(number))])
            _ = event(.stopped(call(number), nil))
            _ = event(.attributesReady)
        }
        XCTAssertEqual(event(lost), [.unsubscribe(call(3)), .deliver(.peripheral(.disconnected))])
        // BlueZ has not ended the last one, so it was not asked for this one.
        _ = event(.attributesReady)
        XCTAssertFalse(machine.isStarting)
        XCTAssertEqual(event(lost), [.unsubscribe(call(4))])
    }

    /// The random faults of an hour have found that an interruption counted as an attempt.
    func testAnInterruptionIsNoAttempt() {
        _ = askLasting()
        _ = event(.began(call(1)))
        _ = event(.interrupted(call(1)))
        XCTAssertFalse(machine.isStarting)
        XCTAssertEqual(event(lost), [.unsubscribe(call(1))])
        for number in 2...3 as ClosedRange<UInt32> {
            _ = event(.stopped(call(number - 1), nil))
            _ = event(.attributesReady)
            XCTAssertEqual(event(lost), [.unsubscribe(call(number))])
        }
    }

    func testAnAttemptAfterAnInterruptionCounts() {
        _ = askLasting()
        _ = event(.failed(call(1), .peripheral(.disconnected)))
        XCTAssertFalse(machine.isStarting)
        _ = event(.asked(call(2)))
        XCTAssertTrue(machine.isStarting)
    }

    func testAnEstablishedSubscriptionIsNotLostWithAnotherAsk() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.began(call(1)))
        _ = event(.interrupted(call(1)))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(lost), [.unsubscribe(call(1)), .settle(id(2), .peripheral(.disconnected))])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals, afterGap: true)])
    }

    // MARK: Ends

    func testAStopWithoutALinkEndsTheWait() {
        _ = askLasting()
        _ = event(lost)
        XCTAssertEqual(event(.stopAsked(id(2))), [.settle(id(1), .cancelled), .settle(id(2), nil)])
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testAStopEndsTheWaitForALastingOne() {
        _ = askLasting()
        XCTAssertEqual(event(.stopAsked(id(2))), [.settle(id(1), .cancelled), .unsubscribe(call(1))])
        XCTAssertEqual(event(lost), [.settle(id(2), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .off)
    }

    func testTheManagersEndIsNoFailure() {
        _ = askLasting()
        XCTAssertEqual(event(.closed), [.unsubscribe(call(1)), .settle(id(1), .cancelled), .finish(nil)])
    }

    func testACharacteristicThatIsGoneOnTheNextLinkIsAFailure() {
        _ = askLasting()
        _ = event(lost)
        XCTAssertEqual(
            event(.invalidated),
            [.settle(id(1), .characteristic(.invalidated)), .finish(.characteristic(.invalidated))])
    }

    // MARK: Time

    func testWhatTakesTooLongIsTakenBack() {
        for transport in NotificationTransport.allCases {
            machine = SubscriptionMachine(isReady: true)
            _ = event(.startAsked(id(1), transport))
            XCTAssertEqual(
                event(.timedOut(id(1))),
                [.settle(id(1), .characteristic(.notifyTimeout)), .unsubscribe(call(1))])
            XCTAssertEqual(event(.began(call(1))), [])
            XCTAssertEqual(machine.state, .off)
        }
    }

    func testTheNextUsesTheCallThatTookTooLongForTheFirst() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(2), nil)])
    }

    func testALastingOneUsesTheCallThatTookTooLongForTheFirst() {
        _ = event(.startAsked(id(1), .signals))
        _ = askLasting(2)
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        _ = event(lost)
        XCTAssertEqual(machine.wanted, .signals)
    }

    func testOneThatWaitsBesideAnotherRunsOutByItself() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil)])
    }

    func testALastingOneRunsOutWithoutALink() {
        _ = askLasting()
        _ = event(lost)
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        XCTAssertEqual(machine.state, .off)
    }

    func testAnEstablishedSubscriptionSurvivesTheTimeOutOfAnotherAsk() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.began(call(1)))
        _ = event(.interrupted(call(1)))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: true)])
    }

    func testAStopThatTakesTooLongGoesOn() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.began(call(1)))
        _ = event(.stopAsked(id(2)))
        XCTAssertEqual(event(.timedOut(id(2))), [.settle(id(2), .characteristic(.notifyTimeout))])
        XCTAssertEqual(event(.stopped(call(1), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testATimeOutOfWhatIsSettledDoesNothing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.began(call(1)))
        XCTAssertEqual(event(.timedOut(id(1))), [])
    }
}
