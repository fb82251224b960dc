import TestSupport
import XCTest

@testable import BlueCapBlueZ
@testable import BlueCapKit

/// A `PairingState` with what BlueZ reports of the device. It keeps the number of short links, which BlueCapKit stores.
private struct PairingPlayer {
    private var state = PairingState()
    private var facts = Self.facts("device")

    private static func facts(_ name: String, shortLinks: Int = 0) -> LinkStatus {
        var facts = LinkStatus(device: name == "absent" ? nil : ObjectKey(adapter: 0))
        facts.isBonded = ["bonded", "linked", "secured", "resolved"].contains(name)
        facts.isPaired = facts.isBonded
        facts.isConnected = ["linked", "secured"].contains(name)
        facts.areServicesResolved = ["secured", "resolved"].contains(name)
        facts.shortLinks = shortLinks
        return facts
    }

    /// Executes an event of a table.
    mutating func send(_ words: [String]) throws -> String {
        let number = words.count > 1 ? UInt64(words[1]) ?? UInt64(words.last!) ?? 0 : 0
        let (id, error) = (OperationID(rawValue: number), words.last.flatMap { PairingError.named[$0] })
        /// Other than the orders: the error that a link's end shows.
        var result: String?
        var orders = Orders()
        switch words[0] {
        case "isPairing": return "\(state.isPairing)"
        case "isIdle": return "\(state.isIdle)"
        case "isVerifying": return "\(state.isVerifying)"
        case "isLinkDead": return "\(state.isLinkDead)"
        case "isToBeRemoved": return state.mustRemove.map { "\($0)" } ?? "unknown"
        case "count": return "\(state.count)"
        case "failureCount": return "\(state.failureCount)"
        case "date": return "\(state.date.timeIntervalSince1970)"
        case "nextLinkToVerify": return "\(state.nextLinkToVerify())"
        case "mustRemove": state.mustRemove = true
        case "policy": state.policy = words[1] == "ask" ? .ask : .justWorks
        case "shortLinks": facts.shortLinks = Int(number)
        case "failEncryption": state.failEncryption()
        case "is": facts = Self.facts(words[1], shortLinks: facts.shortLinks)
        case "become":
            let old = facts
            facts = Self.facts(words[1], shortLinks: old.shortLinks)
            state.factsChanged(from: old, to: facts, into: &orders)
        case "pair", "trust", "unpair", "repair":
            let request: PairingState.Request =
                switch words[0] {
                case "unpair": .unpair
                case "repair": .repair
                default: .pair(trusting: words[0] == "trust")
                }
            let timeout = words.count > 2 ? TimeInterval(words[2])! : .infinity
            state.asked(request, id, timeout: timeout, facts, into: &orders)
        case "reply":
            _ = state.replied(UInt32(number), error, facts, at: Date(timeIntervalSince1970: 1_000), into: &orders)
        case "need": state.needed(facts, into: &orders)
        case "agree": state.agreed(UInt32(number), facts, into: &orders)
        case "removed":
            facts = Self.facts("absent")
            state.removed(error, facts, into: &orders)
        case "cancel": state.cancelAsked(into: &orders)
        case "fail": state.fail(error!, into: &orders)
        case "verified": state.verified(error, facts, into: &orders)
        case "timedOut": if !state.timedOut(id, into: &orders) { result = "unknown" }
        case "withdraw": if !state.withdraw(id, into: &orders) { result = "unknown" }
        case "searchTimedOut": state.searchTimedOut(into: &orders)
        case "linkUp":
            if words.contains("limited") {
                state.linkWentUp(facts, limit: PairingState.encryptionLimit, into: &orders)
            } else {
                state.linkWentUp(facts, into: &orders)
            }
        case "encryptionDue": state.encryptionDue(into: &orders)
        case "linkDown":
            let reason = ["Authentication", "Remote"].first(where: words.contains)
            let error = state.linkWentDown(
                isLost: !words.contains("ended"),
                reason: reason.map { LinkEnd(name: "org.bluez.Reason.\($0)", message: "") }, facts, into: &orders)
            result = error?.words ?? "none"
        case "attemptFell": result = state.attemptFell(facts, into: &orders)?.words ?? "none"
        default: throw UnknownEvent(words)
        }
        let actions = orders.pending.map(\.action)
        for case .noteShortLinks(let count) in actions { facts.shortLinks = count }
        return result ?? actions.words
    }
}

final class PairingStateTests: XCTestCase {
    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var player = PairingPlayer()
            return { try player.send($0) }
        }
    }

    func testItPairsOnceForAllRequests() {
        play(
            """
            One pairing is for all requests:
            pair 1 20 → pair 1 20; isPairing → true; trust 2 → none; reply 1 → setTrusted(true), done 1, done 2
            isPairing → false; count → 1; date → 1000.0
            A bond succeeds at once if the link is encrypted with it:
            is secured; pair 1 → done 1; isIdle → true
            A bond succeeds when a link is encrypted with it:
            is bonded; trust 1 → start search 60; isVerifying → true; nextLinkToVerify → true; become linked → none
            become secured → cancel search, setTrusted(true), done 1; count → 0
            A bond whose keys are missing fails:
            is bonded; trust 1; nextLinkToVerify → true; nextLinkToVerify → true; nextLinkToVerify → true
            nextLinkToVerify → false; verified keyMissing → cancel search, fail 1 keyMissing; isIdle → true
            A device that is removed while its bond is verified is sought:
            is bonded; pair 1; become absent → cancel search, seek, start search 60
            searchTimedOut → fail 1 timedOut, stopSeeking, cancel search
            A bond that is removed meanwhile is made again:
            is bonded; pair 1 20; become device → report unpaired application, cancel search, pair 1 20
            A failure is reported with its reason:
            pair 1; reply 1 failed → report unpaired application failed, fail 1 failed; failureCount → 1; count → 0
            A late reply changes nothing:
            pair 1; reply 1; reply 1 timedOut → none; pair 2 → pair 2 60; reply 1 → none; isPairing → true
            """)
    }

    func testConsent() {
        play(
            """
            A policy that does not ask pairs for an operation at once:
            policy justWorks; need → pair 1 60
            A policy that asks needs an answer for each pairing:
            policy ask; need → askForConsent(1); isPairing → false; agree 1 → pair 2 60; agree 1 → none; reply 2
            need → askForConsent(3)
            A refusal fails what waits:
            policy ask; need; pair 1 → none; reply 1 rejected → report unpaired onDemand rejected, fail 1 rejected
            isIdle → true; failureCount → 1
            The application's request needs no answer:
            policy ask; pair 1 20 → pair 1 20
            A question ends with its reason:
            policy ask; need; cancel → cancelRequests; isIdle → true
            It ends if another program pairs:
            policy ask; need; become secured → report bonded elsewhere, cancelRequests; isIdle → true
            It ends if the device is removed:
            policy ask; need; become absent → cancelRequests, seek, start search 60
            A refused pairing fails the repair that waits for it:
            pair 1; repair 2; reply 1 rejected → report unpaired application rejected, fail 1 rejected, fail 2 rejected
            isIdle → true
            """)
    }

    func testCancelling() {
        play(
            """
            The last time limit cancels, and a request meanwhile is for the next pairing:
            pair 1; pair 2; timedOut 1 → fail 1 timedOut; timedOut 2 → fail 2 timedOut, cancelPairing
            timedOut 2 → unknown
            pair 3 → none; reply 1 pairingCancelled → report unpaired application pairingCancelled, pair 2 60
            reply 2 → done 3
            A pairing that has begun is not withdrawn, and one that waits is:
            pair 1; withdraw 1 → none; isPairing → true; timedOut 1; pair 2; withdraw 2 → fail 2 cancelled
            withdraw 2 → unknown; reply 1 pairingCancelled; isIdle → true
            Cancelling fails every request once:
            pair 1; pair 2; cancel → fail 1 pairingCancelled, fail 2 pairingCancelled, cancelPairing; cancel → none
            reply 1 pairingCancelled; isIdle → true
            Without a pairing nothing is cancelled:
            cancel → none
            """)
    }

    func testRemoving() {
        play(
            """
            Unpairing removes the device:
            is bonded; unpair 1 → removeDevice; become absent → report unpaired application; removed → done 1
            isIdle → true
            A repair removes, searches and pairs:
            is bonded; repair 1 → removeDevice; removed → seek, start search 60
            become device → stopSeeking, cancel search, pair 1 60; reply 1 → done 1
            A repair that is withdrawn during the removal does not pair:
            is bonded; repair 1; withdraw 1 → none; removed → done 1; isIdle → true
            A refused removal fails the repair:
            is bonded; repair 1; removed removalFailed → fail 1 removalFailed
            A device that BlueZ does not have is sought:
            is absent; pair 1 → seek, start search 60; fail noDevice → fail 1 noDevice, stopSeeking, cancel search
            A device of which BlueZ refuses operations is removed before the pairing:
            mustRemove; trust 1 → removeDevice; removed → seek, start search 60; isToBeRemoved → false
            become device → stopSeeking, cancel search, pair 1 60; reply 1 → setTrusted(true), done 1
            A search for an operation has a time limit, a request has its own:
            is absent; need; pair 1 120 → none; pair 2 → start search 60; searchTimedOut → fail 2 timedOut
            become device → stopSeeking, cancel search, pair 1 120
            reply 1; is absent; need; searchTimedOut → stopSeeking, cancel search; isIdle → true
            Cancelling a search ends the need of operations too:
            is absent; need → seek, start search 60; cancel → stopSeeking, cancel search; isIdle → true
            become device → none
            """)
    }

    func testAChangeHasItsOrigin() {
        play(
            """
            Another program, an operation, the application:
            become bonded → report bonded elsewhere; is device; policy justWorks; need → pair 1 60
            become bonded → report bonded onDemand; is device; reply 1; pair 1
            become bonded → report bonded application
            A device that appears with its bond is no change:
            is absent; become bonded → none; become absent → none
            """)
    }

    // MARK: Missing keys

    func testTwoShortLinksMeanThatTheKeysAreMissing() {
        play(
            """
            One that lasts may have been without encryption, and one that is ended is no sign:
            is bonded; linkUp; linkDown → none; linkUp; encryptionDue; linkDown → none
            linkUp; linkDown ended → none; linkUp; linkDown → keyMissing
            linkUp; linkDown → keyMissing
            An encrypted link ends the count:
            is bonded; shortLinks 1; become secured → noteShortLinks(0)
            An attempt whose link is lost is a sign too:
            is bonded; attemptFell → none; linkUp; linkDown → keyMissing
            shortLinks 0; linkUp; linkDown → none; attemptFell → keyMissing
            is device; attemptFell → none; attemptFell → none; attemptFell → none
            A peripheral without a bond has no keys to miss:
            linkUp; linkDown → none; linkUp; linkDown → none; linkUp; linkDown → none
            """)
    }

    func testBlueZsReasonIsCertain() {
        play(
            """
            is bonded; linkUp; linkDown Authentication → certainKeyMissing
            shortLinks 0; linkUp; linkDown Remote → none
            """)
    }

    func testALinkThatIsNeverEncryptedIsOfNoUse() {
        play(
            """
            is bonded; linkUp → start encryption 3; encryptionDue → start encryption 57; isLinkDead → false
            encryptionDue → none; isLinkDead → true; linkDown → keyMissing; isLinkDead → false
            """)
    }

    func testARejectedPairingInPlaceOfTheKeysMakesTheLinkUseless() {
        play(
            """
            is bonded; failEncryption; isLinkDead → false; linkUp; failEncryption; isLinkDead → true
            linkDown → keyMissing
            """)
    }

    func testAnAttemptWhoseLinkIsNeverEncryptedIsReportedAtOnce() {
        play(
            """
            is bonded; linkUp limited; encryptionDue → start encryption 32; encryptionDue; attemptFell → keyMissing
            shortLinks 0; attemptFell → none
            Unless it is lost before:
            is bonded; linkUp limited; encryptionDue; attemptFell → none; shortLinks 0
            linkUp limited; encryptionDue; attemptFell → none; shortLinks 0; linkUp limited; encryptionDue
            attemptFell → none
            """)
    }

    func testTheWaitForEncryptionEndsWithItsLink() {
        play(
            """
            A link whose services are resolved is encrypted:
            is bonded; linkUp; failEncryption; is resolved; linkUp; isLinkDead → false
            Resolved services end the wait:
            is bonded; linkUp; become resolved → cancel encryption; failEncryption; isLinkDead → false
            """)
    }

    // MARK: Errors

    func testEachCauseHasItsError() {
        let failure = BusError.authenticationFailed
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
