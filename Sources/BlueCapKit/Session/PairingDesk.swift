import BlueZ
import Dispatch
import Futures
import Reactor

/// The questions about pairings that one manager has: those of BlueZ's agent, and those of the manager itself before it pairs
/// for an operation. Answers them by the manager's policy, or gives them to the application and waits for its answer.
///
/// It is the same in both roles; each of them decides which requests are its own, and makes the application's objects.
final class PairingDesk: Sendable {
    /// What BlueZ asks for, with a passkey in the form that applications receive.
    enum Question: Hashable, Sendable {
        case display(Passkey, entered: Int)
        case confirm(Passkey)
        case enter
        case authorize
    }

    private struct Open {
        let device: ObjectKey
        /// A displayed passkey needs no answer.
        let isDisplay: Bool
        let ended: Promise<Void>
        /// Receives the answer, on the loop.
        let reply: @Sendable (AgentAnswer) -> Void
        var isAnswered = false
        /// Ends the time that the application has.
        var timer: TimerID?
    }

    private struct State {
        var policy: PairingPolicy
        var open: [UInt64: Open] = [:]
        /// Why the last request about a device was refused: it was rejected, or not answered in time.
        var refusals: [ObjectKey: PairingError] = [:]
    }

    private let client: BlueZClient
    private let queue: DispatchQueue?
    /// Whether pairings that the other device begins are accepted, unless the policy says so.
    private let acceptsIncoming: Bool
    private let state: Locked<State>

    /// - Parameter queue: The queue on which promises are completed; `nil` for the loop.
    init(_ client: BlueZClient, policy: PairingPolicy, acceptsIncoming: Bool = false, queue: DispatchQueue?) {
        self.client = client
        self.acceptsIncoming = acceptsIncoming
        self.queue = queue
        state = Locked(State(policy: policy))
    }

    var policy: PairingPolicy { state.withLock { $0.policy } }

    /// Changes the policy, and registers the agent that it needs for `delegate`. A policy without pairings rejects the
    /// requests that are open. Any thread.
    func setPolicy(_ policy: PairingPolicy, for delegate: any AgentDelegate) {
        state.withLock { $0.policy = policy }
        client.loop.perform { [self] in
            if !self.policy.allowsPairing { rejectAll(.rejected(by: .policy)) }
            wantAgent(for: delegate)
        }
    }

    /// Registers the agent that the newest policy needs. On the loop.
    func wantAgent(for delegate: any AgentDelegate) {
        let policy = policy
        client.agent.want(
            policy.needsAgent ? IOCapability(policy.capability) : nil, asDefault: policy.isDefaultAgent, for: delegate)
    }

    /// Rejects what is open, and needs the agent no longer. On the loop.
    func close(_ delegate: any AgentDelegate) {
        rejectAll(.rejected(by: .policy))
        client.agent.want(nil, for: delegate)
        let ended = state.withLock { state in
            defer { state.open = [:] }
            return state.open.sorted { $0.key < $1.key }.map(\.value.ended)
        }
        for promise in ended { complete(promise) }
    }

    /// Rejects what the application has not answered. On the loop.
    /// - Parameter error: Why the pairings fail.
    func rejectAll(_ error: PairingError = .rejected(by: .application)) {
        for number in state.withLock({ $0.open.keys.sorted() }) { _ = answer(number, .reject, error) }
    }

    // MARK: Requests; on the loop

    /// Answers a request, or asks the application.
    /// - Parameters:
    ///   - isWanted: Whether the pairing was requested by this process, or by an operation of it.
    ///   - ask: Gives the request to the application; returns false if the application has no handler.
    func requested(_ request: AgentRequest, isWanted: Bool, ask: (PairingDesk.Question) -> Bool) {
        let number = request.number
        switch policy.consent(
            to: .question(request.kind, isWanted: isWanted), acceptsIncomingByDefault: acceptsIncoming)
        {
        case .refused(let party): reject(request, party)
        case .given: client.agent.answer(number, with: .accept)
        case .needsAnswer:
            guard let question = Question(request.kind) else { return reject(request, .system) }
            open(number, question, about: request.device, ask: ask) { [agent = client.agent] in
                agent.answer(number, with: $0)
            }
        }
    }

    /// Asks the application whether the manager may pair for an operation.
    /// - Parameter completion: Called once, on the loop, with the reason of a refusal, if it is one.
    func askForConsent(
        _ number: UInt64, to device: ObjectKey, ask: (PairingDesk.Question) -> Bool,
        completion: @escaping @Sendable (PairingError?) -> Void
    ) {
        open(number, .authorize, about: device, ask: ask) { [weak self, loop = client.loop] answer in
            loop.perform { [weak self] in
                self?.ended(number)
                let refusal = self?.takeRefusal(of: device)
                completion(answer == .accept ? nil : refusal ?? .rejected(by: .application))
            }
        }
    }

    private func open(
        _ number: UInt64, _ question: Question, about device: ObjectKey, ask: (PairingDesk.Question) -> Bool,
        reply: @escaping @Sendable (AgentAnswer) -> Void
    ) {
        var open = Open(device: device, isDisplay: question.isDisplay, ended: Promise(), reply: reply)
        if !open.isDisplay {
            open.timer = client.loop.schedule(after: policy.answerTimeout) { [weak self] in
                _ = self?.answer(number, .expire)
            }
        }
        state.withLock { [open] state in
            state.open[number] = open
            // Of a request that ended at the same time as it was refused.
            state.refusals[device] = nil
        }
        if !ask(question) { _ = answer(number, .reject, .rejected(by: .policy)) }
    }

    private func reject(_ request: AgentRequest, _ party: PairingParty) {
        state.withLock { $0.refusals[request.device] = .rejected(by: party) }
        client.agent.answer(request.number, with: .reject)
    }

    /// BlueZ no longer waits for an answer.
    func ended(_ number: UInt64) {
        guard let open = state.withLock({ $0.open.removeValue(forKey: number) }) else { return }
        if let timer = open.timer { client.loop.cancel(timer) }
        complete(open.ended)
    }

    private func complete(_ promise: Promise<Void>) {
        if let queue { queue.async { promise.success(()) } } else { promise.success(()) }
    }

    /// Returns why the last request about a device was refused, and forgets it: its pairing has ended. `nil` if it was not.
    func takeRefusal(of device: ObjectKey) -> PairingError? {
        state.withLock { $0.refusals.removeValue(forKey: device) }
    }

    // MARK: The application; any thread

    func isOpen(_ number: UInt64) -> Bool {
        state.withLock { state in state.open[number].map { !$0.isAnswered } ?? false }
    }

    func whenEnded(_ number: UInt64) -> Future<Void> {
        state.withLock { $0.open[number]?.ended.future } ?? Future(value: ())
    }

    /// Answers a request. Returns false if it was answered before, or has ended.
    /// - Parameter error: Why the pairing fails, if the answer rejects it.
    func answer(
        _ number: UInt64, _ answer: AgentAnswer, _ error: PairingError = .rejected(by: .application)
    ) -> Bool {
        let open = state.withLock { state -> Open? in
            guard let open = state.open[number], !open.isAnswered else { return nil }
            // The user has seen a displayed passkey. The pairing can still be rejected.
            if open.isDisplay, answer != .reject { return open }
            state.open[number]?.isAnswered = true
            switch answer {
            case .reject: state.refusals[open.device] = error
            case .expire: state.refusals[open.device] = .timedOut
            case .accept, .passkey: break
            }
            return open
        }
        open?.reply(answer)
        return open != nil
    }
}

extension PairingDesk.Question {
    fileprivate var isDisplay: Bool { if case .display = self { true } else { false } }

    /// `nil` for a number that is no passkey.
    fileprivate init?(_ kind: AgentRequest.Kind) {
        switch kind {
        case .confirm(let number):
            guard let passkey = Passkey(Int(number)) else { return nil }
            self = .confirm(passkey)
        case .display(let number, let entered):
            guard let passkey = Passkey(Int(number)) else { return nil }
            self = .display(passkey, entered: Int(entered))
        case .enterPasskey: self = .enter
        case .authorize: self = .authorize
        }
    }
}

extension IOCapability {
    init(_ capability: InputOutputCapability) {
        self =
            switch capability {
            case .displayOnly: .displayOnly
            case .displayYesNo: .displayYesNo
            case .keyboardOnly: .keyboardOnly
            case .noInputNoOutput: .noInputNoOutput
            case .keyboardDisplay: .keyboardDisplay
            }
    }
}
