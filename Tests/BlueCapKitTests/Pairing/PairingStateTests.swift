import BlueCapBlueZ
import XCTest

@testable import BlueCapKit

final class PairingStateTests: XCTestCase {
    private typealias Facts = LinkStatus

    private var state = PairingState()
    private let date = Date(timeIntervalSince1970: 1_000)
    private let device = ObjectKey(adapter: 0)
    private let failure = BusError(name: "org.bluez.Error.AuthenticationFailed", message: "Authentication Failed")

    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    private func facts(_ change: (inout Facts) -> Void = { _ in }) -> Facts {
        var facts = Facts(device: device)
        change(&facts)
        return facts
    }

    private func bonded() -> Facts {
        facts {
            $0.isPaired = true
            $0.isBonded = true
        }
    }

    private func ask(
        _ request: PairingState.Request = .pair(trusting: false), _ number: UInt64 = 1, timeout: TimeInterval = 60,
        _ facts: Facts? = nil
    ) -> [Order.Action] {
        Orders.given { state.asked(request, id(number), timeout: timeout, facts ?? self.facts(), into: &$0) }
    }

    private func reply(_ error: PairingError?, _ attempt: UInt32 = 1, _ facts: Facts? = nil) -> [Order.Action] {
        Orders.given { _ = state.replied(attempt, error, facts ?? self.facts(), at: date, into: &$0) }
    }

    private func change(_ new: Facts, from old: Facts? = nil) -> [Order.Action] {
        Orders.given { state.factsChanged(from: old ?? facts(), to: new, into: &$0) }
    }

    private func removed(_ error: PairingError? = nil) -> [Order.Action] {
        Orders.given { state.removed(error, Facts(), into: &$0) }
    }

    // MARK: Pairing

    func testItPairsOnceForAllRequests() {
        XCTAssertEqual(ask(), [.callPair(1, timeout: 60)])
        XCTAssertTrue(state.isPairing)
        XCTAssertEqual(ask(.pair(trusting: true), 2, timeout: .infinity), [])
        XCTAssertEqual(
            reply(nil),
            [.setTrusted(true), .settle(id(1), .done), .settle(id(2), .done)])
        XCTAssertFalse(state.isPairing)
        XCTAssertEqual(state.count, 1)
        XCTAssertEqual(state.date, date)
    }

    func testABondSucceedsAtOnceIfTheLinkIsEncryptedWithIt() {
        XCTAssertEqual(
            ask(secured()),
            [.settle(id(1), .done)])
        XCTAssertTrue(state.isIdle)
    }

    func testABondSucceedsWhenALinkIsEncryptedWithIt() {
        XCTAssertEqual(
            ask(.pair(trusting: true), 1, timeout: .infinity, bonded()), [.startTimer(.search, PairingState.limit)])
        XCTAssertTrue(state.isVerifying)
        XCTAssertTrue(state.nextLinkToVerify())
        var linked = bonded()
        linked.isConnected = true
        XCTAssertEqual(change(linked, from: bonded()), [])
        XCTAssertEqual(
            change(secured(), from: linked), [.cancelTimer(.search), .setTrusted(true), .settle(id(1), .done)])
        XCTAssertEqual(state.count, 0)
    }

    func testABondWhoseKeysAreMissingFails() {
        _ = ask(.pair(trusting: true), 1, timeout: .infinity, bonded())
        XCTAssertEqual((0..<4).map { _ in state.nextLinkToVerify() }, [true, true, true, false])
        let error = PairingError.keyMissing(isCertain: false)
        XCTAssertEqual(
            Orders.given { state.verified(error, bonded(), into: &$0) },
            [.cancelTimer(.search), .settle(id(1), .failed(.pairing(error)))])
        XCTAssertTrue(state.isIdle)
    }

    func testADeviceThatIsRemovedWhileItsBondIsVerifiedIsSought() {
        _ = ask(.pair(trusting: false), 1, timeout: .infinity, bonded())
        XCTAssertEqual(
            change(Facts(), from: bonded()),
            [.cancelTimer(.search), .seek, .startTimer(.search, PairingState.limit)])
        XCTAssertEqual(
            Orders.given { state.searchTimedOut(into: &$0) },
            [.settle(id(1), .failed(.pairing(.timedOut))), .stopSeeking, .cancelTimer(.search)])
    }

    func testABondThatIsRemovedMeanwhileIsMadeAgain() {
        _ = ask(bonded())
        XCTAssertEqual(change(facts(), from: bonded()).last, .callPair(1, timeout: 60))
    }

    // MARK: Consent

    private func need(_ policy: PairingPolicy, _ facts: Facts? = nil) -> [Order.Action] {
        state.policy = policy
        return Orders.given { state.needed(facts ?? self.facts(), into: &$0) }
    }

    private func answer(_ error: PairingError?, _ attempt: UInt32 = 1) -> [Order.Action] {
        guard let error else { return Orders.given { state.agreed(attempt, facts(), into: &$0) } }
        return reply(error, attempt)
    }

    func testAPolicyThatAsksNeedsAnAnswerBeforeAnOperationPairs() {
        XCTAssertEqual(need(.justWorks), [.callPair(1, timeout: PairingState.limit)])
        state = PairingState()
        XCTAssertEqual(need(.ask), [.askForConsent(1)])
        XCTAssertFalse(state.isPairing)
        XCTAssertEqual(answer(nil), [.callPair(2, timeout: PairingState.limit)])
        XCTAssertEqual(answer(nil), [])
        _ = reply(nil, 2)
        // The next pairing needs another answer.
        XCTAssertEqual(need(.ask), [.askForConsent(3)])
    }

    func testARefusalFailsWhatWaits() {
        _ = need(.ask)
        XCTAssertEqual(ask(.pair(trusting: false), 1, timeout: .infinity), [])
        let error = PairingError.rejected(by: .application)
        XCTAssertEqual(answer(error).last, .settle(id(1), .failed(.pairing(error))))
        XCTAssertTrue(state.isIdle)
        XCTAssertEqual(state.failureCount, 1)
    }

    func testTheApplicationsRequestNeedsNoAnswer() {
        state.policy = .ask
        XCTAssertEqual(ask(), [.callPair(1, timeout: 60)])
    }

    func testAQuestionEndsWithItsReason() {
        _ = need(.ask)
        XCTAssertEqual(Orders.given { state.cancelAsked(into: &$0) }, [.cancelRequests])
        XCTAssertTrue(state.isIdle)
        _ = need(.ask)
        // Another program has paired.
        XCTAssertEqual(change(secured()).suffix(1), [.cancelRequests])
        XCTAssertTrue(state.isIdle)
        _ = need(.ask)
        XCTAssertEqual(change(Facts()), [.cancelRequests, .seek, .startTimer(.search, PairingState.limit)])
    }

    func testARefusedPairingFailsTheRepairThatWaitsForIt() {
        _ = ask(.pair(trusting: false), 1, timeout: .infinity)
        _ = ask(.repair, 2, timeout: .infinity)
        let error = PairingError.rejected(by: .application)
        XCTAssertEqual(
            Array(reply(error).dropFirst()),
            [.settle(id(1), .failed(.pairing(error))), .settle(id(2), .failed(.pairing(error)))])
        XCTAssertTrue(state.isIdle)
    }

    private func secured() -> Facts {
        var facts = bonded()
        (facts.isConnected, facts.areServicesResolved) = (true, true)
        return facts
    }

    private func ask(_ facts: Facts) -> [Order.Action] { ask(.pair(trusting: false), 1, facts) }

    func testAFailureIsReportedWithItsReason() {
        _ = ask()
        let change = PairingChange(isPaired: false, isBonded: false, origin: .application, error: .failed(failure))
        XCTAssertEqual(
            reply(.failed(failure)),
            [
                .reportPairing(change),
                .settle(id(1), .failed(.pairing(.failed(failure)))),
            ])
        XCTAssertEqual(state.failureCount, 1)
        XCTAssertEqual(state.count, 0)
    }

    func testALateReplyChangesNothing() {
        _ = ask()
        _ = reply(nil)
        XCTAssertEqual(reply(.timedOut), [])
        XCTAssertEqual(ask(.pair(trusting: false), 2), [.callPair(2, timeout: 60)])
        XCTAssertEqual(reply(nil, 1), [])
        XCTAssertTrue(state.isPairing)
    }

    // MARK: Cancelling

    func testTheLastTimeOutCancels() {
        _ = ask()
        _ = ask(.pair(trusting: false), 2)
        func timedOut(_ number: UInt64) -> [Order.Action] {
            Orders.given { XCTAssertTrue(state.timedOut(id(number), into: &$0)) }
        }
        XCTAssertEqual(timedOut(1), [.settle(id(1), .failed(.pairing(.timedOut)))])
        XCTAssertEqual(timedOut(2), [.settle(id(2), .failed(.pairing(.timedOut))), .cancelPairing])
        XCTAssertFalse(state.timedOut(id(2), into: &unused))
        // A request that comes during the cancellation is for the next pairing.
        XCTAssertEqual(ask(.pair(trusting: false), 3, timeout: .infinity), [])
        XCTAssertEqual(reply(.cancelled).last, .callPair(2, timeout: PairingState.limit))
        XCTAssertEqual(reply(nil, 2), [.settle(id(3), .done)])
    }

    func testAPairingThatHasBegunIsNotWithdrawnAndOneThatWaitsIs() {
        func withdrawn(_ number: UInt64) -> [Order.Action] {
            Orders.given { XCTAssertTrue(state.withdraw(id(number), into: &$0)) }
        }
        _ = ask()
        XCTAssertEqual(withdrawn(1), [])
        XCTAssertTrue(state.isPairing)
        XCTAssertTrue(state.timedOut(id(1), into: &unused))
        _ = ask(.pair(trusting: false), 2)
        XCTAssertEqual(withdrawn(2), [.settle(id(2), .failed(.cancelled))])
        XCTAssertFalse(state.withdraw(id(2), into: &unused))
        _ = reply(.cancelled)
        XCTAssertTrue(state.isIdle)
    }

    private var unused = Orders()

    func testCancellingFailsEveryRequest() {
        _ = ask()
        _ = ask(.pair(trusting: false), 2, timeout: .infinity)
        XCTAssertEqual(
            Orders.given { state.cancelAsked(into: &$0) },
            [
                .settle(id(1), .failed(.pairing(.cancelled))),
                .settle(id(2), .failed(.pairing(.cancelled))), .cancelPairing,
            ])
        XCTAssertEqual(Orders.given { state.cancelAsked(into: &$0) }, [])
        _ = reply(.cancelled)
        XCTAssertTrue(state.isIdle)
    }

    func testWithoutAPairingNothingIsCancelled() {
        XCTAssertEqual(Orders.given { state.cancelAsked(into: &$0) }, [])
    }

    // MARK: Removing

    func testUnpairingRemovesTheDevice() {
        XCTAssertEqual(
            ask(.unpair, 1, timeout: .infinity, bonded()), [.removeDevice])
        let change = PairingChange(isPaired: false, isBonded: false, origin: .application)
        XCTAssertEqual(self.change(Facts(), from: bonded()), [.reportPairing(change)])
        XCTAssertEqual(removed(), [.settle(id(1), .done)])
        XCTAssertTrue(state.isIdle)
    }

    func testARepairRemovesSearchesAndPairs() {
        XCTAssertEqual(ask(.repair, 1, timeout: .infinity, bonded()), [.removeDevice])
        XCTAssertEqual(removed(), [.seek, .startTimer(.search, PairingState.limit)])
        XCTAssertEqual(
            change(facts(), from: Facts()),
            [.stopSeeking, .cancelTimer(.search), .callPair(1, timeout: PairingState.limit)])
        XCTAssertEqual(reply(nil), [.settle(id(1), .done)])
    }

    func testARepairThatIsWithdrawnDuringTheRemovalDoesNotPair() {
        _ = ask(.repair, 1, timeout: .infinity, bonded())
        XCTAssertEqual(Orders.given { XCTAssertTrue(state.withdraw(id(1), into: &$0)) }, [])
        XCTAssertEqual(removed(), [.settle(id(1), .done)])
        XCTAssertTrue(state.isIdle)
    }

    func testARefusedRemovalFailsTheRepair() {
        _ = ask(.repair, 1, timeout: .infinity, bonded())
        XCTAssertEqual(removed(.removalFailed(failure)), [.settle(id(1), .failed(.pairing(.removalFailed(failure))))])
    }

    func testADeviceThatBlueZDoesNotHaveIsSought() {
        XCTAssertEqual(
            ask(.pair(trusting: false), 1, timeout: .infinity, Facts()),
            [.seek, .startTimer(.search, PairingState.limit)])
        XCTAssertEqual(
            Orders.given { state.fail(.unavailable(.noDevice), into: &$0) },
            [.settle(id(1), .failed(.pairing(.unavailable(.noDevice)))), .stopSeeking, .cancelTimer(.search)])
    }

    func testADeviceThatBlueZRefusesOperationsOfIsRemovedBeforeThePairing() {
        state.mustRemove = true
        XCTAssertEqual(ask(.pair(trusting: true), 1, timeout: .infinity), [.removeDevice])
        XCTAssertEqual(removed(), [.seek, .startTimer(.search, PairingState.limit)])
        XCTAssertEqual(state.mustRemove, false)
        XCTAssertEqual(
            change(facts(), from: Facts()),
            [.stopSeeking, .cancelTimer(.search), .callPair(1, timeout: PairingState.limit)])
        XCTAssertEqual(reply(nil), [.setTrusted(true), .settle(id(1), .done)])
    }

    func testASearchForAnOperationHasATimeLimit() {
        _ = Orders.given { state.needed(Facts(), into: &$0) }
        XCTAssertEqual(ask(.pair(trusting: false), 1, timeout: 120, Facts()), [])
        XCTAssertEqual(
            ask(.pair(trusting: false), 2, timeout: .infinity, Facts()), [.startTimer(.search, PairingState.limit)])
        // The request with a time limit continues to wait, and `Pair` has its limit.
        XCTAssertEqual(
            Orders.given { state.searchTimedOut(into: &$0) }, [.settle(id(2), .failed(.pairing(.timedOut)))])
        XCTAssertEqual(
            change(facts(), from: Facts()), [.stopSeeking, .cancelTimer(.search), .callPair(1, timeout: 120)])
        _ = reply(nil)
        _ = Orders.given { state.needed(Facts(), into: &$0) }
        XCTAssertEqual(
            Orders.given { state.searchTimedOut(into: &$0) }, [.stopSeeking, .cancelTimer(.search)])
        XCTAssertTrue(state.isIdle)
    }

    func testCancellingASearchEndsTheNeedOfOperationsToo() {
        XCTAssertEqual(
            Orders.given { state.needed(Facts(), into: &$0) }, [.seek, .startTimer(.search, PairingState.limit)])
        XCTAssertEqual(Orders.given { state.cancelAsked(into: &$0) }, [.stopSeeking, .cancelTimer(.search)])
        XCTAssertTrue(state.isIdle)
        XCTAssertEqual(change(facts(), from: Facts()), [])
    }

    // MARK: Reports

    func testAChangeHasItsOrigin() {
        func report(_ origin: PairingChange.Origin) -> [Order.Action] {
            [.reportPairing(PairingChange(isPaired: true, isBonded: true, origin: origin))]
        }
        XCTAssertEqual(change(bonded()), report(.elsewhere))
        XCTAssertEqual(need(.justWorks), [.callPair(1, timeout: PairingState.limit)])
        XCTAssertEqual(change(bonded()), report(.onDemand))
        _ = reply(nil)
        _ = ask()
        XCTAssertEqual(change(bonded()), report(.application))
    }

    func testADeviceThatAppearsWithItsBondIsNoChange() {
        XCTAssertEqual(change(bonded(), from: Facts()), [])
        XCTAssertEqual(change(Facts(), from: bonded()), [])
    }

    // MARK: Missing keys

    /// The number of short links that was noted last.
    private var shortLinks = 0

    private func noted(_ facts: Facts, _ body: (Facts, inout Orders) -> PairingError?) -> PairingError? {
        var facts = facts
        facts.shortLinks = shortLinks
        var error: PairingError?
        for case .noteShortLinks(let count) in Orders.given({ error = body(facts, &$0) }) { shortLinks = count }
        return error
    }

    private func link(lost: Bool = true, reason: String? = nil, lasting: Bool = false) -> PairingError? {
        noted(bonded()) { facts, orders in
            state.linkWentUp(facts, into: &orders)
            if lasting { state.encryptionDue(into: &orders) }
            return state.linkWentDown(
                isLost: lost, reason: reason.map { LinkEnd(name: $0, message: "") }, facts, into: &orders)
        }
    }

    func testTwoShortLinksMeanThatTheKeysAreMissing() {
        XCTAssertNil(link())
        // Such a link does not show that it was encrypted.
        XCTAssertNil(link(lasting: true))
        XCTAssertNil(link(lost: false))
        XCTAssertEqual(link(), .keyMissing(isCertain: false))
        XCTAssertEqual(link(), .keyMissing(isCertain: false))
    }

    func testAnEncryptedLinkEndsTheCountOfShortLinks() {
        var before = bonded()
        before.shortLinks = 1
        var after = secured()
        after.shortLinks = 1
        XCTAssertEqual(change(after, from: before), [.noteShortLinks(0)])
    }

    func testAnAttemptWhoseLinkFallsIsASignToo() {
        func fall(_ facts: Facts) -> PairingError? { noted(facts) { state.attemptFell($0, into: &$1) } }
        XCTAssertNil(fall(bonded()))
        XCTAssertEqual(link(), .keyMissing(isCertain: false))
        shortLinks = 0
        XCTAssertNil(link())
        XCTAssertEqual(fall(bonded()), .keyMissing(isCertain: false))
        for _ in 0..<3 { XCTAssertNil(fall(facts())) }
    }

    func testBlueZsReasonIsCertain() {
        XCTAssertEqual(link(reason: "org.bluez.Reason.Authentication"), .keyMissing(isCertain: true))
        shortLinks = 0
        XCTAssertNil(link(reason: "org.bluez.Reason.Remote"))
    }

    func testALinkThatIsNeverEncryptedIsOfNoUse() {
        let limits = [PairingState.youngLinkLimit, PairingState.resolutionLimit - PairingState.youngLinkLimit]
        XCTAssertEqual(
            Orders.given { state.linkWentUp(bonded(), into: &$0) }, [.startTimer(.encryption, limits[0])])
        XCTAssertEqual(Orders.given { state.encryptionDue(into: &$0) }, [.startTimer(.encryption, limits[1])])
        XCTAssertFalse(state.isLinkDead)
        XCTAssertEqual(Orders.given { state.encryptionDue(into: &$0) }, [])
        XCTAssertTrue(state.isLinkDead)
        XCTAssertEqual(
            state.linkWentDown(isLost: true, reason: nil, bonded(), into: &unused), .keyMissing(isCertain: false))
        XCTAssertFalse(state.isLinkDead)
    }

    func testARejectedPairingInPlaceOfTheKeysMakesTheLinkUseless() {
        state.failEncryption()
        XCTAssertFalse(state.isLinkDead)
        state.linkWentUp(bonded(), into: &unused)
        state.failEncryption()
        XCTAssertTrue(state.isLinkDead)
        XCTAssertEqual(
            state.linkWentDown(isLost: true, reason: nil, bonded(), into: &unused), .keyMissing(isCertain: false))
    }

    func testAnAttemptWhoseLinkIsNeverEncryptedIsReportedAtOnce() {
        let limit = PairingState.encryptionLimit
        state.linkWentUp(bonded(), limit: limit, into: &unused)
        XCTAssertEqual(
            Orders.given { state.encryptionDue(into: &$0) },
            [.startTimer(.encryption, limit - PairingState.youngLinkLimit)])
        state.encryptionDue(into: &unused)
        XCTAssertEqual(state.attemptFell(bonded(), into: &unused), .keyMissing(isCertain: false))
        XCTAssertNil(state.attemptFell(bonded(), into: &unused))
    }

    func testAnAttemptWhoseLinkIsLostBeforeItIsEncryptedIsNoSign() {
        for _ in 0..<3 {
            state.linkWentUp(bonded(), limit: PairingState.encryptionLimit, into: &unused)
            state.encryptionDue(into: &unused)
            XCTAssertNil(state.attemptFell(bonded(), into: &unused))
        }
    }

    func testTheWaitForEncryptionEndsWithItsLink() {
        state.linkWentUp(bonded(), into: &unused)
        state.failEncryption()
        var resolved = bonded()
        resolved.areServicesResolved = true
        state.linkWentUp(resolved, into: &unused)
        XCTAssertFalse(state.isLinkDead)
    }

    func testResolvedServicesEndTheWaitForEncryption() {
        state.linkWentUp(bonded(), into: &unused)
        var resolved = bonded()
        resolved.areServicesResolved = true
        XCTAssertEqual(change(resolved, from: bonded()), [.cancelTimer(.encryption)])
        state.failEncryption()
        XCTAssertFalse(state.isLinkDead)
    }

    func testAPeripheralWithoutABondHasNoKeysToMiss() {
        for _ in 0..<3 {
            state.linkWentUp(facts(), into: &unused)
            XCTAssertNil(state.linkWentDown(isLost: true, reason: nil, facts(), into: &unused))
        }
    }

    // MARK: Errors

    func testEachCauseHasItsError() {
        let error = BlueZError(name: "org.bluez.Error.AuthenticationFailed", message: "Authentication Failed")
        let errors: [(PairingCause, PairingError)] = [
            (.cancelled, .cancelled), (.rejectedByUser, .rejected(by: .application)),
            (.rejectedByPolicy, .rejected(by: .policy)), (.rejectedByPeer, .rejected(by: .peer)),
            (.timedOut, .timedOut), (.linkLost, .linkLost), (.failed, .failed(failure)),
            (.connectionFailed, .connectionFailed(failure)), (.busy, .busy(failure)),
            (.noAgent, .unauthorized(failure)), (.denied, .unauthorized(failure)), (.notFound, .unavailable(failure)),
        ]
        XCTAssertEqual(Set(errors.map(\.0)), Set(PairingCause.allCases))
        for (cause, expected) in errors {
            XCTAssertEqual(PairingError(cause, error), expected)
        }
    }
}
