import BlueCapFutures

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
    package var description: String { "\(Self.self)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A question about a pairing until its end: a request of BlueZ to the agent of this process, or the question of a manager
/// whether it may call `Pair`.
///
/// An answer counts from the moment in which it is given, on any thread: what happens on the loop afterwards, such as the
/// success of the pairing, comes after it.
package final class AgentRequest: Sendable, PasskeyHiding {
    package typealias ID = UInt64

    package enum Kind: Hashable, Sendable, PasskeyHiding {
        /// Both sides display this number; the user compares them.
        case confirm(UInt32)
        /// The pairing needs no number (Just Works).
        case authorize
        /// The user enters the number that the peer displays.
        case enterPasskey
        /// The user enters this number at the peer. `entered`: how many digits the peer has reported, 0 with LE.
        case display(UInt32, entered: UInt16)
        /// Whether no answer is needed.
        package var isDisplay: Bool { if case .display = self { true } else { false } }
    }

    private struct State {
        var answer: AgentAnswer?
        var isTaken = false
        var hasEnded = false
    }

    package let number: ID
    package let device: ObjectKey
    package let kind: Kind
    private let state = Locked(State())
    private let answered: @Sendable (AgentRequest) -> Void

    /// - Parameter answered: Called on the thread of the answer; ``takeAnswer()`` returns it.
    package init(
        number: ID, device: ObjectKey, kind: Kind, answered: @escaping @Sendable (AgentRequest) -> Void
    ) {
        (self.number, self.device, self.kind, self.answered) = (number, device, kind, answered)
    }

    /// Whether it has neither an answer nor an end.
    package var isOpen: Bool { state.withLock { $0.answer == nil && !$0.hasEnded } }

    /// Answers the request. An answer of another kind than the request rejects it; a displayed passkey can only be rejected.
    /// Any thread.
    /// - Returns: False if the request was answered before, or has ended.
    @discardableResult
    package func answer(_ answer: AgentAnswer) -> Bool {
        var answer = answer
        switch (kind, answer) {
        case (_, .reject), (.confirm, .accept), (.authorize, .accept), (.enterPasskey, .passkey): break
        case (.display, _): return isOpen
        default: answer = .reject(.rejectedByUser)
        }
        let counts = state.withLock { [answer] state in
            guard state.answer == nil, !state.hasEnded else { return false }
            state.answer = answer
            return true
        }
        if counts { answered(self) }
        return counts
    }

    /// Returns an answer that was not returned before. On the loop.
    package func takeAnswer() -> AgentAnswer? {
        state.withLock { state in
            guard let answer = state.answer, !state.isTaken else { return nil }
            state.isTaken = true
            return answer
        }
    }

    /// Ends the request, so that no later answer counts.
    package func end() { state.withLock { $0.hasEnded = true } }

    /// Why it was rejected; `nil` if it was not.
    package var refusal: PairingCause? {
        if case .reject(let cause)? = state.withLock({ $0.answer }) { cause } else { nil }
    }
}

/// The answer to an ``AgentRequest``.
package enum AgentAnswer: Hashable, Sendable, PasskeyHiding {
    /// Of ``AgentRequest/Kind/confirm(_:)`` and ``AgentRequest/Kind/authorize``.
    case accept
    /// Of ``AgentRequest/Kind/enterPasskey``: 0 to 999999.
    case passkey(UInt32)
    /// Ends the pairing, also that of a displayed passkey, which then fails for this cause.
    case reject(PairingCause)
}

/// Why an ``AgentRequest`` has ended.
package enum AgentEnd: Hashable, Sendable {
    case answered(AgentAnswer)
    /// The pairing of a displayed passkey has succeeded or failed.
    case ended
    /// The link was lost, or the pairing has failed or was cancelled, or the daemon or the agent is gone.
    case cancelled

    /// Why the request was rejected; `nil` if it was not.
    package var refusal: PairingCause? { if case .answered(.reject(let cause)) = self { cause } else { nil } }
}

/// Whether a manager takes an ``AgentRequest``; of several that do, the one with the greatest claim receives it, and among
/// equals the one that began first.
package enum AgentClaim: Comparable, Sendable {
    case no
    /// A peripheral manager with services that the device may use.
    case asServer
    /// A central manager that has connected the device.
    case asConnected
    /// The same, and BlueZ is executing an operation of it that may need a pairing.
    case asOperating
    /// It waits for a `Pair` of this device.
    case asPairing
}

/// A manager's session that receives requests of the pairing agent. Everything is called on the client's loop.
package protocol AgentDelegate: AnyObject, Sendable {
    func claim(_ device: ObjectKey, in tree: borrowing ObjectTree) -> AgentClaim
    /// The delegate answers the request, now or later: SMP ends the link 30 s after its last packet.
    func agentRequested(_ request: AgentRequest)
    /// The last call for this request, also after an answer of the delegate.
    func agentRequestEnded(_ request: AgentRequest, _ end: AgentEnd)
}
