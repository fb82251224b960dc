/// What a pairing agent can show to its user and read from them, with BlueZ's names.
package enum IOCapability: String, Hashable, Sendable, CaseIterable {
    case displayOnly = "DisplayOnly"
    case displayYesNo = "DisplayYesNo"
    case keyboardOnly = "KeyboardOnly"
    case noInputNoOutput = "NoInputNoOutput"
    case keyboardDisplay = "KeyboardDisplay"

    /// The least capability that includes both: a process has one agent, which serves all of its managers.
    package func union(_ other: IOCapability) -> IOCapability {
        let displays = displays || other.displays
        if readsDigits || other.readsDigits { return displays ? .keyboardDisplay : .keyboardOnly }
        if self == .displayYesNo || other == .displayYesNo { return .displayYesNo }
        return displays ? .displayOnly : .noInputNoOutput
    }

    private var displays: Bool { self != .keyboardOnly && self != .noInputNoOutput }
    private var readsDigits: Bool { self == .keyboardOnly || self == .keyboardDisplay }
}

/// A value with a passkey: no description of it, and no mirror, has digits of it.
package protocol PasskeyHiding: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension PasskeyHiding {
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request of BlueZ to the agent of this process.
package struct AgentRequest: Hashable, Sendable {
    package typealias Number = UInt64

    package enum Kind: Hashable, Sendable, PasskeyHiding {
        /// Both sides display this number; the user compares them.
        case confirm(UInt32)
        /// The pairing needs no number (Just Works).
        case authorize
        /// The user enters the number that the peer displays.
        case enterPasskey
        /// The user enters this number at the peer. `entered`: how many digits the peer has reported, 0 with LE.
        case display(UInt32, entered: UInt16)

        package var description: String {
            switch self {
            case .confirm: "confirm"
            case .authorize: "authorize"
            case .enterPasskey: "enterPasskey"
            case .display: "display"
            }
        }
    }

    package let number: Number
    package let device: ObjectKey
    package let kind: Kind
    /// Whether a `Pair` of this process is under way for the device.
    package let isOurs: Bool

    package init(number: Number, device: ObjectKey, kind: Kind, isOurs: Bool) {
        (self.number, self.device, self.kind, self.isOurs) = (number, device, kind, isOurs)
    }
}

/// The reply of a manager to an ``AgentRequest``.
package enum AgentAnswer: Hashable, Sendable, PasskeyHiding {
    /// Of ``AgentRequest/Kind/confirm(_:)`` and ``AgentRequest/Kind/authorize``.
    case accept
    /// Of ``AgentRequest/Kind/enterPasskey``: 0 to 999999.
    case passkey(UInt32)
    /// Ends the pairing, also that of a displayed passkey.
    case reject
    /// The same, because the user has not answered in time.
    case expire

    package var description: String {
        switch self {
        case .accept: "accept"
        case .passkey: "passkey"
        case .reject: "reject"
        case .expire: "expire"
        }
    }
}

/// Why an ``AgentRequest`` has ended.
package enum AgentEnd: Hashable, Sendable {
    /// It was answered; of a displayed passkey: the pairing has succeeded or failed.
    case answered
    /// By BlueZ: the link was lost, or the pairing has failed or was cancelled.
    case cancelled
    case daemonLeft
    /// The agent was unregistered.
    case unregistered
}

/// Whether a manager takes an ``AgentRequest``; of several that do, the one with the greatest claim receives it, and among
/// equals the one that began first.
package enum AgentClaim: Int, Comparable, Sendable {
    case no
    /// A peripheral manager with services that the device may use.
    case asServer
    /// A central manager that has connected the device.
    case asConnected
    /// The same, and BlueZ is executing an operation of it that may need a pairing.
    case asOperating
    /// It waits for a `Pair` of this device.
    case asPairing

    package static func < (one: AgentClaim, other: AgentClaim) -> Bool { one.rawValue < other.rawValue }
}

/// A manager's session that receives requests of the pairing agent. Everything is called on the client's loop.
package protocol AgentDelegate: AnyObject, Sendable {
    func claim(_ request: AgentRequest, in tree: borrowing ObjectTree) -> AgentClaim
    /// The delegate calls ``PairingAgent/answer(_:with:)``, now or later: SMP ends the link 30 s after its last packet.
    func agentRequested(_ request: AgentRequest)
    /// The last call for this request, also after an answer of the delegate.
    func agentRequestEnded(_ number: AgentRequest.Number, _ end: AgentEnd)
}
