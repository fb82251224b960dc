import XCTest

@testable import BlueZSimulator

/// The association models, and the results of the answers of both users.
final class PairingProcedureTests: XCTestCase {
    private typealias Procedure = PairingProcedure

    private func procedure(
        _ initiator: PairingCapability, _ responder: PairingCapability, isSecure: Bool = true,
        hasLinuxResponder: Bool = true
    ) -> Procedure {
        Procedure(
            initiator: Procedure.Party(security: VirtualSecurity(initiator, hasSecureConnections: isSecure)),
            responder: Procedure.Party(security: VirtualSecurity(responder), isLinux: hasLinuxResponder),
            number: 4711)
    }

    // MARK: Models

    /// The table of the kernel: rows are initiators, columns responders; both in the order of `PairingCapability`'s numbers.
    ///
    /// `w` is Just Works, `x` the same and refused by Linux, `n` a comparison, `i` and `r` the side that displays, `b` both
    /// enter.
    private static let order: [PairingCapability] = [
        .displayOnly, .displayYesNo, .keyboardOnly, .noInputNoOutput, .keyboardDisplay,
    ]
    private static let secure = ["xxiwi", "xniwn", "rrbwr", "wwwww", "rniwn"]
    private static let legacy = ["xxiwi", "xxiwi", "rrbwr", "wwwww", "rriwi"]

    func testEachPairOfCapabilitiesHasItsModelWithBothKindsOfPairingAndOfResponder() {
        for (isSecure, table) in [(true, Self.secure), (false, Self.legacy)] {
            for (initiator, row) in zip(Self.order, table) {
                for (responder, letter) in zip(Self.order, row) {
                    for isLinux in [true, false] {
                        check(initiator, responder, isSecure, isLinux, letter)
                    }
                }
            }
        }
    }

    private func check(
        _ initiator: PairingCapability, _ responder: PairingCapability, _ isSecure: Bool, _ isLinux: Bool,
        _ letter: Character
    ) {
        let place = "\(initiator) \(responder) secure \(isSecure) Linux \(isLinux)"
        var pairing = procedure(initiator, responder, isSecure: isSecure, hasLinuxResponder: isLinux)
        let steps = pairing.begin(now: 0)
        guard letter != "x" || !isLinux else {
            return XCTAssertEqual(steps, [.fail(.authenticationRequirements)], place)
        }
        let expected: [Procedure.Step] =
            switch letter {
            case "n": [.ask(.responder, .confirm(4711)), .ask(.initiator, .confirm(4711))]
            case "i": [.ask(.initiator, .display(4711)), .ask(.responder, .enter(4711))]
            case "r": [.ask(.responder, .display(4711)), .ask(.initiator, .enter(4711))]
            case "b": [.ask(.responder, .enter(4711)), .ask(.initiator, .enter(4711))]
            default: [.ask(.responder, .authorize), .ask(.initiator, .authorize)]
            }
        XCTAssertEqual(steps, expected, place)
        let security: LinkSecurity = "wx".contains(letter) ? .encrypted : isSecure ? .secure : .authenticated
        XCTAssertEqual(answerAll(&pairing, steps), [.succeed(security, isBonded: true)], place)
    }

    /// Gives each question the right answer, and returns the steps that follow.
    private func answerAll(_ pairing: inout Procedure, _ steps: [Procedure.Step]) -> [Procedure.Step] {
        var following: [Procedure.Step] = []
        for case .ask(let side, let question) in steps {
            switch question {
            case .authorize, .confirm: following += pairing.answered(.accept, by: side, now: 1)
            case .enter: following += pairing.answered(.passkey(4711), by: side, now: 1)
            case .display: break
            }
        }
        return following
    }

    func testOneSideWithoutSecureConnectionsMakesItALegacyPairing() {
        var pairing = Procedure(
            initiator: Procedure.Party(security: VirtualSecurity(.displayYesNo)),
            responder: Procedure.Party(
                security: VirtualSecurity(.keyboardDisplay, hasSecureConnections: false), isLinux: false))
        XCTAssertEqual(pairing.model, .passkey(displayedBy: .initiator))
        _ = pairing.begin(now: 0)
        XCTAssertEqual(
            pairing.answered(.passkey(0), by: .responder, now: 1), [.succeed(.authenticated, isBonded: true)])
    }

    func testNoNumberIsUsedIfNoSideWantsOne() {
        let silent = Procedure.Party(security: VirtualSecurity(.displayYesNo, wantsMITM: false), isLinux: false)
        var wanting = silent
        wanting.security.wantsMITM = true
        XCTAssertEqual(Procedure(initiator: silent, responder: silent).model, .justWorks)
        XCTAssertEqual(Procedure(initiator: silent, responder: wanting).model, .comparison)
        XCTAssertEqual(Procedure(initiator: wanting, responder: silent).model, .comparison)
        // A Linux responder does as the initiator.
        wanting.isLinux = true
        XCTAssertEqual(Procedure(initiator: silent, responder: wanting).model, .justWorks)
    }

    func testALinuxInitiatorThatNeedsANumberAcceptsNoPairingWithoutOne() {
        for goal in [LinkSecurity.authenticated, .secure] {
            var pairing = Procedure(
                initiator: Procedure.Party(security: VirtualSecurity(wantsMITM: true), goal: goal),
                responder: Procedure.Party(security: VirtualSecurity(.displayYesNo), isLinux: false))
            XCTAssertEqual(pairing.begin(now: 0), [.fail(.authenticationRequirements)])
        }
    }

    // MARK: Bonding

    func testAResponderThatKeepsNoKeysRefusesAnInitiatorThatDoes() {
        var pairing = Procedure(
            initiator: Procedure.Party(), responder: Procedure.Party(security: VirtualSecurity(isBondable: false)))
        XCTAssertEqual(pairing.begin(now: 0), [.fail(.pairingNotSupported)])
    }

    func testTheKeysOfAnInitiatorThatKeepsNoneAreForOneLink() {
        for isBondable in [true, false] {
            var pairing = Procedure(
                initiator: Procedure.Party(security: VirtualSecurity(isBondable: false)),
                responder: Procedure.Party(security: VirtualSecurity(isBondable: isBondable)))
            let steps = pairing.begin(now: 0)
            XCTAssertEqual(answerAll(&pairing, steps), [.succeed(.encrypted, isBonded: false)])
        }
    }

    // MARK: The users

    func testTheRejectionOfEitherSideFailsIt() {
        let reasons: [(PairingCapability, PairingCapability, Bool, PairingFailure)] = [
            (.noInputNoOutput, .noInputNoOutput, true, .numericComparisonFailed),
            (.noInputNoOutput, .noInputNoOutput, false, .passkeyEntryFailed),
            (.displayYesNo, .displayYesNo, true, .numericComparisonFailed),
            (.keyboardOnly, .displayOnly, true, .passkeyEntryFailed),
            (.displayOnly, .keyboardOnly, false, .passkeyEntryFailed),
        ]
        for (initiator, responder, isSecure, reason) in reasons {
            for side in Procedure.Side.allCases {
                var pairing = procedure(initiator, responder, isSecure: isSecure)
                _ = pairing.begin(now: 0)
                XCTAssertEqual(pairing.answered(.reject, by: side, now: 1), [.fail(reason)])
                XCTAssertEqual(pairing.answered(.accept, by: side.other, now: 2), [], "it is over")
            }
        }
    }

    func testAWrongPasskeyFailsIt() {
        var pairing = procedure(.keyboardOnly, .displayOnly)
        _ = pairing.begin(now: 0)
        XCTAssertEqual(pairing.answered(.passkey(4712), by: .initiator, now: 1), [.fail(.confirmValueFailed)])

        pairing = procedure(.keyboardOnly, .keyboardOnly)
        _ = pairing.begin(now: 0)
        XCTAssertEqual(pairing.answered(.passkey(1), by: .initiator, now: 1), [])
        XCTAssertEqual(pairing.answered(.passkey(2), by: .responder, now: 2), [.fail(.confirmValueFailed)])
    }

    func testAUserEntersTheNumberThatTheOtherDeviceDisplaysOrAnotherOne() throws {
        for (entry, step) in [
            (VirtualUser.Entry.displayed, Procedure.Step.succeed(.secure, isBonded: true)),
            (.wrong, .fail(.confirmValueFailed)),
        ] {
            var pairing = procedure(.keyboardOnly, .displayOnly)
            guard case .ask(.initiator, let question)? = pairing.begin(now: 0).last else {
                return XCTFail("no question")
            }
            let (answer, _) = try XCTUnwrap(VirtualUser(passkey: entry).answer(to: question))
            XCTAssertEqual(pairing.answered(answer, by: .initiator, now: 1), [step])
        }
    }

    func testAnAnswerToAnotherQuestionIsARejection() {
        var pairing = procedure(.keyboardOnly, .displayOnly)
        _ = pairing.begin(now: 0)
        XCTAssertEqual(pairing.answered(.accept, by: .initiator, now: 1), [.fail(.passkeyEntryFailed)])
        pairing = procedure(.displayYesNo, .displayYesNo)
        _ = pairing.begin(now: 0)
        XCTAssertEqual(pairing.answered(.passkey(4711), by: .initiator, now: 1), [.fail(.numericComparisonFailed)])
    }

    // MARK: Time

    func testItFailsAtADeadlineThatWasRoundedToANanosecond() {
        var pairing = procedure(.displayYesNo, .displayYesNo)
        _ = pairing.begin(now: 28.013_926_897_000_4)
        XCTAssertEqual(pairing.timePassed(to: 58.013_926_897), [.fail(.timedOut)])
    }

    func testItFailsThirtySecondsAfterItsLatestPacket() {
        var pairing = procedure(.displayYesNo, .displayYesNo)
        _ = pairing.begin(now: 10)
        XCTAssertEqual(pairing.timePassed(to: 39.9), [])
        XCTAssertEqual(pairing.answered(.accept, by: .responder, now: 39.9), [])
        XCTAssertEqual(pairing.deadline ?? 0, 69.9, accuracy: 1e-9)
        XCTAssertEqual(pairing.timePassed(to: 69), [])
        XCTAssertEqual(pairing.timePassed(to: 70), [.fail(.timedOut)])
        XCTAssertEqual(pairing.timePassed(to: 100), [], "once")
        XCTAssertEqual(pairing.answered(.accept, by: .initiator, now: 101), [])
    }
}
