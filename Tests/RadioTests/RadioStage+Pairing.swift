import BlueCapKit
import BlueZSimulator
import TestSupport

/// One `bluetoothd` serves both ends: it asks the agent of the peripheral's user about `hci1`, and about `hci0` if no program has
/// asked for the pairing.
extension RadioStage: PairingStage {
    func setPeer(_ peer: StagePeer, central: InputOutputCapability) throws {
        try RadioLab.order(.server, "privacy", "hci1", peer.isPrivate ? "on" : "off")
        try RadioLab.order(.server, "forget")
        if peer.hasAgent {
            let words = ["agent", peer.capability.bluezName, central.bluezName, "\(peer.answer)"]
            try RadioLab.order(.server, words)
        } else {
            try RadioLab.order(.server, "no-agent")
        }
        try RadioLab.order(.server, "monitor", "start")
        securityEvents = []
    }

    func passkeyOfPeer() throws -> Passkey {
        guard let passkey = Passkey(digits: try RadioLab.order(.server, "agent-passkey")) else {
            throw RadioLabError.failed("agent-passkey", "no passkey")
        }
        return passkey
    }

    func enterAtPeer(_ passkey: Passkey) throws { try RadioLab.order(.server, "agent-enter", passkey.digits) }

    func questionsToPeer() throws -> [String]? { lines(try RadioLab.order(.server, "agent-journal")) }

    func cutLink() throws { try RadioLab.order(.server, "cut", "hci1", "hci0") }

    func forgetKeys(of side: StageSide) throws {
        switch side {
        // The kernel loads an empty list of long term keys for hci0. bluetoothd has no event of it: the device stays paired.
        case .central: try RadioLab.order(.server, "manage", "hci0", "0013", "0000")
        case .peripheral: try RadioLab.order(.server, "forget", "hci1")
        }
    }

    func addForeignAgent(_ answer: StagePeer.Answer) {}

    func pairByAnotherProgram() throws { try RadioLab.order(.server, "pair", "hci1") }

    func callAgents() throws -> [String?] {
        lines(try RadioLab.order(.server, "call-agents", "/org/bluecap/agent")).map { $0 == "agreed" ? nil : $0 }
    }

    func isPairable() throws -> Bool { try RadioLab.property("Pairable") == "true" }

    func linkSecurity() throws -> LinkSecurity? {
        securityEvents += lines(try RadioLab.order(.server, "security"))
        try RadioLab.order(.server, "monitor", "start")
        guard securityEvents.last(where: { $0 == "encrypted" || $0 == "plain" || $0 == "ended" }) == "encrypted" else {
            return nil
        }
        return switch securityEvents.last(where: { $0.hasPrefix("key ") }) {
        case "key P-256 authenticated": .secure
        case "key P-192 authenticated": .authenticated
        case nil: LinkSecurity.none
        default: .encrypted
        }
    }

    private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }
}
