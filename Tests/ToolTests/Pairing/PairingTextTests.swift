import BlueCapKit
import XCTest

@testable import bluecap

/// The texts of failed pairings.
final class PairingTextTests: XCTestCase {
    private let failure = BusError(name: "org.bluez.Error.Failed", message: "Why")

    private var errors: [PairingError] {
        [
            .cancelled, .rejected(by: .application), .rejected(by: .policy), .rejected(by: .peer),
            .rejected(by: .system),
            .timedOut, .linkLost, .failed(failure), .alreadyPaired(failure), .connectionFailed(failure),
            .keyMissing(isCertain: true), .keyMissing(isCertain: false), .busy(failure), .notAllowed,
            .unauthorized(failure), .unavailable(failure), .removalFailed(failure), .trustFailed(failure),
        ]
    }

    func testTheLibraryAndTheToolDescribeOneCauseInTheSameWords() {
        for error in errors {
            XCTAssertTrue(error.description.hasPrefix(error.cause()), error.description)
            XCTAssertTrue(error.description.hasSuffix("."), error.description)
            let text = RemoteFailure.text(for: error, "front door", "`pair`", "`unpair`", .init())
            XCTAssertTrue(text.hasPrefix(error.cause("front door")) || text == error.description, text)
            // The texts for the command line do not name calls of the library.
            XCTAssertFalse(text.contains("()") || text.contains("pairingPolicy"), text)
        }
        XCTAssertEqual(Set(errors.map { $0.cause() }).count, errors.count)
    }

    func testADescriptionHasBlueZsError() {
        XCTAssertEqual(
            PairingError.busy(failure).description,
            "Another program is pairing with the device (org.bluez.Error.Failed: Why). Try again later.")
        XCTAssertEqual(
            RemoteFailure.text(for: .keyMissing(isCertain: true), "Lock", "`p`", "`u`", .init()),
            "Lock no longer has the keys of its bond. If it is the device that you mean, `u`, then `p`.")
    }

    func testOnlyWhatTheUserWasAskedHasToBeAnswered() {
        func advice(_ wasAsked: Bool) -> String {
            RemoteFailure.text(for: .timedOut, "Lock", "`p`", "`u`", .init(wasAsked: wasAsked))
        }
        XCTAssertTrue(advice(true).contains("answer within 25 s"), advice(true))
        XCTAssertFalse(advice(false).contains("answer"), advice(false))
    }

    func testTheReasonWhyBluetoothIsNotAvailableIsThatOfTheManager() {
        XCTAssertEqual(
            RemoteFailure.text(
                for: .unavailable(failure), "Lock", "`p`", "`u`",
                .init(obstacle: "bluetoothd is not running: start it.")),
            "BlueZ is not available, or does not have Lock. bluetoothd is not running: start it.")
    }

    func testARefusedRemovalIsNoFailedPairing() {
        let text = RemoteFailure.text(for: .removalFailed(failure), "Lock", "`p`", "`u`", .init())
        XCTAssertEqual(text, "The bond with the device was not removed (org.bluez.Error.Failed: Why).")
        XCTAssertEqual(PairingError.removalFailed(failure).description, text)
    }
}
