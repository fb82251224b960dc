import TestRandomness
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

    private func settled(
        _ outcome: PairingOutcome, _ waiters: [PairingMachine.WaiterID] = [1]
    ) -> [PairingMachine.Order] {
        waiters.flatMap { [.cancelTimer(.limit($0)), .settle($0, outcome)] }
    }

    /// BlueZ asks, and the answer rejects that.
    private func refuse(
        _ machine: inout PairingMachine, _ cause: PairingCause = .rejectedByUser
    ) -> [PairingMachine.Order] {
        XCTAssertEqual(machine.requested(9, isDisplay: false, isReceived: true), [.receive(9)])
        let orders = machine.answered(9, .reject(cause))
        XCTAssertEqual(orders.first, .endRequest(9, .answered(.reject(cause))))
        return Array(orders.dropFirst())
    }

    /// BlueZ displays a passkey, and the answer rejects that.
    private func refuseDisplay(_ machine: inout PairingMachine) -> [PairingMachine.Order] {
        XCTAssertEqual(
            machine.requested(8, isDisplay: true, isReceived: true), [.startTimer(.display, seconds: 35), .receive(8)])
        let orders = machine.answered(8, .reject(.rejectedByUser))
        XCTAssertEqual(
            orders.prefix(2), [.cancelTimer(.display), .endRequest(8, .answered(.reject(.rejectedByUser)))])
        return Array(orders.dropFirst(2))
    }

    // MARK: Success

    func testABondedDeviceNeedsNoCall() {
        var machine = Machine()
        _ = machine.statusChanged(bonded)
        XCTAssertEqual(
            machine.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)] + settled(.bonded))
    }

    func testAPairedDeviceWithoutStoredKeysIsNotPairedAgain() {
        var machine = Machine()
        _ = machine.statusChanged(paired)
        XCTAssertEqual(
            machine.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)] + settled(.paired))
    }

    func testTheAgentIsRegisteredBeforePairIsCalled() {
        var machine = Machine()
        XCTAssertEqual(machine.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60), .wantAgent])
        XCTAssertFalse(machine.isPairing)
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: false), [.callPair])
        XCTAssertTrue(machine.isPairing)
        XCTAssertFalse(machine.isCalling)
        machine.pairSent()
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded))
        XCTAssertEqual(machine.pairReplied(nil), [])
    }

    /// Up to 5.86 there is no reply if BlueZ is discovering services when the pairing ends.
    func testABondIsASuccessWithoutAReply() {
        var machine = pairing(linked)
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded))
        XCTAssertEqual(machine.pairReplied(error("Failed")), [])
        XCTAssertEqual(machine.timerFired(.limit(1)), [])
    }

    func testWithoutAnAgentPairIsNotCalled() {
        var machine = Machine()
        _ = machine.asked(1, limit: 60)
        let denied = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        XCTAssertEqual(
            machine.agentReady(error: denied, mustRelink: false), settled(.failed(.noAgent, denied)))
    }

    func testABondCountsWhateverTheError() {
        for name in ["Failed", "AuthenticationFailed", "AuthenticationCanceled", "AlreadyExists"] {
            var machine = pairing()
            XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded), name)
            XCTAssertEqual(machine.pairReplied(error(name)), [], name)
        }
    }

    func testAPairingThatStoresNoKeysIsReportedAsPaired() {
        var machine = pairing()
        XCTAssertEqual(machine.statusChanged(paired), [.startTimer(.bond, seconds: 3)])
        XCTAssertEqual(machine.pairReplied(nil), [])
        XCTAssertEqual(machine.timerFired(.bond), [.cancelTimer(.bond)] + settled(.paired))
    }

    func testABondAfterTheReplyIsAwaited() {
        var machine = pairing()
        _ = machine.pairReplied(nil)
        XCTAssertEqual(machine.statusChanged(bonded), [.cancelTimer(.bond)] + settled(.bonded))
    }

    func testABondOfAnotherProgramEndsTheWaitForATurn() {
        var machine = Machine()
        _ = machine.asked(1, limit: 60)
        _ = machine.agentReady(error: nil, mustRelink: false)
        XCTAssertEqual(machine.statusChanged(bonded), [.leaveQueue] + settled(.bonded))
    }

    func testTwoWaitersShareOneCall() {
        var machine = pairing(waiters: [1, 2])
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded, [1, 2]))
    }

    // MARK: The capability of the link

    func testALinkWithAnotherCapabilityIsMadeAgain() {
        var machine = Machine()
        _ = machine.statusChanged(linked)
        _ = machine.asked(1, limit: 60)
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: true), [.callDisconnect])
        _ = machine.statusChanged(LinkStatus())
        XCTAssertEqual(machine.disconnected(), [.callPair])
    }

    func testABondThatComesWhileTheLinkEndsIsASuccess() {
        var machine = Machine()
        _ = machine.statusChanged(linked)
        _ = machine.asked(1, limit: 60)
        _ = machine.agentReady(error: nil, mustRelink: true)
        XCTAssertEqual(machine.statusChanged(bonded), [])
        XCTAssertEqual(machine.disconnected(), settled(.bonded))
    }

    func testASharedLinkIsKept() {
        var machine = Machine()
        _ = machine.statusChanged(linked)
        _ = machine.asked(1, limit: 60, mayEndLink: false)
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: true), [.callPair])
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
        var machine = pairing()
        _ = machine.statusChanged(linked)
        let failure = error("AuthenticationFailed")
        XCTAssertEqual(machine.pairReplied(failure), [.callDisconnect])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.failed, failure)))
    }

    func testALinkThatIsLostIsNotACancellation() {
        let canceled = error("AuthenticationCanceled")
        var machine = pairing(linked)
        _ = machine.statusChanged(LinkStatus())
        XCTAssertEqual(machine.pairReplied(canceled), settled(.failed(.linkLost, canceled)))

        // BlueZ does not always signal that a device is connected.
        machine = pairing()
        _ = machine.requested(9, isDisplay: false, isReceived: true)
        XCTAssertEqual(machine.pairReplied(canceled), [.callDisconnect])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.linkLost, canceled)))
    }

    func testTheAnswerOfThisProcessNamesTheCause() {
        let failure = error("AuthenticationFailed")
        for cause in [PairingCause.rejectedByUser, .rejectedByPolicy, .timedOut] {
            var machine = pairing(linked)
            XCTAssertEqual(refuse(&machine, cause), [])
            // The link is of no use after a refusal.
            XCTAssertEqual(machine.pairReplied(failure), [.noteRefusal, .callDisconnect])
            XCTAssertEqual(machine.disconnected(), settled(.failed(cause, failure)))
        }
        var machine = pairing(linked)
        _ = machine.requested(9, isDisplay: false, isReceived: true)
        XCTAssertEqual(machine.answered(9, .accept), [.endRequest(9, .answered(.accept))])
        XCTAssertEqual(machine.pairReplied(failure), settled(.failed(.rejectedByPeer, failure)))
    }

    /// BlueZ asks about a pairing that an operation has begun; `Pair` has not been called, or waits for the end of that pairing.
    func testARefusalHoldsForAPairThatWaits() {
        var machine = Machine()
        _ = machine.statusChanged(linked)
        _ = machine.asked(1, limit: 60)
        _ = machine.agentReady(error: nil, mustRelink: false)
        XCTAssertEqual(refuse(&machine), [.leaveQueue] + settled(.failed(.rejectedByUser, nil)))

        machine = pairing(linked)
        _ = machine.pairReplied(error("InProgress"))
        XCTAssertEqual(refuse(&machine, .timedOut), settled(.failed(.timedOut, nil)))

        machine = pairing(linked)
        _ = refuse(&machine)
        XCTAssertEqual(
            machine.pairReplied(error("InProgress")), settled(.failed(.rejectedByUser, error("InProgress"))))
    }

    func testAPasskeyThatIsRejectedWhileItIsDisplayedCancels() {
        var machine = pairing(linked)
        XCTAssertEqual(refuseDisplay(&machine), [.noteRefusal, .callCancelPairing])
        XCTAssertEqual(machine.pairReplied(error("AuthenticationCanceled")), [])
        XCTAssertEqual(machine.cancelReplied(), [.callDisconnect])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.rejectedByUser, nil)))
        XCTAssertTrue(machine.isIdle)
    }

    func testAPasskeyThatIsRejectedWhenThePairingHasSucceededFailsIt() {
        var machine = pairing(linked)
        _ = machine.pairReplied(nil)
        XCTAssertTrue(machine.isPairing)
        XCTAssertEqual(refuseDisplay(&machine), [.noteRefusal, .cancelTimer(.bond), .callDisconnect])
        XCTAssertEqual(machine.statusChanged(bonded), [])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.rejectedByUser, nil)))
    }

    func testARejectedPasskeyFailsEachPairThatWaitsAndEndsTheLink() {
        var machine = Machine()
        _ = machine.statusChanged(linked)
        XCTAssertEqual(refuseDisplay(&machine), [.noteRefusal, .callDisconnect])
        XCTAssertFalse(machine.isIdle)
        // What is requested meanwhile is for the next link.
        XCTAssertEqual(machine.asked(1, limit: 60), [.startTimer(.limit(1), seconds: 60)])
        XCTAssertEqual(machine.disconnected(), [.wantAgent])
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: false), [.callPair])
        XCTAssertEqual(refuseDisplay(&machine), [.noteRefusal, .leaveQueue, .callDisconnect])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.rejectedByUser, nil)))
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
        XCTAssertEqual(refuseDisplay(&machine), [.noteRefusal, .callDisconnect])
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

    func testALostTurnToConnectIsTakenAgain() {
        var machine = pairing()
        XCTAssertEqual(machine.pairReplied(error("AuthenticationCanceled"), hasLostTurn: true), [.callPair])
        machine.pairSent()
        XCTAssertTrue(machine.isCalling)
    }

    func testADeviceThatGoesFailsThePairing() {
        for facts in [LinkStatus(), linked] {
            var machine = pairing(facts)
            XCTAssertEqual(machine.deviceGone(.noSuchObject), settled(.failed(.notFound, .noSuchObject)))
            XCTAssertEqual(machine.pairReplied(error("DoesNotExist")), [])
        }
    }

    // MARK: Cancelling

    func testThereIsNoCancelPairingWithoutAnUnansweredPair() {
        var machine = Machine()
        _ = machine.asked(1, limit: 60)
        XCTAssertEqual(machine.cancelAsked(1), settled(.failed(.cancelled, nil)))

        _ = machine.asked(1, limit: 60)
        _ = machine.agentReady(error: nil, mustRelink: false)
        XCTAssertEqual(machine.cancelAsked(1), [.leaveQueue] + settled(.failed(.cancelled, nil)))

        machine = pairing()
        _ = machine.pairReplied(nil)
        XCTAssertEqual(machine.cancelAsked(1), [.noteRefusal, .cancelTimer(.bond), .callDisconnect])

        machine = pairing(linked)
        _ = machine.pairReplied(error("InProgress"))
        XCTAssertEqual(machine.cancelAsked(1), settled(.failed(.cancelled, nil)))
    }

    func testACancelledPairingEndsItsLinkAndThenSettles() {
        var machine = pairing()
        XCTAssertEqual(machine.cancelAsked(1), [.noteRefusal, .callCancelPairing])
        XCTAssertEqual(machine.cancelAsked(1), [])
        XCTAssertEqual(machine.pairReplied(error("AuthenticationCanceled")), [])
        XCTAssertEqual(machine.cancelReplied(), [.callDisconnect])
        XCTAssertEqual(machine.disconnected(), settled(.failed(.cancelled, nil)))
    }

    func testABondThatComesAfterTheCancellationIsRemoved() {
        var machine = pairing(linked)
        XCTAssertEqual(machine.cancelAsked(1), [.noteRefusal, .callCancelPairing])
        _ = machine.cancelReplied()
        XCTAssertEqual(machine.statusChanged(bonded), [])
        // The note makes that certain.
        XCTAssertEqual(machine.disconnected(), settled(.failed(.cancelled, nil)))
    }

    func testABondThatCrossesTheCancellationIsRemoved() {
        var machine = pairing(linked)
        _ = machine.cancelAsked(1)
        _ = machine.statusChanged(bonded)
        _ = machine.pairReplied(nil)
        XCTAssertEqual(machine.cancelReplied(), [.callDisconnect])
        // The removal is signalled before the link's end.
        XCTAssertEqual(machine.deviceGone(.noSuchObject), settled(.failed(.cancelled, nil)))
        XCTAssertEqual(machine.disconnected(), [])
    }

    func testAWaiterThatLeavesDoesNotEndThePairingOfTheOthers() {
        var machine = pairing(waiters: [1, 2])
        XCTAssertEqual(machine.cancelAsked(1), [.cancelTimer(.limit(1)), .settle(1, .failed(.cancelled, nil))])
        XCTAssertEqual(
            machine.timerFired(.limit(1)), [])
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded, [2]))
    }

    func testAWaiterThatComesDuringTheCancellationGetsANewPairing() {
        var machine = pairing(linked)
        _ = machine.cancelAsked(1)
        XCTAssertEqual(machine.asked(2, limit: 30), [.startTimer(.limit(2), seconds: 30)])
        _ = machine.cancelReplied()
        _ = machine.statusChanged(LinkStatus())
        XCTAssertEqual(
            machine.disconnected(),
            [.cancelTimer(.limit(1)), .settle(1, .failed(.cancelled, nil)), .wantAgent])
        XCTAssertEqual(machine.agentReady(error: nil, mustRelink: false), [.callPair])
    }

    func testAWaiterOfTheNextPairingMayLeave() {
        var machine = pairing(linked)
        _ = machine.cancelAsked(1)
        _ = machine.asked(2, limit: 30)
        XCTAssertEqual(machine.timerFired(.limit(2)), [.cancelTimer(.limit(2)), .settle(2, .failed(.timedOut, nil))])
        _ = machine.cancelReplied()
        XCTAssertEqual(machine.disconnected(), settled(.failed(.cancelled, nil)))
    }

    // MARK: Time

    func testATimeLimitCancels() {
        var machine = pairing(linked)
        XCTAssertEqual(machine.timerFired(.limit(1)), [.noteRefusal, .callCancelPairing])
        _ = machine.cancelReplied()
        XCTAssertEqual(machine.disconnected(), settled(.failed(.timedOut, nil)))
    }

    func testATimeLimitWithoutAnAgentFailsWithItsProblem() {
        var machine = Machine()
        _ = machine.asked(1, limit: 60)
        XCTAssertEqual(machine.obstacle(error("Failed")), .failed(.noAgent, error("Failed")))
        XCTAssertEqual(
            machine.timerFired(.limit(1), agentProblem: error("Failed")), settled(.failed(.noAgent, error("Failed"))))
        machine = pairing(linked)
        XCTAssertNil(machine.obstacle(nil))
    }

    func testAPairThatIsNotAllowedIsNoFailedPairing() {
        for name in ["org.freedesktop.DBus.Error.AccessDenied", "org.bluez.Error.NotAuthorized"] {
            var machine = pairing(linked)
            let denied = BlueZError(name: name)
            XCTAssertEqual(machine.pairReplied(denied), settled(.failed(.denied, denied)))
        }
    }

    func testATimeLimitAfterTheBondIsASuccess() {
        var machine = pairing(linked)
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded))
        XCTAssertEqual(machine.timerFired(.limit(1)), [])
    }

    // MARK: Other programs

    func testAPairingOfAnotherProgramIsJoined() {
        var machine = pairing(linked)
        XCTAssertEqual(machine.pairReplied(error("InProgress")), [])
        XCTAssertFalse(machine.isPairing)
        XCTAssertEqual(machine.statusChanged(bonded), settled(.bonded))
    }

    func testAPairingOfAnotherProgramThatFails() {
        let busy = error("InProgress")
        var machine = pairing(linked)
        _ = machine.pairReplied(busy)
        XCTAssertEqual(machine.statusChanged(LinkStatus()), settled(.failed(.busy, busy)))

        machine = pairing(linked)
        _ = machine.pairReplied(busy)
        XCTAssertEqual(machine.timerFired(.limit(1)), settled(.failed(.busy, busy)))
    }

    func testPairIsCalledAgainAfterAnotherProgramHasConnected() {
        var machine = pairing()
        XCTAssertEqual(machine.pairReplied(error("InProgress")), [])
        XCTAssertEqual(machine.statusChanged(linked), [.callPair])
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
