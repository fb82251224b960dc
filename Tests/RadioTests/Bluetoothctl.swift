import BlueCapKit
import XCTest

/// `bluetoothctl` in a terminal, by the lab's `radio-bluetoothctl`: an agent for pairings, and a central on `hci0`.
final class Bluetoothctl {
    /// Address of `hci0`, on which it is a central.
    private static let adapter = "00:AA:01:00:00:00"
    /// Address of `hci1`.
    static let peer = "00:AA:01:01:00:01"

    /// - Parameters:
    ///   - capability: of its agent, in BlueZ's words.
    ///   - isDefault: whether BlueZ asks it about pairings that no program with an agent has asked for.
    init(_ capability: String, isDefault: Bool) throws {
        try RadioLab.order(.server, "bluetoothctl", capability)
        if isDefault { try type("default-agent", shows: "Default agent request successful") }
    }

    deinit { _ = try? RadioLab.order(.server, "stop", "bluetoothctl") }

    private func type(_ line: String, shows pattern: String) throws {
        try RadioLab.order(.bluetoothctl, "type", line)
        try sees(pattern)
    }

    // MARK: The user

    /// Waits until a line has come, since the user has typed one, that a regular expression describes; what it describes.
    @discardableResult
    func sees(_ pattern: String) throws -> String { try RadioLab.order(.bluetoothctl, "shows", pattern) }

    /// Waits for the next question, which is `confirm NUMBER`, `authorize`, `enter`, or `display NUMBER`, which needs no answer;
    /// or `cancelled`, when BlueZ has taken a question back.
    func asked() throws -> String { try RadioLab.order(.bluetoothctl, "asked") }

    /// The passkey that the user is to enter at the other end.
    func displayed() throws -> Passkey {
        let words = try asked().split(separator: " ").map(String.init)
        XCTAssertEqual(words.first, "display")
        return try XCTUnwrap(Passkey(digits: words.last ?? ""))
    }

    /// Types `yes`, `no` or a passkey.
    func answer(_ text: String) throws { try RadioLab.order(.bluetoothctl, "answer", text) }

    // MARK: The central

    /// Finds `hci1`, and begins to pair with it.
    func beginPairing() throws {
        try RadioLab.order(.bluetoothctl, "type", "select \(Self.adapter)")
        try type("scan le", shows: "Device \(Self.peer)")
        try type("scan off", shows: "Discovery stopped")
        try RadioLab.order(.bluetoothctl, "type", "pair \(Self.peer)")
    }

    /// Waits for the end of the pairing; the name of its error, nil if it has succeeded.
    func outcome() throws -> String? {
        let text = try sees(#"Pairing successful|Failed to pair: [\w.]+"#)
        return text.hasPrefix("Failed") ? text.split(separator: " ").last.map(String.init) : nil
    }

    func disconnect() throws {
        try type("disconnect \(Self.peer)", shows: "Successful disconnected|Disconnection successful")
    }
}
