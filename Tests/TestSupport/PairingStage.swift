public import BlueCapKit
public import BlueZSimulator

/// Where the tests of pairings run: a ``CentralStage`` with a peripheral that pairs and has a user.
public protocol PairingStage: CentralStage {
    /// Decides how the peripheral pairs that the next ``serve(_:)`` adds, and what its user does. It has no keys then.
    ///
    /// - Parameter central: What the central can show and enter: in the radio lab both ends have one `bluetoothd`, which does
    ///   not set it for each end.
    func setPeer(_ peer: StagePeer, central: InputOutputCapability) throws
    /// The passkey that the peripheral displays, as soon as it does.
    func passkeyOfPeer() throws -> Passkey
    /// The peripheral's user enters this passkey. A simulated user enters what is displayed, and this has no effect.
    func enterAtPeer(_ passkey: Passkey) throws
    /// What the peripheral's user was asked since ``setPeer(_:central:)``, in BlueZ's words; nil if the stage does not know.
    func questionsToPeer() throws -> [String]?

    /// The link is lost, also in the midst of a pairing. BlueZ's `Disconnect` does not end a link then.
    func cutLink() throws
    /// One side has no keys any more, and does not inform the other one. A link stays up or ends.
    func forgetKeys(of side: StageSide) throws
    /// Another program of the central's machine registers an agent, which becomes the default agent, with a user that
    /// confirms or rejects everything. In the radio lab the peripheral's agent is that already.
    func addForeignAgent(_ answer: StagePeer.Answer) throws
    /// Another program of the central's machine pairs with the peripheral. Returns at once.
    func pairByAnotherProgram() throws
    /// Another program calls the agent of each program of the central's machine, but for those of the stage; the names of
    /// the errors that they return, nil for one that agrees.
    func callAgents() throws -> [String?]

    /// Whether the central's adapter accepts pairings.
    func isPairable() throws -> Bool
    /// The security of the link of the two, by what was sent over the air; nil if there is none.
    func linkSecurity() throws -> LinkSecurity?
}

/// The side of a pairing.
public enum StageSide: Sendable { case central, peripheral }

/// How a peripheral pairs, and what its user does.
public struct StagePeer: Sendable {
    public enum Answer: Sendable {
        /// Confirms everything, and enters the passkey that the other device displays.
        case accept
        /// As `accept`, after three seconds.
        case acceptLate
        case reject
        /// Does not answer.
        case never
        /// Enters another passkey.
        case wrongPasskey
    }

    public var capability: InputOutputCapability
    public var answer: Answer
    /// Whether it has a private address.
    public var isPrivate: Bool
    /// Whether there is an agent of its own in the radio lab. If not, the manager's agent is the default one, and is asked
    /// for both ends.
    public var hasAgent: Bool

    public init(
        _ capability: InputOutputCapability = .noInputNoOutput, _ answer: Answer = .accept, isPrivate: Bool = false,
        hasAgent: Bool = true
    ) {
        self.capability = capability
        self.answer = answer
        self.isPrivate = isPrivate
        self.hasAgent = hasAgent
    }
}

extension InputOutputCapability {
    /// BlueZ's name.
    public var bluezName: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
}

extension StagePeripheral {
    /// What needs a pairing, and what does not.
    public static let lock = StagePeripheral(
        name: "Lock",
        applications: [
            [
                StageService(
                    "B001",
                    [
                        .init("encrypted", "B002", [.read, .write], [2], security: .encrypted),
                        .init("authenticated", "B003", [.read], [3], security: .authenticated),
                        .init(
                            "events", "B004", [.read, .notify], [4], security: AttributeSecurity(subscribe: .encrypted)),
                        .init("open", "B005", [.read], [5]),
                        .init("secure", "B006", [.read], [6], security: AttributeSecurity(read: .secure)),
                    ])
            ]
        ], advertised: ["B001"])
}
