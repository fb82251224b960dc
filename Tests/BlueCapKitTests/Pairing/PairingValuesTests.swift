import XCTest

@testable import BlueCapKit

final class PairingValuesTests: XCTestCase {
    // MARK: Passkeys

    func testAPasskeyHasSixDigits() {
        for (number, digits) in [(0, "000000"), (4_711, "004711"), (999_999, "999999")] {
            XCTAssertEqual(Passkey(number)?.digits, digits)
            XCTAssertEqual(Passkey(number), Passkey(digits: digits))
        }
        XCTAssertEqual(Passkey(digits: "7"), 7)
    }

    func testOtherNumbersAndTextsAreNoPasskeys() {
        for number in [-1, 1_000_000, Int.max, Int.min] { XCTAssertNil(Passkey(number)) }
        for text in ["", "1234567", "0000001", "12 34", "+1234", "-12", "12a", "١٢٣"] {
            XCTAssertNil(Passkey(digits: text), text)
        }
    }

    func testNoDescriptionShowsTheDigits() {
        let passkey: Passkey = 482_913
        var dumped = ""
        dump([passkey], to: &dumped)
        dump(["key": passkey], to: &dumped)
        let texts = [
            "\(passkey)", String(describing: passkey), String(reflecting: passkey), passkey.debugDescription, dumped,
            "\([passkey])", "\(Optional(passkey) as Any)", String(reflecting: (1, passkey)),
        ]
        for text in texts { XCTAssertNil(text.range(of: "482913"), text) }
    }

    // MARK: Policies

    func testOnlyRejectNeedsNoAgent() {
        XCTAssertFalse(PairingPolicy.reject.needsAgent)
        XCTAssertFalse(PairingPolicy.reject.pairsOnDemand)
        XCTAssertTrue(PairingPolicy.reject.asDefaultAgent().needsAgent)
        XCTAssertFalse(PairingPolicy.reject.asDefaultAgent().allowsPairing)
        for policy in [PairingPolicy.justWorks, .ask, .ask(.displayYesNo)] {
            XCTAssertTrue(policy.needsAgent && policy.allowsPairing && policy.pairsOnDemand)
            XCTAssertNil(policy.acceptsIncoming, "the default of the manager's role")
            XCTAssertFalse(policy.isDefaultAgent)
        }
        XCTAssertEqual(PairingPolicy.justWorks.capability, .noInputNoOutput)
        XCTAssertEqual(PairingPolicy.ask.capability, .keyboardDisplay)
    }

    func testAnAnswerHasLessTimeThanThePairing() {
        var policy = PairingPolicy.ask
        XCTAssertEqual(policy.answerTimeout, .seconds(25))
        for (seconds, kept) in [(10, 10), (0, 1), (-5, 1), (30, 29), (3_000_000_000, 29)] {
            policy.answerTimeout = .seconds(seconds)
            XCTAssertEqual(policy.answerTimeout, .seconds(kept))
        }
    }
}
