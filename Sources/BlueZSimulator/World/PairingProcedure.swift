import Foundation

/// A pairing of two devices over a link, as the Security Manager of both performs it (`net/bluetooth/smp.c`).
///
/// It takes what both ends reply and the time, and returns the questions to both ends and the result.
struct PairingProcedure: Hashable, Sendable {
    /// The central is the initiator.
    enum Side: Hashable, Sendable, CaseIterable {
        case initiator, responder

        var other: Side { self == .initiator ? .responder : .initiator }
    }

    struct Party: Hashable, Sendable {
        var security = VirtualSecurity()
        /// Whether it refuses what gives less than it has asked for.
        var isLinux = true
        /// The security that it wants, as the initiator.
        var goal = LinkSecurity.encrypted
    }

    /// What the users have to do.
    enum Model: Hashable, Sendable {
        case justWorks
        case comparison
        /// One side displays a passkey and the other enters it; nil if both enter one that their user chooses.
        case passkey(displayedBy: Side?)
    }

    enum Question: Hashable, Sendable {
        /// Whether to pair without a number.
        case authorize
        /// Whether both devices show this number.
        case confirm(Int)
        /// The number that the other device displays, which its user sees.
        case enter(Int)
        /// To be displayed; needs no answer.
        case display(Int)
    }

    enum Answer: Hashable, Sendable {
        case accept
        case passkey(Int)
        case reject
    }

    enum Step: Hashable, Sendable {
        case ask(Side, Question)
        case succeed(LinkSecurity, isBonded: Bool)
        case fail(PairingFailure)
    }

    let initiator: Party
    let responder: Party
    let model: Model
    /// The number that is compared or displayed.
    let number: Int
    private let isSecure: Bool
    private var answers: [Side: Answer] = [:]
    /// The time at which it fails if no packet is sent before; nil before it begins and once it is over.
    private(set) var deadline: TimeInterval?

    /// Seconds from one packet to the next (core specification 5.4, volume 3, part H, 3.4).
    static let timeout: TimeInterval = 30

    init(initiator: Party, responder: Party, number: Int = 0) {
        self.initiator = initiator
        self.responder = responder
        isSecure = initiator.security.hasSecureConnections && responder.security.hasSecureConnections
        model =
            initiator.security.wantsMITM || !responder.isLinux && responder.security.wantsMITM
            ? Self.model(initiator.security.capability, responder.security.capability, isSecure: isSecure) : .justWorks
        var display: Party?
        if case .passkey(let side?) = model { display = side == .initiator ? initiator : responder }
        self.number = display?.security.user.displays ?? number
    }

    /// The methods of `gen_method` and `sc_method` (core specification 5.4, volume 3, part H, table 2.8).
    private static func model(_ initiator: PairingCapability, _ responder: PairingCapability, isSecure: Bool) -> Model {
        let comparing: Set<PairingCapability> = [.displayYesNo, .keyboardDisplay]
        if isSecure, comparing.isSuperset(of: [initiator, responder]) { return .comparison }
        switch (initiator, responder) {
        case (.noInputNoOutput, _), (_, .noInputNoOutput): return .justWorks
        case (.keyboardOnly, .keyboardOnly): return .passkey(displayedBy: nil)
        case (.keyboardOnly, _): return .passkey(displayedBy: .responder)
        case (_, .keyboardOnly), (_, .keyboardDisplay): return .passkey(displayedBy: .initiator)
        case (.keyboardDisplay, _): return .passkey(displayedBy: .responder)
        case (.displayOnly, _), (.displayYesNo, _): return .justWorks
        }
    }

    /// Compares the features of both devices, and asks their users.
    mutating func begin(now: TimeInterval) -> [Step] {
        if let failure = refusal { return end(.fail(failure)) }
        deadline = now + Self.timeout
        switch model {
        case .justWorks: return [.ask(.responder, .authorize), .ask(.initiator, .authorize)]
        case .comparison: return [.ask(.responder, .confirm(number)), .ask(.initiator, .confirm(number))]
        case .passkey(nil): return [.ask(.responder, .enter(number)), .ask(.initiator, .enter(number))]
        case .passkey(let side?): return [.ask(side, .display(number)), .ask(side.other, .enter(number))]
        }
    }

    private var refusal: PairingFailure? {
        if initiator.security.isBondable, !responder.security.isBondable { return .pairingNotSupported }
        guard model == .justWorks else { return nil }
        // A Linux responder takes a request for protection as a demand, unless it has no means of it.
        let responderDemands =
            responder.isLinux && responder.security.capability != .noInputNoOutput && initiator.security.wantsMITM
        let initiatorDemands = initiator.isLinux && initiator.goal > .encrypted
        return responderDemands || initiatorDemands ? .authenticationRequirements : nil
    }

    /// Takes the answer of an end to its question.
    mutating func answered(_ answer: Answer, by side: Side, now: TimeInterval) -> [Step] {
        guard deadline != nil else { return [] }
        guard isFitting(answer, by: side) else {
            let isComparison = isSecure && (model == .comparison || model == .justWorks)
            return end(.fail(isComparison ? .numericComparisonFailed : .passkeyEntryFailed))
        }
        answers[side] = answer
        deadline = now + Self.timeout
        switch model {
        case .justWorks, .comparison: return answers.count == 2 ? succeed() : []
        case .passkey(nil):
            guard answers.count == 2 else { return [] }
            return answers[.initiator] == answers[.responder] ? succeed() : end(.fail(.confirmValueFailed))
        case .passkey(let display?):
            guard let entered = answers[display.other] else { return [] }
            return entered == .passkey(number) ? succeed() : end(.fail(.confirmValueFailed))
        }
    }

    private func isFitting(_ answer: Answer, by side: Side) -> Bool {
        switch (answer, model) {
        case (.accept, .passkey(let display)): display == side
        case (.passkey, .passkey(let display)): display != side
        default: answer == .accept
        }
    }

    /// Fails it if its time is over. A queue of deadlines, which keeps whole nanoseconds, may be early by less than one.
    mutating func timePassed(to now: TimeInterval) -> [Step] {
        now < (deadline ?? .infinity) - 1e-9 ? [] : end(.fail(.timedOut))
    }

    private mutating func succeed() -> [Step] {
        let security: LinkSecurity = model == .justWorks ? .encrypted : isSecure ? .secure : .authenticated
        return end(.succeed(security, isBonded: initiator.security.isBondable && responder.security.isBondable))
    }

    private mutating func end(_ step: Step) -> [Step] {
        deadline = nil
        return [step]
    }
}
