import BlueZ
import Dispatch
import Foundation
import Futures
import Reactor

extension Try {
    /// Creates the result of a call about a pairing.
    init(_ result: Result<T, BlueZError>) {
        self =
            switch result {
            case .success(let value): .success(value)
            case .failure(let error): .failure(PairingError.failed(BusFailure(error)))
            }
    }
}

extension PairingError {
    /// Creates the error of the removal of a device; `nil` if it was removed. One that no longer exists counts as removed.
    init?(ofRemoval result: Result<Void, BlueZError>) {
        guard case .failure(let error) = result, error.cause != .doesNotExist, error.cause != .unknownObject else {
            return nil
        }
        self = error.cause == .notReady ? .unavailable(BusFailure(error)) : .failed(BusFailure(error))
    }
}

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
    private let changes = Locked<[PeripheralKey: StreamPromise<PairingChange>]>([:])

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

    /// Returns a stream of changes of a peripheral's pairing.
    func changes(of key: PeripheralKey) -> FutureStream<PairingChange> {
        guard let session = reference.session, session.core.withLock({ !$0.shell.isClosed }) else {
            let ended = StreamPromise<PairingChange>(capacity: 1)
            ended.finish()
            return ended.stream
        }
        return changes.withLock { changes in
            let promise = changes[key] ?? StreamPromise(capacity: 1)
            changes[key] = promise
            return promise.stream
        }
    }

    /// The manager ends. On the loop.
    func close(_ session: CentralSession) {
        desk.close(self)
        let ended = changes.withLock { changes in
            defer { changes = [:] }
            return Array(changes.values)
        }
        session.complete { for promise in ended { promise.finish() } }
    }

    // MARK: Orders; on the loop

    func perform(_ action: Order.Action, of key: PeripheralKey, in session: CentralSession) {
        switch action {
        case .callPair(let attempt, let timeout): pair(key, attempt, timeout: timeout, session)
        case .cancelPairing(let attempt):
            guard let call = calls.withLock({ $0[key] }), call.attempt == attempt else { return }
            client.pairings.cancel(call.waiter, of: call.device)
        case .removeDevice: remove(key, session)
        case .setTrusted(let isTrusted):
            guard let device = device(of: key, session) else { return }
            client.setTrusted(isTrusted, device: device) { _ in }
        case .reportPairing(let change): report(change, of: key, session)
        default: break
        }
    }

    private func device(of key: PeripheralKey, _ session: CentralSession) -> ObjectKey? {
        session.readState(of: key) { $0.facts.device }
    }

    private func pair(
        _ key: PeripheralKey, _ attempt: PairingState.Attempt, timeout: TimeInterval, _ session: CentralSession
    ) {
        guard let device = device(of: key, session) else {
            return session.decideHere(key) {
                $0.pairReplied(attempt, .unavailable(.noDevice), at: session.date, into: &$1)
            }
        }
        let link = session.readState(of: key) { (isUp: $0.facts.isConnected, isOurs: $0.connection.isOurs) }
        let isConnected = link?.isUp ?? false
        // A link of another program is not ended.
        let mayEndLink = link.map { !$0.isUp || $0.isOurs } ?? false
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
        let rejection = desk.takeRejection(of: device)
        guard let session = reference.session else { return }
        var error: PairingError?
        if case .failed(let cause, let failure) = outcome {
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
        session.core.withLock { $0.state.bondChanged(of: key, change) }
        if let promise = changes.withLock({ $0[key] }) { session.complete { promise.success(change) } }
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
        return state.connection.state == .connected ? .asConnected : .no
    }

    func agentRequested(_ request: AgentRequest) {
        guard let session = reference.session,
            let address = client.daemon.readDevice(request.device, { PeripheralKey($0) })
        else { return client.agent.answer(request.number, with: .reject) }
        let (key, isWanted) = session.core.withLock { core in
            let key = core.state.key(of: request.device, at: address)
            return (key, core.state.readState(of: key) { $0.pairing.isPairing || $0.isPairingOnDemand } ?? false)
        }
        desk.requested(request, isWanted: isWanted) { question in
            let promise = session.streams.pairingRequests
            guard promise.stream.isWatched else { return false }
            let peripheral = session.core.withLock { $0.objects.hold(key, in: session) }
            let asked = PairingRequest(request.number, question, of: .peripheral(peripheral), desk)
            session.complete { promise.success(asked) }
            return true
        }
    }

    func agentRequestEnded(_ number: UInt64, _ end: AgentEnd) { desk.ended(number) }
}
