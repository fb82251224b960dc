import BlueCapBlueZ
import BlueCapFutures
import BlueCapReactor

/// The session of a manager that pairs: answers the requests of BlueZ's agent by the manager's policy or lets the application
/// answer them, and lists and removes the bonds of the adapter, in both roles in the same way.
protocol PairingSession: ManagerSession, AgentDelegate where Core: PairingCore {
    var pairingRequests: StreamPromise<PairingRequest> { get }
    /// Whether pairings that the other device begins are accepted, unless the policy says so.
    var acceptsIncoming: Bool { get }

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
    var policy: PairingPolicy { get set }
    /// The requests that the application has not answered.
    var openRequests: [AgentRequest.ID: PairingRequest] { get set }
    /// The devices with bonds that this manager has made.
    var ownBonds: Set<PeripheralKey> { get }
    mutating func bondEnded(of key: PeripheralKey)
    /// Returns the key by which the manager identifies a device of BlueZ. It outlives the change of the address that a bond
    /// causes.
    mutating func key(of source: ObjectKey, at address: PeripheralKey) -> PeripheralKey
}

extension PairingSession {
    // MARK: The policy

    var policy: PairingPolicy { core.withLock { $0.policy } }

    /// Registers the agent that the policy needs.
    func beginPairing() { if policy.needsAgent { setPolicy(policy) } }

    /// Changes the policy, and registers the agent that it needs. A policy without pairings rejects the requests that are open.
    /// Any thread.
    func setPolicy(_ policy: PairingPolicy) {
        guard decideIfOpen({ $0.policy = policy }) else { return }
        loop.perform { [self] in
            if !self.policy.allowsPairing { rejectRequests(.rejectedByPolicy) }
            wantAgent()
        }
    }

    /// Registers the agent that the newest policy needs. On the loop.
    func wantAgent() {
        let policy = policy
        client.pairings.wantAgent(
            policy.needsAgent ? IOCapability(policy.capability) : nil, asDefault: policy.isDefaultAgent, for: self)
    }

    /// Rejects what is open, and needs the agent no longer. On the loop.
    func endPairing() {
        rejectRequests(.rejectedByPolicy)
        client.pairings.wantAgent(nil, for: self)
    }

    // MARK: Requests; on the loop

    func agentRequested(_ request: AgentRequest) {
        let isWanted = isPairingWanted(with: request.device)
        answer(
            request,
            by: policy.consent(
                to: .question(request.kind, isWanted: isWanted), acceptsIncomingByDefault: acceptsIncoming))
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
            let timer =
                request.kind.isDisplay
                ? nil : loop.schedule(after: policy.answerTimeout.seconds) { request.answer(.reject(.timedOut)) }
            let given = PairingRequest(request, kind, of: peer, timer: timer)
            core.withLock { $0.openRequests[request.number] = given }
            complete { promise.success(given) }
        }
    }

    /// Rejects what the application has not answered.
    func rejectRequests(_ cause: PairingCause, where isMeant: (PairingPeer) -> Bool = { _ in true }) {
        let open = core.withLock { $0.openRequests.values.ordered { $0.request.number < $1.request.number } }
        for each in open where isMeant(each.peer) { each.request.answer(.reject(cause)) }
    }

    func agentRequestEnded(_ request: AgentRequest, _ end: AgentEnd) {
        requestEnded(request)
        pairingRequestEnded(about: request.device, end)
    }

    func requestEnded(_ request: AgentRequest) {
        guard let open = core.withLock({ $0.openRequests.removeValue(forKey: request.number) }) else { return }
        if let timer = open.timer { loop.cancel(timer) }
        complete { open.ended.success(()) }
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
