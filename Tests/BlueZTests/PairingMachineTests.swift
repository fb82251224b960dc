import TestBasics
import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class PairingMachineTests: RandomTestCase {
    private typealias Machine = PairingMachine

    private let linked = LinkStatus(isConnected: true)
    private let bonded = LinkStatus(isConnected: true, isPaired: true, isBonded: true)
    private let paired = LinkStatus(isConnected: true, isPaired: true)

    private func error(_ name: String) -> BlueZError { BlueZError(name: "org.bluez.Error.\(name)") }

    /// A machine whose `Pair` has no reply.
    private func pairing(_ facts: LinkStatus = LinkStatus(), waiters: [PairingMachine.WaiterID] = [1]) -> Machine {
        var machine = Machine()
        _ = machine.statusChanged(facts)
        for waiter in waiters { _ = machine.asked(waiter, limit: 60) }
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: false), [.callPair])
        machine.pairSent()
        XCTAssertTrue(machine.isCalling)
        return machine
    }

    /// A machine that waits for the agent.
    private func asked(_ status: LinkStatus) -> Machine {
        var machine = Machine()
        _ = machine.statusChanged(status)
        _ = machine.asked(1, limit: 60)
        return machine
    }

    private func settled(
        _ outcome: PairingOutcome, _ waiters: [PairingMachine.WaiterID] = [1]
    ) -> [PairingMachine.Order] {
        waiters.flatMap { [.cancelTimer(.limit($0)), .settle($0, outcome)] }
    }

    // MARK: Success

    func testAPairingThatBondsSucceeds() {
        let denied = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        check(
            "a bonded device needs no call", Machine(), (.statusChanged(bonded), nil),
            (.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)] + settled(.bonded)))
        check(
            "a paired device without stored keys is not paired again", Machine(), (.statusChanged(paired), nil),
            (.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)] + settled(.paired)))
        check(
            "the agent is registered before pair is called", Machine(),
            (.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60), .wantAgent]),
            (.holds { !$0.isPairing }, nil), (.agentReady(nil, mustRelink: false), [.callPair]),
            (.holds { $0.isPairing }, nil), (.holds { !$0.isCalling }, nil), (.pairSent, nil),
            (.statusChanged(bonded), settled(.bonded)), (.pairReplied(), []))
        // Up to 5.86 there is no reply if BlueZ is discovering services when the pairing ends.
        check(
            "a bond is a success without a reply", pairing(linked), (.statusChanged(bonded), settled(.bonded)),
            (.pairReplied(error("Failed")), []), (.timerFired(.limit(1)), []))
        check(
            "without an agent pair is not called", Machine(), (.asked(1, limit: 60), nil),
            (.agentReady(denied, mustRelink: false), settled(.failed(.noAgent, denied))))
        for name in ["Failed", "AuthenticationFailed", "AuthenticationCanceled", "AlreadyExists"] {
            check(
                "a bond counts whatever the error: \(name)", pairing(), (.statusChanged(bonded), settled(.bonded)),
                (.pairReplied(error(name)), []))
        }
        check(
            "a pairing that stores no keys is reported as paired", pairing(),
            (.statusChanged(paired), [.startTimer(.bond, seconds: 3)]), (.pairReplied(), []),
            (.timerFired(.bond), [.cancelTimer(.bond)] + settled(.paired)))
        check(
            "a bond after the reply is awaited", pairing(), (.pairReplied(), nil),
            (.statusChanged(bonded), [.cancelTimer(.bond)] + settled(.bonded)))
        check(
            "a bond of another program ends the wait for a turn", Machine(), (.asked(1, limit: 60), nil),
            (.agentReady(nil, mustRelink: false), nil), (.statusChanged(bonded), [.leaveQueue] + settled(.bonded)))
        check(
            "two waiters share one call", pairing(waiters: [1, 2]),
            (.statusChanged(bonded), settled(.bonded, [1, 2])))
    }

    // MARK: The capability of the link

    func testASharedLinkIsKept() {
        check(
            "a shared link is kept", Machine(), (.statusChanged(linked), nil),
            (.asked(1, limit: 60, mayEndLink: false), nil), (.agentReady(nil, mustRelink: true), [.callPair]))
    }

    func testALinkWithoutTheCapabilityIsMadeAgain() {
        check(
            "a link with another capability is made again", asked(linked),
            (.agentReady(nil, mustRelink: true), [.callDisconnect]),
            (.statusChanged(LinkStatus()), nil), (.disconnected, [.callPair]))
        check(
            "a bond that comes while the link ends is a success", asked(linked),
            (.agentReady(nil, mustRelink: true), nil), (.statusChanged(bonded), []),
            (.disconnected, settled(.bonded)))
    }

    // MARK: Failures

    func testEachErrorHasItsCause() {
        let causes: [(String, PairingCause)] = [
            ("AuthenticationFailed", .failed), ("AuthenticationCanceled", .cancelled),
            ("AuthenticationRejected", .busy), ("AuthenticationTimeout", .timedOut),
            ("ConnectionAttemptFailed", .connectionFailed), ("Failed", .failed), ("NotReady", .notFound),
            ("DoesNotExist", .notFound), ("AlreadyExists", .failed),
        ]
        for (name, cause) in causes {
            // The link is as before the pairing.
            var machine = pairing(linked)
            XCTAssertEqual(
                machine.pairReplied(error(name)), settled(.failed(cause, error(name))), name)
        }
        let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply")
        var machine = pairing(linked)
        XCTAssertEqual(machine.pairReplied(noReply), settled(.failed(.notFound, noReply)))
    }

    func testALinkThatThePairingMadeIsEnded() {
        let failure = error("AuthenticationFailed")
        check(
            "a link that the pairing made is ended", pairing(), (.statusChanged(linked), nil),
            (.pairReplied(failure), [.callDisconnect]), (.disconnected, settled(.failed(.failed, failure))))
    }

    /// Otherwise a device with the address of a bonded one could end the bond.
    func testAnOlderBondStaysIfThePolicyRejectsThePasskey() {
        for isReceived in [true, false] {
            var machine = Machine()
            _ = machine.statusChanged(bonded)
            let orders = machine.requested(8, isDisplay: true, isReceived: isReceived)
            let refused = isReceived ? machine.answered(8, .reject(.rejectedByPolicy)) : orders
            XCTAssertEqual(refused.last, .callDisconnect)
            XCTAssertFalse(refused.contains(.noteRefusal))
        }
        var machine = Machine()
        _ = machine.statusChanged(bonded)
        XCTAssertEqual(machine.refuseDisplay(), [.noteRefusal, .callDisconnect])
    }

    func testADisplayEndsWithItsPairing() {
        let ended: [PairingMachine.Order] = [.cancelTimer(.display), .endRequest(8, .ended)]
        func display(_ facts: LinkStatus) -> Machine {
            var machine = Machine()
            _ = machine.statusChanged(facts)
            _ = machine.requested(8, isDisplay: true, isReceived: true)
            return machine
        }
        var machine = display(linked)
        XCTAssertEqual(machine.statusChanged(bonded), ended)
        XCTAssertEqual(machine.answered(8, .reject(.rejectedByUser)), [])
        machine = display(linked)
        XCTAssertEqual(machine.statusChanged(LinkStatus(), hasLinkEnded: true), ended)
        machine = display(linked)
        XCTAssertEqual(machine.timerFired(.display), ended)
        // The properties of a device that was paired before do not change when its pairing ends.
        machine = display(bonded)
        XCTAssertEqual(machine.statusChanged(bonded), [])
        XCTAssertEqual(machine.timerFired(.display), ended)
        machine = display(linked)
        XCTAssertEqual(
            machine.deviceGone(.noSuchObject), [.cancelTimer(.display), .endRequest(8, .cancelled)])
        XCTAssertTrue(machine.isIdle)
    }

    func testAFailureHasItsCauseAndEndsTheLink() {
        let canceled = error("AuthenticationCanceled")
        check(
            "a link that is lost is not a cancellation", pairing(linked), (.statusChanged(LinkStatus()), nil),
            (.pairReplied(canceled), settled(.failed(.linkLost, canceled))))
        // BlueZ does not always signal that a device is connected.
        check(
            "a link that is lost is not a cancellation", pairing(),
            (.requested(9, isDisplay: false, isReceived: true), nil), (.pairReplied(canceled), [.callDisconnect]),
            (.disconnected, settled(.failed(.linkLost, canceled))))
        // BlueZ asks about a pairing that an operation has begun; `Pair` has not been called, or waits for the end of that pairing.
        check(
            "a refusal holds for a pair that waits", asked(linked), (.agentReady(nil, mustRelink: false), nil),
            (.refuse(), [.leaveQueue] + settled(.failed(.rejectedByUser, nil))))
        check(
            "a refusal holds for a pair that waits", pairing(linked), (.pairReplied(error("InProgress")), nil),
            (.refuse(.timedOut), settled(.failed(.timedOut, nil))))
        check(
            "a refusal holds for a pair that waits", pairing(linked), (.refuse(), nil),
            (.pairReplied(error("InProgress")), settled(.failed(.rejectedByUser, error("InProgress")))))
        check(
            "a passkey that is rejected while it is displayed cancels", pairing(linked),
            (.refuseDisplay, [.noteRefusal, .callCancelPairing]), (.pairReplied(error("AuthenticationCanceled")), []),
            (.cancelReplied, [.callDisconnect]), (.disconnected, settled(.failed(.rejectedByUser, nil))),
            (.holds { $0.isIdle }, nil))
        check(
            "a passkey that is rejected when the pairing has succeeded fails it", pairing(linked),
            (.pairReplied(), nil), (.holds { $0.isPairing }, nil),
            (.refuseDisplay, [.noteRefusal, .cancelTimer(.bond), .callDisconnect]), (.statusChanged(bonded), []),
            (.disconnected, settled(.failed(.rejectedByUser, nil))))
        check(
            "a rejected passkey fails each pair that waits and ends the link", Machine(),
            (.statusChanged(linked), nil), (.refuseDisplay, [.noteRefusal, .callDisconnect]),
            (.holds { !$0.isIdle }, nil),
            // What is requested meanwhile is for the next link.
            (.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)]), (.disconnected, [.wantAgent]),
            (.agentReady(nil, mustRelink: false), [.callPair]),
            (.refuseDisplay, [.noteRefusal, .leaveQueue, .callDisconnect]),
            (.disconnected, settled(.failed(.rejectedByUser, nil))))
        check(
            "a lost turn to connect is taken again", pairing(),
            (.pairReplied(error("AuthenticationCanceled"), hasLostTurn: true), [.callPair]), (.pairSent, nil),
            (.holds { $0.isCalling }, nil))
        for facts in [LinkStatus(), linked] {
            check(
                "a device that goes fails the pairing: \(facts)", pairing(facts),
                (.deviceGone(.noSuchObject), settled(.failed(.notFound, .noSuchObject))),
                (.pairReplied(error("DoesNotExist")), []))
        }
    }

    func testTheAnswerOfThisProcessNamesTheCause() {
        let failure = error("AuthenticationFailed")
        for cause in [PairingCause.rejectedByUser, .rejectedByPolicy, .timedOut] {
            check(
                "the answer of this process names the cause: \(cause)", pairing(linked), (.refuse(cause), []),
                // The link is of no use after a refusal.
                (.pairReplied(failure), [.noteRefusal, .callDisconnect]),
                (.disconnected, settled(.failed(cause, failure))))
        }
        check(
            "the answer of this process names the cause", pairing(linked),
            (.requested(9, isDisplay: false, isReceived: true), nil),
            (.answered(9, .accept), [.endRequest(9, .answered(.accept))]),
            (.pairReplied(failure), settled(.failed(.rejectedByPeer, failure))))
    }

    // MARK: Cancelling

    func testThereIsNoCancelPairingWithoutAnUnansweredPair() {
        check(
            "there is no cancel pairing without an unanswered pair", Machine(), (.asked(1, limit: 60), nil),
            (.cancelAsked(1), settled(.failed(.cancelled, nil))), (.asked(1, limit: 60), nil),
            (.agentReady(nil, mustRelink: false), nil),
            (.cancelAsked(1), [.leaveQueue] + settled(.failed(.cancelled, nil))))
        check(
            "there is no cancel pairing without an unanswered pair", pairing(), (.pairReplied(), nil),
            (.cancelAsked(1), [.noteRefusal, .cancelTimer(.bond), .callDisconnect]))
        check(
            "there is no cancel pairing without an unanswered pair", pairing(linked),
            (.pairReplied(error("InProgress")), nil), (.cancelAsked(1), settled(.failed(.cancelled, nil))))
    }

    func testABondThatComesAfterTheCancellationIsRemoved() {
        check(
            "a bond that comes after the cancellation is removed", pairing(linked),
            (.cancelAsked(1), [.noteRefusal, .callCancelPairing]), (.cancelReplied, nil),
            (.statusChanged(bonded), []),
            // The note makes that certain.
            (.disconnected, settled(.failed(.cancelled, nil))))
    }

    func testACancelledPairingLeavesNoBond() {
        check(
            "a cancelled pairing ends its link and then settles", pairing(),
            (.cancelAsked(1), [.noteRefusal, .callCancelPairing]), (.cancelAsked(1), []),
            (.pairReplied(error("AuthenticationCanceled")), []), (.cancelReplied, [.callDisconnect]),
            (.disconnected, settled(.failed(.cancelled, nil))))
        check(
            "a waiter that leaves does not end the pairing of the others", pairing(waiters: [1, 2]),
            (.cancelAsked(1), [.cancelTimer(.limit(1)), .settle(1, .failed(.cancelled, nil))]),
            (.timerFired(.limit(1)), []), (.statusChanged(bonded), settled(.bonded, [2])))
        check(
            "a waiter that comes during the cancellation gets a new pairing", pairing(linked), (.cancelAsked(1), nil),
            (.asked(2, limit: 30), [.startTimer(.limit(2), seconds: 30)]), (.cancelReplied, nil),
            (.statusChanged(LinkStatus()), nil),
            (.disconnected, [.cancelTimer(.limit(1)), .settle(1, .failed(.cancelled, nil)), .wantAgent]),
            (.agentReady(nil, mustRelink: false), [.callPair]))
        check(
            "a waiter of the next pairing may leave", pairing(linked), (.cancelAsked(1), nil),
            (.asked(2, limit: 30), nil),
            (.timerFired(.limit(2)), [.cancelTimer(.limit(2)), .settle(2, .failed(.timedOut, nil))]),
            (.cancelReplied, nil), (.disconnected, settled(.failed(.cancelled, nil))))
    }

    func testABondThatCrossesTheCancellationIsRemoved() {
        check(
            "a bond that crosses the cancellation is removed", pairing(linked), (.cancelAsked(1), nil),
            (.statusChanged(bonded), nil), (.pairReplied(), nil), (.cancelReplied, [.callDisconnect]),
            // The removal is signalled before the link's end.
            (.deviceGone(.noSuchObject), settled(.failed(.cancelled, nil))), (.disconnected, []))
    }

    // MARK: Time

    func testATimeLimitEndsThePairing() {
        check(
            "a time limit cancels", pairing(linked), (.timerFired(.limit(1)), [.noteRefusal, .callCancelPairing]),
            (.cancelReplied, nil), (.disconnected, settled(.failed(.timedOut, nil))))
        check(
            "a time limit without an agent fails with its problem", Machine(), (.asked(1, limit: 60), nil),
            (.holds { [self] in $0.obstacle(error("Failed")) == .failed(.noAgent, error("Failed")) }, nil),
            (.timerFired(.limit(1), agentProblem: error("Failed")), settled(.failed(.noAgent, error("Failed")))))
        check(
            "a time limit without an agent fails with its problem", pairing(linked),
            (.holds { $0.obstacle(nil) == nil }, nil))
        for name in ["org.freedesktop.DBus.Error.AccessDenied", "org.bluez.Error.NotAuthorized"] {
            let denied = BlueZError(name: name)
            check(
                "a pair that is not allowed is no failed pairing: \(name)", pairing(linked),
                (.pairReplied(denied), settled(.failed(.denied, denied))))
        }
        check(
            "a time limit after the bond is a success", pairing(linked), (.statusChanged(bonded), settled(.bonded)),
            (.timerFired(.limit(1)), []))
    }

    // MARK: Other programs

    func testAPairingOfAnotherProgramIsJoined() {
        let busy = error("InProgress")
        check(
            "a pairing of another program is joined", pairing(linked), (.pairReplied(error("InProgress")), []),
            (.holds { !$0.isPairing }, nil), (.statusChanged(bonded), settled(.bonded)))
        check(
            "a pairing of another program that fails", pairing(linked), (.pairReplied(busy), nil),
            (.statusChanged(LinkStatus()), settled(.failed(.busy, busy))))
        check(
            "a pairing of another program that fails", pairing(linked), (.pairReplied(busy), nil),
            (.timerFired(.limit(1)), settled(.failed(.busy, busy))))
        check(
            "pair is called again after another program has connected", pairing(),
            (.pairReplied(error("InProgress")), []), (.statusChanged(linked), [.callPair]))
    }

    // MARK: Any order

    /// Each waiter is settled once, `CancelPairing` is called only while `Pair` has no reply, and at the end nothing is left.
    func testRandomPairingsSettleEachWaiterOnce() {
        var random = TestRandom(self)
        let errors = ["AuthenticationFailed", "AuthenticationCanceled", "InProgress", "AlreadyExists", "Failed"]
        for _ in 0..<500 {
            var machine = Machine()
            var open: Set<PairingMachine.WaiterID> = []
            var pending: [PairingMachine.Order] = []
            var last: PairingMachine.WaiterID = 0
            var isCalled = false
            func perform(_ orders: [PairingMachine.Order]) {
                for order in orders {
                    switch order {
                    case .settle(let waiter, _): XCTAssertNotNil(open.remove(waiter))
                    case .callCancelPairing:
                        XCTAssertTrue(isCalled)
                        pending.append(order)
                    case .wantAgent, .callDisconnect, .callPair: pending.append(order)
                    case .leaveQueue: pending.removeAll { $0 == .callPair }
                    case .startTimer, .cancelTimer, .noteRefusal, .receive, .endRequest: break
                    }
                }
                if machine.isIdle { (pending, isCalled) = ([], false) }
            }
            func reply() {
                guard !pending.isEmpty else { return }
                let order = pending.removeFirst()
                switch order {
                case .wantAgent: perform(machine.agentReady(error: nil, mustRelink: Bool.random(using: &random)))
                case .callPair where !isCalled:
                    machine.pairSent()
                    isCalled = true
                    pending.append(order)
                case .callPair:
                    isCalled = false
                    let error = Bool.random(using: &random) ? errors.randomElement(using: &random) : nil
                    perform(machine.pairReplied(error.map { self.error($0) }))
                case .callDisconnect: perform(machine.disconnected())
                case .callCancelPairing: perform(machine.cancelReplied())
                default: break
                }
                if pending.isEmpty { isCalled = false }
            }
            for _ in 0..<60 {
                switch Int.random(in: 0..<8, using: &random) {
                case 0:
                    last += 1
                    open.insert(last)
                    perform(machine.asked(last, limit: 30, mayEndLink: Bool.random(using: &random)))
                case 1:
                    if let waiter = open.sorted().randomElement(using: &random) { perform(machine.cancelAsked(waiter)) }
                case 2:
                    let facts = [LinkStatus(), linked, paired, bonded].randomElement(using: &random) ?? linked
                    perform(machine.statusChanged(facts))
                case 3:
                    let number = UInt64.random(in: 0..<4, using: &random)
                    perform(machine.requested(number, isDisplay: number < 2, isReceived: true))
                    if Bool.random(using: &random) { perform(machine.answered(number, .reject(.rejectedByUser))) }
                default: reply()
                }
            }
            for _ in 0..<200 {
                reply()
                for waiter in open.sorted() { perform(machine.timerFired(.limit(waiter))) }
                perform(machine.timerFired(.bond))
                perform(machine.timerFired(.display) + machine.endQuestion())
            }
            XCTAssertTrue(machine.isIdle)
            XCTAssertEqual(open, [])
        }
    }
}
