import BlueZ
import Dispatch
import Foundation
import Futures
import Reactor

/// The pairings of a central manager: executes the orders about them, and receives the requests of BlueZ's agent.
///
/// The agent retains it, so it refers to the session weakly.
final class CentralPairing: AgentDelegate {
    private struct Call {
        let attempt: PairingState.Attempt
        let device: ObjectKey
        let waiter: Pairings.WaiterID
        /// Pauses the scans while `Pair` connects.
        let pause: CancelHandle?
    }

    private let reference: CentralSession.Reference
    private let client: BlueZClient
    let desk: PairingDesk
    /// The calls of `Pair` without a reply.
    private let calls = Locked<[PeripheralKey: Call]>([:])
    /// The questions that have not ended, of the agent and of this manager, by their numbers.
    private let asked = Locked<[UInt64: (key: PeripheralKey, device: ObjectKey)]>([:])

    init(
        _ reference: CentralSession.Reference, _ client: BlueZClient, policy: PairingPolicy, queue: DispatchQueue?
    ) {
        self.reference = reference
        self.client = client
        desk = PairingDesk(client, policy: policy, queue: queue)
    }

    // MARK: The manager; any thread

    /// Registers the agent that the policy needs.
    func begin() {
        if desk.policy.needsAgent { policyChanged(to: desk.policy) }
    }

    func policyChanged(to policy: PairingPolicy) {
        guard let session = reference.session else { return }
        let isOpen = session.decideIfOpen { $0.state.policyChanged(policy) }
        if isOpen { desk.setPolicy(policy, for: self) }
    }

    /// The manager ends. On the loop.
    func close() { desk.close(self) }

    /// Returns why the pairing of a peripheral has not progressed, if that is known. On the loop.
    func obstacle(of key: PeripheralKey) -> PairingError? {
        guard let call = calls.withLock({ $0[key] }),
            case .failed(let cause, let failure)? = client.pairings.obstacle(of: call.device)
        else { return nil }
        return PairingError(cause, failure)
    }

    func hasForgottenOperation(_ key: PeripheralKey, in session: CentralSession) async -> Bool {
        await withCheckedContinuation { continuation in
            session.loop.perform { [pairings = client.pairings] in
                if pairings.isSettled(orWhenChanged: { continuation.resume() }) { continuation.resume() }
            }
        }
        return await withCheckedContinuation { continuation in
            session.loop.perform { [client] in
                let isForgotten: @Sendable () -> Bool = {
                    session.readState(of: key) { $0.attributes.hasLostCalls } ?? false
                }
                guard isForgotten(), let device = session.readRecord(key, { $0.present }) else {
                    return continuation.resume(returning: false)
                }
                client.connector.fence(device) { continuation.resume(returning: isForgotten()) }
            }
        }
    }

    // MARK: Orders; on the loop

    func perform(_ action: Order.Action, of key: PeripheralKey, in session: CentralSession) {
        switch action {
        case .askForConsent(let attempt): askForConsent(key, attempt, session)
        case .callPair(let attempt, let timeout): pair(key, attempt, timeout: timeout, session)
        case .cancelPairing(let attempt):
            guard let call = calls.withLock({ $0[key] }), call.attempt == attempt else { return }
            client.pairings.cancel(call.waiter, of: call.device)
        case .removeDevice: remove(key, session)
        case .setTrusted(let isTrusted):
            guard let device = device(of: key, session) else { return }
            client.setTrusted(isTrusted, device: device) { _ in }
        case .noteShortLinks(let count):
            guard let device = device(of: key, session) else { return }
            client.daemon.changeNote(about: device) { $0.shortLinks = count }
        case .reportPairing(let change): report(change, of: key, session)
        case .rejectRequests: desk.rejectAll()
        case .cancelRequests:
            let open = asked.withLock { asked in asked.keys.filter { asked[$0]?.key == key }.sorted() }
            for number in open { _ = desk.answer(number, .reject, .cancelled) }
        default: break
        }
    }

    private func device(of key: PeripheralKey, _ session: CentralSession) -> ObjectKey? {
        session.readState(of: key) { $0.status.device }
    }

    private func askForConsent(_ key: PeripheralKey, _ attempt: PairingState.Attempt, _ session: CentralSession) {
        guard let device = device(of: key, session) else {
            return session.decideHere(key) {
                $0.consentAnswered(attempt, .unavailable(.noDevice), at: session.date, into: &$1)
            }
        }
        // Another manager of this process is pairing with it: there is nothing to ask, and `Pair` joins that pairing.
        guard !client.pairings.isPairing(device) else {
            return session.decideHere(key) { $0.consentAnswered(attempt, nil, at: session.date, into: &$1) }
        }
        let number = client.makeID()
        asked.withLock { $0[number] = (key, device) }
        desk.askForConsent(number, to: device, ask: { give($0, number, of: key, to: session) }) { [weak self] error in
            guard let self else { return }
            asked.withLock { $0[number] = nil }
            guard let session = reference.session else { return }
            session.decideHere(key) { $0.consentAnswered(attempt, error, at: session.date, into: &$1) }
        }
    }

    /// Gives a question to the application. Returns false if it has no handler.
    private func give(
        _ question: PairingDesk.Question, _ number: UInt64, of key: PeripheralKey, to session: CentralSession
    ) -> Bool {
        let promise = session.streams.pairingRequests
        guard promise.stream.isWatched else { return false }
        let peripheral = session.core.withLock { $0.objects.hold(key, in: session) }
        let asked = PairingRequest(number, question, of: .peripheral(peripheral), desk)
        session.complete { promise.success(asked) }
        return true
    }

    private func pair(
        _ key: PeripheralKey, _ attempt: PairingState.Attempt, timeout: TimeInterval, _ session: CentralSession
    ) {
        guard let device = device(of: key, session) else {
            return session.decideHere(key) {
                $0.pairReplied(attempt, .unavailable(.noDevice), at: session.date, into: &$1)
            }
        }
        let link = session.readState(of: key) { (isUp: $0.status.isConnected, isOurs: $0.connection.isOurs) }
        let isConnected = link?.isUp ?? false
        // A link of another program is not ended.
        let mayEndLink = link.map { !$0.isUp || $0.isOurs } ?? false
        // An order may be performed before the policy that was set before it, since they wait in two queues.
        desk.wantAgent(for: self)
        let waiter = client.pairings.pair(device, timeout: timeout, mayEndLink: mayEndLink) { [weak self] outcome in
            self?.replied(key, attempt, device, outcome)
        }
        let pause = isConnected ? nil : device.adapter.map { client.discovery.pause(on: $0) }
        calls.withLock { $0[key] = Call(attempt: attempt, device: device, waiter: waiter, pause: pause) }
        guard let pause else { return }
        session.loop.schedule(after: ConnectionMachine.pauseLimit) { pause.cancel() }
    }

    private func replied(
        _ key: PeripheralKey, _ attempt: PairingState.Attempt, _ device: ObjectKey, _ outcome: PairingOutcome
    ) {
        calls.withLock { $0[key]?.attempt == attempt ? $0.removeValue(forKey: key) : nil }?.pause?.cancel()
        // A displayed passkey can be rejected in the moment in which the pairing succeeds.
        var error = desk.takeRefusal(of: device)
        guard let session = reference.session else { return }
        if case .failed(let cause, let failure) = outcome {
            var rejection = PairingParty.application
            if case .rejected(by: let party)? = error { rejection = party }
            error = PairingError(cause, failure, rejection: rejection)
        }
        session.decideHere(key) { $0.pairReplied(attempt, error, at: session.date, into: &$1) }
    }

    private func remove(_ key: PeripheralKey, _ session: CentralSession) {
        guard let device = device(of: key, session) else {
            return session.decideHere(key) { $0.removed(nil, into: &$1) }
        }
        client.removeDevice(device) { [reference] result in
            reference.session?.decideHere(key) { $0.removed(PairingError(ofRemoval: result), into: &$1) }
        }
    }

    private func report(_ change: PairingChange, of key: PeripheralKey, _ session: CentralSession) {
        let promise = session.core.withLock { core in
            core.state.bondChanged(of: key, change)
            return core.objects.withEntry(of: key) { $0.changes.ofPairing }
        }
        if let promise { session.complete { promise.success(change) } }
    }

    // MARK: Requests of the agent; on the loop

    func claim(_ request: AgentRequest, in tree: borrowing ObjectTree) -> AgentClaim {
        guard let session = reference.session, let handle = tree.handle(of: request.device) else { return .no }
        var claim = AgentClaim.no
        tree.read(handle) { device in
            session.core.withLock { core in
                guard device.adapter == core.shell.adapter else { return }
                let key = core.state.key(of: request.device, at: PeripheralKey(device))
                claim = core.state.readState(of: key) { Self.claim($0) } ?? AgentClaim.no
            }
        }
        return claim
    }

    private static func claim(_ state: borrowing PeripheralState) -> AgentClaim {
        if state.pairing.isPairing { return .asPairing }
        if state.isPairingOnDemand { return .asOperating }
        return state.connection.state == .connected ? .asConnected : .no
    }

    func agentRequested(_ request: AgentRequest) {
        guard let session = reference.session,
            let address = client.daemon.readDevice(request.device, { PeripheralKey($0) })
        else { return client.agent.answer(request.number, with: .reject) }
        let (key, isWanted) = session.core.withLock { core in
            let key = core.state.key(of: request.device, at: address)
            return (key, core.state.updateState(of: key) { $0.agentAsked() } ?? false)
        }
        asked.withLock { $0[request.number] = (key, request.device) }
        desk.requested(request, isWanted: isWanted) { give($0, request.number, of: key, to: session) }
    }

    func agentRequestEnded(_ number: UInt64, _ end: AgentEnd) {
        desk.ended(number)
        guard let (key, device) = asked.withLock({ $0.removeValue(forKey: number) }),
            !client.pairings.isPairing(device), let error = desk.takeRefusal(of: device)
        else { return }
        reference.session?.decideHere(key) { $0.pairingRejected(error, into: &$1) }
    }
}
