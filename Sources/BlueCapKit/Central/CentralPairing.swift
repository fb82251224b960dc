import BlueCapBlueZ
import Foundation
import BlueCapFutures
import BlueCapReactor

/// The pairings of a central manager: executes the orders about them, and receives the requests of BlueZ's agent.
extension CentralSession: PairingSession {
    var pairingRequests: StreamPromise<PairingRequest> { streams.pairingRequests }
    var acceptsIncoming: Bool { false }

    /// Returns why the pairing of a peripheral has not progressed, if that is known. On the loop.
    func obstacle(of key: PeripheralKey) -> PairingError? {
        guard let call = use(of: key, { $0.pairing }),
            case .failed(let cause, let failure)? = client.pairings.obstacle(of: call.device)
        else { return nil }
        return PairingError(cause, failure)
    }

    func hasForgottenOperation(_ key: PeripheralKey) async -> Bool {
        await withCheckedContinuation { continuation in
            loop.perform { [pairings = client.pairings] in
                if pairings.isSettled(orWhenChanged: { continuation.resume() }) { continuation.resume() }
            }
        }
        let isForgotten = { [self] in use(of: key) { $0.state.attributes.hasLostCalls } ?? false }
        guard isForgotten(), let device = readRecord(key, { $0.present }) else { return false }
        await withCheckedContinuation { continuation in
            loop.perform { [connector = client.connector] in connector.fence(device) { continuation.resume() } }
        }
        return isForgotten()
    }

    func unpair(_ key: PeripheralKey) -> Future<Void>? {
        guard core.withLock({ $0.state.hasState(of: key) }) else { return nil }
        return operation(on: key, timeout: 30, yielding: ()) { $0.pairingAsked(.unpair, $1, timeout: 30, into: &$2) }
    }

    // MARK: Orders; on the loop

    func performPairing(_ action: Order.Action, of key: PeripheralKey) {
        let device = use(of: key) { $0.state.status.device }
        switch action {
        case .askForConsent(let attempt): askForConsent(key, attempt, device)
        case .callPair(let attempt, let timeout): pair(key, attempt, device, timeout: timeout)
        case .cancelPairing:
            guard let call = use(of: key, { $0.pairing }) else { return }
            client.pairings.cancel(call.waiter, of: call.device)
        case .removeDevice:
            guard let device else { return decideHere(key) { $0.removed(nil, into: &$1) } }
            client.removeDevice(device) { [weak self] result in
                self?.decideHere(key) { $0.removed(PairingError(ofRemoval: result), into: &$1) }
            }
        case .setTrusted(let isTrusted): if let device { client.setTrusted(isTrusted, device: device) { _ in } }
        case .noteShortLinks(let count):
            if let device { client.daemon.changeNote(about: device) { $0.shortLinks = count } }
        case .reportPairing(let change):
            let promise = core.withLock { core in
                core.state.bondChanged(of: key, change)
                return core.state.peripherals.use(of: key)?.changes.ofPairing
            }
            if let promise { complete { promise.success(change) } }
        case .rejectRequests: rejectRequests(.rejectedByUser)
        case .cancelRequests:
            rejectRequests(.cancelled) {
                if case .peripheral(let peripheral) = $0 { peripheral.key == key } else { false }
            }
        default: break
        }
    }

    private func askForConsent(_ key: PeripheralKey, _ attempt: PairingState.Attempt, _ device: ObjectKey?) {
        // If another manager of this process is pairing with it, there is nothing to ask, and `Pair` joins that pairing.
        guard let device, !client.pairings.isPairing(device) else {
            let error = device == nil ? PairingError.unavailable(.noDevice) : nil
            return decideHere(key) { $0.consentAnswered(attempt, error, at: date, into: &$1) }
        }
        let request = AgentRequest(number: client.makeID(), device: device, kind: .authorize) {
            [weak self, loop] request in
            loop.perform { [weak self] in
                guard let self else { return }
                request.end()
                requestEnded(request)
                let error = request.refusal.map { PairingError($0, nil) }
                decideHere(key) { $0.consentAnswered(attempt, error, at: self.date, into: &$1) }
            }
        }
        answer(request, by: .needsAnswer)
    }

    private func pair(
        _ key: PeripheralKey, _ attempt: PairingState.Attempt, _ device: ObjectKey?, timeout: TimeInterval
    ) {
        guard let device else {
            return decideHere(key) { $0.pairReplied(attempt, .unavailable(.noDevice), at: date, into: &$1) }
        }
        // A link of another program is not ended.
        let mayEndLink = use(of: key) { !$0.state.status.isConnected || $0.state.connection.isOurs } ?? false
        // An order may be performed before the policy that was set before it, since they wait in two queues.
        wantAgent()
        let waiter = client.pairings.pair(device, timeout: timeout, mayEndLink: mayEndLink) { [weak self] outcome in
            self?.replied(key, attempt, outcome)
        }
        core.withLock { $0.state.peripherals.use(of: key)?.pairing = (device, waiter) }
    }

    private func replied(_ key: PeripheralKey, _ attempt: PairingState.Attempt, _ outcome: PairingOutcome) {
        core.withLock { $0.state.peripherals.use(of: key)?.pairing = nil }
        var error: PairingError?
        if case .failed(let cause, let failure) = outcome { error = PairingError(cause, failure) }
        decideHere(key) { $0.pairReplied(attempt, error, at: date, into: &$1) }
    }

    // MARK: Requests of the agent; on the loop

    private func key(of device: ObjectKey) -> PeripheralKey? {
        guard let address = client.daemon.readDevice(device, { PeripheralKey($0) }) else { return nil }
        return core.withLock { $0.state.key(of: device, at: address) }
    }

    func claim(_ device: ObjectKey, in tree: borrowing ObjectTree) -> AgentClaim {
        guard let key = key(of: device), device.adapter == core.withLock({ $0.shell.adapter }) else { return .no }
        return use(of: key) { use -> AgentClaim in
            if use.state.pairing.isPairing { return .asPairing }
            if use.state.isPairingOnDemand { return .asOperating }
            return use.state.connection.state == .connected ? .asConnected : .no
        } ?? .no
    }

    func isPairingWanted(with device: ObjectKey) -> Bool {
        guard let key = key(of: device) else { return false }
        return use(of: key) { $0.state.agentAsked() } ?? false
    }

    func peer(of device: ObjectKey) -> PairingPeer? {
        key(of: device).map { key in .peripheral(core.withLock { $0.state.peripherals.hold(key, in: self) }) }
    }

    func pairingRequestEnded(about device: ObjectKey, _ end: AgentEnd) {
        guard let cause = end.refusal, !client.pairings.isPairing(device), let key = key(of: device) else {
            return
        }
        decideHere(key) { $0.pairingRejected(PairingError(cause, nil), into: &$1) }
    }
}

extension CentralCore: PairingCore {
    var ownBonds: Set<PeripheralKey> { state.ownBonds }

    mutating func bondEnded(of key: PeripheralKey) { state.bondEnded(of: key) }

    mutating func key(of source: ObjectKey, at address: PeripheralKey) -> PeripheralKey {
        state.key(of: source, at: address)
    }

    var policy: PairingPolicy {
        get { state.policy }
        set { state.policyChanged(newValue) }
    }
}
