import BlueCapBlueZ

/// Whether a pairing may go on, and who has agreed to it.
///
/// Each pairing passes through ``PairingPolicy/consent(to:)`` before this process begins it, and whenever BlueZ asks about it.
/// Nothing else decides about consent.
enum PairingConsent: Hashable, Sendable {
    /// The application has called `pair()` or `repair()`, or its policy agrees to this kind of pairing.
    case given
    /// The user of the application has to be asked.
    case needsAnswer
    case refused
}

/// What would begin a pairing, or continue it.
enum PairingStep: Hashable, Sendable {
    /// The application calls `pair()` or `repair()`.
    case request
    /// The manager is about to call `Pair` for an operation that needs security.
    case operation
    /// BlueZ asks its agent. `isWanted`: because of a `Pair` or an operation of this manager; otherwise the other device has
    /// begun the pairing.
    case question(AgentRequest.Kind, isWanted: Bool)
}

extension PairingPolicy {
    /// Returns whether a pairing may go on.
    ///
    /// BlueZ asks the program that has called `Pair` nothing about a pairing without a number (`device_confirm_passkey`, from
    /// 5.66 to 5.87), and does not report the other device's capability, which decides whether there is a number. A device
    /// may also claim another capability than before. So a policy that asks needs an answer before each `Pair` that the
    /// application has not called for.
    ///
    /// - Parameter acceptsIncomingByDefault: What ``acceptsIncoming`` is if the application has not set it.
    func consent(to step: PairingStep, acceptsIncomingByDefault: Bool = false) -> PairingConsent {
        switch (step, answers) {
        case (.question(_, isWanted: false), _) where !(acceptsIncoming ?? acceptsIncomingByDefault):
            .refused
        case (_, .rejects): .refused
        case (.operation, _) where !pairsOnDemand: .refused
        case (.request, .acceptsJustWorks), (.request, .asks), (.operation, .acceptsJustWorks): .given
        case (.question(.authorize, _), .acceptsJustWorks): .given
        case (.question(_, _), .acceptsJustWorks): .refused
        case (.operation, .asks), (.question(_, _), .asks): .needsAnswer
        }
    }

    /// Whether an operation that needs security may make this process pair, now or after a question.
    var pairsForOperations: Bool { consent(to: .operation) != .refused }
    /// Whether this manager pairs.
    var allowsPairing: Bool { consent(to: .request) != .refused }
}
