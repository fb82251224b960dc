import XCTest

@testable import BlueCapBlueZ

final class BlueZErrorTests: XCTestCase {
    private func failed(_ text: String) -> BlueZError { BlueZError(name: "org.bluez.Error.Failed", message: text) }

    func testAnATTErrorIsReadFromTheTextOrFromTheName() {
        XCTAssertEqual(failed("Operation failed with ATT error: 0x0e").attCode, 0x0E)
        XCTAssertEqual(failed("Operation failed with ATT error: 0x80").attCode, 0x80)
        XCTAssertNil(failed("Operation failed with ATT error: 0x").attCode)
        XCTAssertNil(failed("Operation failed with ATT error: 0x100").attCode)
        XCTAssertNil(failed("Not connected").attCode)
        let named: [(String, String, UInt8?)] = [
            ("NotPermitted", "Read not permitted", 0x02), ("NotPermitted", "Write not permitted", 0x03),
            ("NotPermitted", "Not paired", nil), ("NotPermitted", "Notify acquired", nil),
            ("NotAuthorized", "Operation Not Authorized", 0x08), ("InvalidArguments", "Invalid offset", 0x07),
            ("InvalidArguments", "Invalid Length", 0x0D), ("InvalidOffset", "", 0x07),
            ("InvalidValueLength", "", 0x0D), ("NotSupported", "Operation is not supported", 0x06),
            ("InProgress", "In Progress", nil),
        ]
        for (name, text, code) in named {
            XCTAssertEqual(BlueZError(name: "org.bluez.Error.\(name)", message: text).attCode, code, "\(name) \(text)")
        }
    }

    func testEveryReasonOfAConnectionHasItsCause() {
        let causes: [ConnectCause: [String]] = [
            .transient: [
                "abort-by-remote", "abort-by-local", "refused", "timeout", "link-layer-protocol-error", "gatt-browsing",
                "unknown", "create-socket", "bad-socket", "already-connected",
            ],
            .adapterOff: ["adapter-not-powered"], .busy: ["busy"], .outOfSlots: ["concurrent-connection-limit"],
            .authentication: ["key-missing"], .other: ["invalid-arguments", "not-supported", "memory-allocation"],
        ]
        for (cause, texts) in causes {
            for text in texts { XCTAssertEqual(failed("le-connection-\(text)").connectCause, cause, text) }
        }
        XCTAssertEqual(failed("br-connection-canceled").connectCause, .transient)
        XCTAssertEqual(failed("br-connection-page-timeout").connectCause, .transient)
        XCTAssertEqual(failed("br-connection-profile-unavailable").connectCause, .other)
        XCTAssertEqual(failed("le-connection-something-new").connectCause, .other)
    }

    func testOtherRefusalsOfAConnectionHaveTheirCauseToo() {
        let causes: [(String, String, ConnectCause)] = [
            ("org.bluez.Error.NotReady", "Resource Not Ready", .adapterOff),
            ("org.bluez.Error.InProgress", "In Progress", .busy),
            // A second Connect while one runs: up to 5.80, and from 5.81 on.
            ("org.bluez.Error.Failed", "Operation already in progress", .busy),
            ("org.bluez.Error.InProgress", "Operation already in progress", .busy),
            // A bond that one side has lost, from 5.83 on.
            ("org.bluez.Error.Failed", "br-connection-key-missing", .authentication),
            ("org.bluez.Error.Failed", "le-connection-key-missing", .authentication),
            ("org.bluez.Error.Failed", "Software caused connection abort", .transient),
            ("org.freedesktop.DBus.Error.UnknownObject", "", .notFound),
            ("org.bluez.Error.DoesNotExist", "", .notFound),
            ("org.freedesktop.DBus.Error.NoReply", "", .transient),
            ("org.bluez.Error.AuthenticationFailed", "", .authentication),
            ("org.bluez.Error.AuthenticationCanceled", "", .authentication),
            ("org.bluez.Error.AuthenticationRejected", "", .authentication),
            ("org.bluez.Error.AuthenticationTimeout", "", .authentication),
            ("org.bluez.Error.AuthenticationOfLater", "", .authentication),
            ("org.bluez.Error.ConnectionAttemptFailed", "Page Timeout", .transient),
            ("org.bluez.Error.Canceled", "", .cancelled),
            ("org.freedesktop.DBus.Error.ServiceUnknown", "", .other),
            ("org.example.Error.New", "", .other),
        ]
        for (name, text, cause) in causes {
            XCTAssertEqual(BlueZError(name: name, message: text).connectCause, cause, name)
        }
    }
}
