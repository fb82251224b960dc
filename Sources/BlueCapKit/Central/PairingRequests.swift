import BlueZ
import Futures
import Reactor

/// The pairing policy of one manager, and the requests that its application has not answered.
final class PairingRequests: Sendable {
    private struct Open {
        let request: AgentRequest
        let peer: PairingPeer
        let ended = Promise<Void>()
        /// Ends the time that the application has; `nil` for a displayed passkey, which needs no answer.
        let timer: TimerID?
    }

    private struct State {
        var policy: PairingPolicy
        var open: [UInt64: Open] = [:]
    }

    /// Whether pairings that the other device begins are accepted, unless the policy says so.
    let acceptsIncoming: Bool
    private let loop: any EventLoop
    private let state: Locked<State>

    init(_ loop: any EventLoop, policy: PairingPolicy, acceptsIncoming: Bool = false) {
        self.loop = loop
        self.acceptsIncoming = acceptsIncoming
        state = Locked(State(policy: policy))
    }

    var policy: PairingPolicy {
        get { state.withLock { $0.policy } }
        set { state.withLock { $0.policy = newValue } }
    }

    /// Adds a request that the application has to answer in time. Returns a future that succeeds at its end.
    func add(_ request: AgentRequest, from peer: PairingPeer) -> Future<Void> {
        let timer =
            request.kind.isDisplay
            ? nil : loop.schedule(after: policy.answerTimeout) { request.answer(.reject(.timedOut)) }
        let open = Open(request: request, peer: peer, timer: timer)
        state.withLock { $0.open[request.number] = open }
        return open.ended.future
    }

    /// Rejects what the application has not answered.
    func reject(_ cause: PairingCause, where isMeant: (PairingPeer) -> Bool = { _ in true }) {
        let open = state.withLock { $0.open.values.sorted { $0.request.number < $1.request.number } }
        for each in open where isMeant(each.peer) { each.request.answer(.reject(cause)) }
    }

    /// A request has ended. Returns the promise of its end; `nil` if the application does not have it.
    func remove(_ request: AgentRequest) -> Promise<Void>? {
        guard let open = state.withLock({ $0.open.removeValue(forKey: request.number) }) else { return nil }
        if let timer = open.timer { loop.cancel(timer) }
        return open.ended
    }
}

/// The session of a manager that pairs: answers the requests of BlueZ's agent by the manager's policy or lets the application
/// answer them, and lists and removes the bonds of the adapter, in both roles in the same way.
protocol PairingSession: ManagerSession, AgentDelegate where Core: PairingCore {
    var requests: PairingRequests { get }
    var pairingRequests: StreamPromise<PairingRequest> { get }

    /// BlueZ asks about a device. Returns whether this manager has requested the pairing, by a call or by an operation.
    func isPairingWanted(with device: ObjectKey) -> Bool
    func peer(of device: ObjectKey) -> PairingPeer?
    /// A request of BlueZ about a device has ended.
    func pairingRequestEnded(about device: ObjectKey, _ end: AgentEnd)
    /// Removes the bond of a device that the application uses; returns `nil` if it does not use it.
    func unpair(_ key: PeripheralKey) -> Future<Void>?
    /// The removal of a device with a bond has begun, or BlueZ has refused it. Any thread.
    func removingBond(of device: ObjectKey, isUnderWay: Bool)
}

protocol PairingCore: SessionCore {
    /// The devices with bonds that this manager has made.
    var ownBonds: Set<PeripheralKey> { get }
    mutating func bondEnded(of key: PeripheralKey)
    /// Returns the key by which the manager identifies a device of BlueZ. It outlives the change of the address that a bond
    /// causes.
    mutating func key(of source: ObjectKey, at address: PeripheralKey) -> PeripheralKey
    mutating func policyChanged(_ policy: PairingPolicy)
}

extension PairingSession {
    // MARK: The policy

    /// Registers the agent that the policy needs.
    func beginPairing() { if requests.policy.needsAgent { setPolicy(requests.policy) } }

    /// Changes the policy, and registers the agent that it needs. A policy without pairings rejects the requests that are open.
    /// Any thread.
    func setPolicy(_ policy: PairingPolicy) {
        guard decideIfOpen({ $0.policyChanged(policy) }) else { return }
        requests.policy = policy
        loop.perform { [self] in
            if !requests.policy.allowsPairing { requests.reject(.rejectedByPolicy) }
            wantAgent()
        }
    }

    /// Registers the agent that the newest policy needs. On the loop.
    func wantAgent() {
        let policy = requests.policy
        client.agent.want(
            policy.needsAgent ? IOCapability(policy.capability) : nil, asDefault: policy.isDefaultAgent, for: self)
    }

    /// Rejects what is open, and needs the agent no longer. On the loop.
    func endPairing() {
        requests.reject(.rejectedByPolicy)
        client.agent.want(nil, for: self)
    }

    // MARK: Requests; on the loop

    func agentRequested(_ request: AgentRequest) {
        let isWanted = isPairingWanted(with: request.device)
        answer(
            request,
            by: requests.policy.consent(
                to: .question(request.kind, isWanted: isWanted), acceptsIncomingByDefault: requests.acceptsIncoming))
    }

    /// Answers a request, or gives it to the application.
    func answer(_ request: AgentRequest, by consent: PairingConsent) {
        switch consent {
        case .given: request.answer(.accept)
        case .refused: request.answer(.reject(.rejectedByPolicy))
        case .needsAnswer:
            let promise = pairingRequests
            guard promise.stream.isWatched, let kind = PairingRequest.Kind(request.kind),
                let peer = peer(of: request.device)
            else { return _ = request.answer(.reject(.rejectedByPolicy)) }
            let given = PairingRequest(request, kind, of: peer, until: requests.add(request, from: peer))
            complete { promise.success(given) }
        }
    }

    func agentRequestEnded(_ request: AgentRequest, _ end: AgentEnd) {
        requestEnded(request)
        pairingRequestEnded(about: request.device, end)
    }

    func requestEnded(_ request: AgentRequest) {
        if let promise = requests.remove(request) { complete { promise.success(()) } }
    }
}

extension PairingRequest.Kind {
    /// `nil` for a number that is no passkey.
    fileprivate init?(_ kind: AgentRequest.Kind) {
        switch kind {
        case .confirm(let number):
            guard let passkey = Passkey(Int(number)) else { return nil }
            self = .confirm(passkey)
        case .display(let number, let entered):
            guard let passkey = Passkey(Int(number)) else { return nil }
            self = .displayPasskey(passkey, entered: Int(entered))
        case .enterPasskey: self = .enterPasskey
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
