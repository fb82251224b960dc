import XCTest

@testable import BlueCapKit

/// Starting and stopping a subscription, and the calls that wait for it.
final class SubscriptionMachineTests: XCTestCase {
    private typealias Effect = Order.Action
    private typealias Failure = PeripheralFailure

    private var machine = SubscriptionMachine(isReady: true)

    private func event(_ event: SubscriptionMachine.Event) -> [Effect] { machine.event(event) }
    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }
    private func call(_ number: UInt32) -> SubscriptionMachine.Call { .init(rawValue: number) }
    private let busy = Failure.characteristic(
        .acquiredByOther(BusError(name: "org.bluez.Error.InProgress", message: "")))

    /// Brings the machine to `on`, with one call.
    private func turnOn(_ transport: NotificationTransport = .signals) {
        _ = event(.startAsked(id(100), transport))
        _ = event(.began(call(1)))
        XCTAssertTrue(machine.isNotifying)
    }

    // MARK: Starting

    func testItHasStartedWhenBlueZNotifies() {
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.subscribe(call(1), .signals)])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil)])
        XCTAssertTrue(machine.isNotifying)
    }

    func testARefusalIsReported() {
        _ = event(.startAsked(id(1), .socket))
        XCTAssertEqual(event(.failed(call(1), busy)), [.settle(id(1), busy)])
        XCTAssertEqual(machine.state, .off)
    }

    func testStartingTwiceIsOneCall() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [])
        XCTAssertEqual(
            event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil), .settle(id(2), nil)])
        XCTAssertEqual(event(.startAsked(id(3), .socket)), [.settle(id(3), nil)])
    }

    func testWhoWaitsBehindARefusalOfAnotherTransportIsTriedInItsTurn() {
        _ = event(.startAsked(id(1), .socket))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.failed(call(1), busy)), [.settle(id(1), busy), .subscribe(call(2), .signals)])
    }

    func testWithoutALinkItFailsAtOnce() {
        machine = SubscriptionMachine(isReady: false)
        XCTAssertEqual(event(.startAsked(id(1), .signals)), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(event(.stopAsked(id(2))), [.settle(id(2), .peripheral(.disconnected))])
    }

    // MARK: Streams

    func testTheLastStreamEndsASubscriptionForStreams() {
        _ = event(.startAsked(id(1), .signals, isForStream: true))
        _ = event(.began(call(1)))
        XCTAssertEqual(event(.readersEnded), [.unsubscribe(call(1))])
        XCTAssertEqual(event(.stopped(call(1), nil)), [])
        XCTAssertEqual(machine.state, .off)
    }

    func testTheLastStreamEndsARequest() {
        _ = event(.startAsked(id(1), .signals, outlivesLinks: true, isForStream: true))
        XCTAssertEqual(event(.readersEnded), [.settle(id(1), .cancelled), .unsubscribe(call(1))])
    }

    func testTheLastStreamDoesNotEndASubscriptionForMore() {
        let stream = SubscriptionMachine.Event.startAsked(id(1), .signals, isForStream: true)
        let more = SubscriptionMachine.Event.startAsked(id(2), .signals)
        for requests in [[more], [stream, more], [more, stream]] {
            machine = SubscriptionMachine(isReady: true)
            for request in requests { _ = event(request) }
            _ = event(.began(call(1)))
            XCTAssertEqual(event(.readersEnded), [])
            XCTAssertTrue(machine.isNotifying)
        }
    }

    func testASubscriptionForStreamsFollowsOneForMoreThatHasEnded() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        _ = event(.stopped(call(1), nil))
        _ = event(.startAsked(id(2), .signals, isForStream: true))
        _ = event(.began(call(2)))
        XCTAssertEqual(event(.readersEnded), [.unsubscribe(call(2))])
    }

    func testARequestThatHasFailedDoesNotKeepASubscriptionForStreams() {
        let ends: [[SubscriptionMachine.Event]] = [
            [.withdrawn(id(2)), .readersEnded], [.readersEnded, .withdrawn(id(2))],
            [.timedOut(id(2)), .readersEnded], [.readersEnded, .timedOut(id(2))],
            [.linkWentDown(.disconnected), .readersEnded], [.readersEnded, .linkWentDown(.disconnected)],
            [.readersEnded, .failed(call(2), .peripheral(.disconnected))],
        ]
        for end in ends {
            machine = SubscriptionMachine(isReady: true)
            _ = event(.startAsked(id(1), .signals, isForStream: true))
            _ = event(.began(call(1)))
            _ = event(.linkWentDown(.disconnected))
            XCTAssertEqual(event(.startAsked(id(3), .signals)), [.settle(id(3), .peripheral(.disconnected))])
            _ = event(.attributesReady)
            _ = event(.startAsked(id(2), .signals))
            for end in end { _ = event(end) }
            XCTAssertEqual(machine.state, .off, "\(end)")
            XCTAssertFalse(machine.isAwaited(by: id(2)), "\(end)")
        }
    }

    func testARequestForMoreContinuesWithoutTheStreams() {
        _ = event(.startAsked(id(1), .signals, isForStream: true))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.readersEnded), [.settle(id(1), .cancelled)])
        XCTAssertEqual(event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(2), nil)])
        XCTAssertEqual(event(.readersEnded), [])
        XCTAssertTrue(machine.isNotifying)
    }

    func testAStreamBehindAStopHasASubscriptionOfItsOwn() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.stopAsked(id(2)))
        _ = event(.startAsked(id(3), .signals, isForStream: true))
        _ = event(.began(call(1)))
        _ = event(.stopped(call(1), nil))
        _ = event(.began(call(2)))
        XCTAssertEqual(event(.readersEnded), [.unsubscribe(call(2))])
    }

    func testAStreamThatEndsBehindAStopNeedsNoSubscription() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.stopAsked(id(2)))
        _ = event(.startAsked(id(3), .signals, isForStream: true))
        XCTAssertEqual(event(.readersEnded), [.settle(id(3), .cancelled)])
        XCTAssertEqual(
            event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil), .unsubscribe(call(1))])
        XCTAssertEqual(machine.state, .off)
    }

    func testARestoredSubscriptionStays() {
        _ = event(.restored(.signals))
        _ = event(.began(call(1)))
        XCTAssertEqual(event(.readersEnded), [])
    }

    // MARK: Stopping

    func testStoppingWaitsForBlueZ() {
        turnOn()
        XCTAssertEqual(event(.stopAsked(id(1))), [.unsubscribe(call(1))])
        XCTAssertFalse(machine.isNotifying)
        XCTAssertEqual(event(.stopAsked(id(2))), [])
        XCTAssertEqual(event(.stopped(call(1), nil)), [.settle(id(1), nil), .settle(id(2), nil)])
        XCTAssertEqual(machine.state, .off)
    }

    func testStoppingWhatIsNotStartedSucceeds() {
        XCTAssertEqual(event(.stopAsked(id(1))), [.settle(id(1), nil)])
    }

    func testAStopWhileStartingComesAfterTheStart() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.stopAsked(id(2))), [])
        XCTAssertEqual(event(.startAsked(id(3), .signals)), [])
        XCTAssertEqual(
            event(.began(call(1))),
            [
                .subscribed(afterGap: false), .settle(id(1), nil), .unsubscribe(call(1)),
                .subscribe(call(2), .signals),
            ])
        XCTAssertEqual(event(.stopped(call(1), nil)), [.settle(id(2), nil)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(3), nil)])
    }

    func testAStopIsExecutedWithoutItsCaller() {
        for (end, failure) in [
            (SubscriptionMachine.Event.withdrawn(id(2)), Failure.cancelled),
            (.timedOut(id(2)), .characteristic(.notifyTimeout)),
        ] {
            machine = SubscriptionMachine(isReady: true)
            _ = event(.startAsked(id(1), .signals))
            _ = event(.stopAsked(id(2)))
            XCTAssertEqual(event(end), [.settle(id(2), failure)])
            XCTAssertEqual(
                event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil), .unsubscribe(call(1))])
            XCTAssertEqual(event(.stopped(call(1), nil)), [])
            XCTAssertEqual(machine.state, .off)
        }
    }

    func testAStopWhileTheTableIsReadComesAfterTheStart() {
        machine = SubscriptionMachine(isReady: false)
        _ = event(.linkWentUp)
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.stopAsked(id(2))), [])
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(1), .signals)])
        XCTAssertEqual(
            event(.began(call(1))), [.subscribed(afterGap: false), .settle(id(1), nil), .unsubscribe(call(1))])
    }

    func testAStartWhileStoppingIsASubscriptionOfItsOwn() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [.subscribe(call(2), .signals)])
        XCTAssertEqual(event(.stopped(call(1), nil)), [.settle(id(1), nil)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(2), nil)])
    }

    func testARefusedStopIsReported() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.stopped(call(1), busy)), [.settle(id(1), busy)])
        XCTAssertEqual(machine.state, .off)
    }

    // MARK: Reports that come too late

    func testAReportOfAnEarlierCallIsNotTakenForThisOne() {
        turnOn()
        _ = event(.stopAsked(id(1)))
        XCTAssertEqual(event(.began(call(1))), [])
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.failed(call(1), busy)), [])
        XCTAssertEqual(event(.began(call(1))), [])
        XCTAssertEqual(event(.interrupted(call(1))), [])
        XCTAssertEqual(machine.state, .starting)
    }

    // MARK: Security

    func testItStartsAgainAfterAPairing() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(event(.securityNeeded(call(1))), [])
        XCTAssertTrue(machine.isSecuring)
        XCTAssertEqual(event(.startAsked(id(2), .signals)), [])
        XCTAssertEqual(event(.secured(nil)), [.subscribe(call(2), .signals)])
        XCTAssertEqual(
            event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(1), nil), .settle(id(2), nil)])
    }

    func testAFailedPairingFailsTheSubscription() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(event(.secured(.timedOut)), [.settle(id(1), .characteristic(.pairingFailed(.timedOut)))])
        XCTAssertEqual(machine.state, .off)
        XCTAssertEqual(event(.secured(nil)), [])
    }

    func testARejectedPairingFailsTheSubscriptionAndStopsIt() {
        _ = event(.startAsked(id(1), .signals))
        XCTAssertEqual(
            event(.pairingRejected(.timedOut)),
            [.unsubscribe(call(1)), .settle(id(1), .characteristic(.pairingFailed(.timedOut)))])
        XCTAssertEqual(machine.state, .off)
        XCTAssertEqual(event(.pairingRejected(.timedOut)), [])
    }

    func testTheWaitOutlivesALinkThatThePairingEnds() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(event(.linkWentDown(.disconnected, keepsSecuring: true)), [])
        XCTAssertTrue(machine.isSecuring)
        XCTAssertEqual(event(.secured(nil)), [])
        XCTAssertFalse(machine.isSecuring)
        XCTAssertTrue(machine.isAwaitingLink)
        XCTAssertEqual(event(.linkWentUp), [])
        XCTAssertFalse(machine.isAwaitingLink)
        XCTAssertEqual(event(.attributesReady), [.subscribe(call(2), .signals)])
        XCTAssertEqual(event(.began(call(2))), [.subscribed(afterGap: false), .settle(id(1), nil)])
    }

    func testTheNewLinkMayBeUpBeforeThePairingEnds() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        _ = event(.linkWentDown(.disconnected, keepsSecuring: true))
        _ = event(.linkWentUp)
        XCTAssertEqual(event(.attributesReady), [])
        XCTAssertEqual(event(.secured(nil)), [.subscribe(call(2), .signals)])
    }

    func testAPairingThatMakesNoLinkFailsTheSubscription() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        _ = event(.linkWentDown(.disconnected, keepsSecuring: true))
        _ = event(.secured(nil))
        XCTAssertEqual(event(.linkWentDown(.disconnected)), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .off)
    }

    func testAFailedPairingFailsEachThatWaitsForTheLinkThatItEnded() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .socket))
        _ = event(.securityNeeded(call(1)))
        _ = event(.linkWentDown(.disconnected, keepsSecuring: true))
        XCTAssertEqual(
            event(.secured(.timedOut)),
            [.settle(id(1), .characteristic(.pairingFailed(.timedOut))), .settle(id(2), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .off)
    }

    func testALostLinkEndsTheWaitForAPairing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(event(.linkWentDown(.disconnected)), [.settle(id(1), .peripheral(.disconnected))])
        XCTAssertEqual(machine.state, .off)
    }

    func testAWithdrawnStartEndsTheSubscriptionUnlessAnotherWaitsForIt() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.startAsked(id(2), .signals))
        XCTAssertEqual(event(.withdrawn(id(1))), [.settle(id(1), .cancelled)])
        XCTAssertEqual(machine.state, .starting)
        XCTAssertEqual(event(.withdrawn(id(2))), [.settle(id(2), .cancelled), .unsubscribe(call(1))])
        XCTAssertEqual(machine.state, .off)
        XCTAssertFalse(machine.isAwaited(by: id(2)))
    }

    func testATimeOutEndsTheWaitForAPairing() {
        _ = event(.startAsked(id(1), .signals))
        _ = event(.securityNeeded(call(1)))
        XCTAssertEqual(event(.timedOut(id(1))), [.settle(id(1), .characteristic(.notifyTimeout))])
        XCTAssertEqual(machine.state, .off)
    }
}
