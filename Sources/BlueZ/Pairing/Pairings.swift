import DBus
import Reactor

/// The pairings of this process: one machine for each device, whatever the number of managers that wait for it, and the
/// requests of BlueZ about it.
///
/// On the loop only, and unchecked because of that.
package final class Pairings: @unchecked Sendable {
    package typealias WaiterID = PairingMachine.WaiterID
    package typealias Completion = @Sendable (PairingOutcome) -> Void

    /// A request until its end.
    private struct Exchange: PasskeyHiding {
        let request: AgentRequest
        let delegate: any AgentDelegate
        /// Its message has the passkey. `nil` for a displayed one, which has its reply already.
        let invocation: Invocation?
    }

    /// A device's machine, as long as something is under way.
    private final class Session: @unchecked Sendable {
        let device: ObjectKey
        var machine = PairingMachine()
        var timers: [PairingMachine.Timer: LoopTimer] = [:]
        var waiters: [WaiterID: Completion] = [:]
        var exchanges: [AgentRequest.Number: Exchange] = [:]
        /// The last displayed passkey of the pairing.
        var display: AgentRequest?
        /// The turn to connect, until the link is up or `Pair` has a reply.
        var turn: ConnectID?
        /// Whether the turn has begun.
        var hasTurn = false
        /// Whether the turn has ended without a link.
        var hasLostTurn = false
        /// Only the reply to the newest `Pair` counts.
        var lastCall = 0

        init(_ device: ObjectKey) { self.device = device }
    }

    /// Seconds after which a removal is repeated, if no change of the adapter or the device repeats it before.
    private static let removalPause = 5.0

    /// A day: the waiters have limits of their own, after which `CancelPairing` makes BlueZ reply.
    private static let callLimit = 86_400.0

    private let daemon: DaemonLink
    private let connector: Connector
    private let agent: PairingAgent
    private var sessions: [ObjectKey: Session] = [:] { didSet { reportSettled() } }
    /// The capability that the agent had when each link came up.
    private var linkCapabilities: [ObjectKey: IOCapability] = [:]
    /// The devices that are being removed because this process has refused their pairings.
    private var removing: Set<ObjectKey> = []
    /// Repeats removals.
    private let removalTimer: LoopTimer
    private var waiting: [@Sendable () -> Void] = []

    init(_ daemon: DaemonLink, _ connector: Connector, _ agent: PairingAgent) {
        self.daemon = daemon
        self.connector = connector
        self.agent = agent
        removalTimer = LoopTimer(on: daemon.loop)
        agent.pairings = self
    }

    // MARK: Managers

    /// Pairs with a device by `Device1.Pair`, or joins the pairing of another manager. Connects if there is no link, in turn
    /// with other attempts to connect. Succeeds without a call if the device is bonded. On the loop only, as `completion` is,
    /// which comes exactly once and never before this returns.
    ///
    /// A manager must want the agent before; see ``PairingAgent/want(_:asDefault:for:)``.
    /// - Parameters:
    ///   - timeout: In seconds, over everything that has to happen.
    ///   - mayEndLink: Whether a link that is older than the agent may be ended and made again: from 5.81 on the kernel pairs
    ///     a link that is up with the capability that the default agent had when the link was made.
    /// - Returns: The argument of ``cancel(_:of:)``.
    @discardableResult
    package func pair(
        _ device: ObjectKey, timeout: Double, mayEndLink: Bool = true, completion: @escaping Completion
    ) -> WaiterID {
        daemon.requireLoop()
        let waiter = daemon.makeID()
        guard let facts = facts(of: device) else {
            daemon.loop.post { completion(.failed(.notFound, .noSuchObject)) }
            return waiter
        }
        let session = session(of: device)
        session.waiters[waiter] = completion
        run(session) { $0.factsChanged(facts) + $0.asked(waiter, limit: timeout, mayEndLink: mayEndLink) }
        return waiter
    }

    /// Ends one manager's wait. The pairing is cancelled if no other manager waits: the completion comes when BlueZ has ended
    /// it and nothing of it is left. Does nothing if the wait has ended. On the loop only.
    package func cancel(_ waiter: WaiterID, of device: ObjectKey) {
        daemon.requireLoop()
        run(device) { $0.cancelAsked(waiter) }
    }

    /// Whether a `Pair` of this process is under way for a device. On the loop only.
    package func isPairing(_ device: ObjectKey) -> Bool { sessions[device]?.machine.isPairing ?? false }

    /// Why a pairing that is not complete now has not progressed, if that is known. On the loop only.
    package func obstacle(of device: ObjectKey) -> PairingOutcome? { sessions[device]?.machine.obstacle(agent.problem) }

    // MARK: Requests of BlueZ

    /// Whether a request or a `Pair` is under way.
    var isBusy: Bool { sessions.values.contains { $0.machine.isBusy } }

    /// The requests that have not ended, in their order.
    private var exchanges: [Exchange] {
        sessions.values.flatMap(\.exchanges.values).sorted { $0.request.number < $1.request.number }
    }

    /// BlueZ asks about a device, so its link is up.
    /// - Parameter delegate: The manager that the request concerns; `nil` if there is none.
    func requested(
        _ invocation: Invocation, _ kind: AgentRequest.Kind, of device: ObjectKey, _ delegate: (any AgentDelegate)?
    ) {
        guard let facts = facts(of: device) else { return invocation.fail(.rejected) }
        // Another pairing on the same link.
        if let note = daemon.objects.note(about: device), note.isRefused, !hasKeys(device) { endRefusal(of: device) }
        // BlueZ has one open question for each agent.
        let isFree = kind.isDisplay || !sessions.values.contains { $0.machine.hasQuestion }
        let session = session(of: device)
        endTurn(session)
        let request = AgentRequest(number: daemon.makeID(), device: device, kind: kind) { [weak self, daemon] _ in
            daemon.loop.perform { [self] in self?.run(device) { _ in [] } }
        }
        if let delegate, isFree {
            session.exchanges[request.number] = Exchange(
                request: request, delegate: delegate, invocation: kind.isDisplay ? nil : invocation)
            if kind.isDisplay {
                session.display = request
                invocation.reply()
            }
        } else {
            invocation.fail(.rejected)
        }
        run(session) {
            $0.factsChanged(facts)
                + $0.requested(request.number, isDisplay: kind.isDisplay, isReceived: delegate != nil && isFree)
        }
    }

    /// Rejects the requests that a manager has not answered.
    func rejectRequests(to delegate: any AgentDelegate) {
        for exchange in exchanges where exchange.delegate === delegate {
            exchange.request.answer(.reject(.rejectedByUser))
        }
    }

    /// BlueZ does not wait for an answer any more.
    func cancelQuestion() {
        if let session = sessions.values.first(where: { $0.machine.hasQuestion }) {
            run(session) { $0.endQuestion() }
        }
    }

    /// The agent or the daemon is gone.
    func endRequests() { for exchange in exchanges { endRequests(about: exchange.request.device) } }

    /// Ends the requests about a device that is about to be removed: an answer that comes later has no effect.
    func endRequests(about device: ObjectKey) { run(device) { $0.endRequests() } }

    // MARK: Bonds of refused pairings

    private func hasKeys(_ device: ObjectKey) -> Bool { values(of: device)?.hasKeys ?? false }

    private func values(of device: ObjectKey) -> Device1? {
        daemon.objects.handle(of: device).map { daemon.objects[$0] }
    }

    /// From now on a bond of the device is removed, and counts as none: until BlueZ reports it without a link and a bond.
    private func refuse(_ device: ObjectKey) {
        guard daemon.objects.handle(of: device) != nil else { return }
        daemon.changeNote(about: device) { $0.isRefused = true }
        removeRefused(device)
    }

    private func endRefusal(of device: ObjectKey) {
        daemon.changeNote(about: device) { $0.isRefused = false }
        reportSettled()
    }

    /// Removes a device with a bond that this process has refused, now or when its adapter has power.
    private func removeRefused(_ device: ObjectKey) {
        guard !removing.contains(device), hasKeys(device), let adapter = daemon.objects.adapter(of: device),
            daemon.objects[adapter: adapter]?.isPowered == true
        else { return }
        removing.insert(device)
        connector.removeDevice(device) { [weak self] _ in
            guard let self else { return }
            removing.remove(device)
            // It has failed, or the device has returned and was refused again.
            if !daemon.objects.refusedDevices.isEmpty, !removalTimer.isRunning {
                removalTimer.start(after: Self.removalPause) { [weak self] in self?.removeAllRefused() }
            }
            reportSettled()
        }
    }

    private func removeAllRefused() { for device in daemon.objects.refusedDevices { removeRefused(device) } }

    /// A device has changed: notes that do not hold any more are removed.
    /// - Parameter isReported: Whether BlueZ has reported now whether there is a link: not every link is, when it begins.
    private func followNote(_ device: ObjectKey, _ note: BondNote, isReported: Bool) {
        guard let values = values(of: device) else { return }
        if values.hasKeys {
            if note.isRefused { removeRefused(device) }
        } else if !note.isRefused || isReported && !values.isConnected {
            // The bond is gone, or none has come of the link.
            daemon.changeNote(about: device) { ($0.isRefused, $0.shortLinks) = (false, 0) }
        }
        reportSettled()
    }

    /// A link keeps the capability that the adapter had when it was made.
    private func mustRelink(_ device: ObjectKey) -> Bool {
        guard let capability = agent.state.capability, capability != .noInputNoOutput,
            let values = values(of: device), values.isConnected, let adapter = daemon.objects[adapter: values.adapter]
        else { return false }
        return adapter.capabilities.pairsWithCapabilityOfLink && linkCapabilities[device] != capability
    }

    // MARK: Changes

    func adaptersChanged() { if !daemon.objects.notes.isEmpty { removeAllRefused() } }

    func deviceRemoved(_ handle: DeviceHandle) {
        guard let device = daemon.objects.key(of: handle) else { return }
        linkCapabilities[device] = nil
        run(device) { $0.deviceGone(.noSuchObject) }
        reportSettled()
    }

    /// A device's link or bond has changed, or the device has appeared.
    /// - Parameter isLinkChange: Whether there may be another link than before.
    func deviceChanged(_ handle: DeviceHandle, isLinkChange: Bool) {
        guard let device = daemon.objects.key(of: handle) else { return }
        let values = daemon.objects[handle]
        if isLinkChange {
            linkCapabilities[device] = values.isConnected ? agent.state.capability : nil
        }
        if let note = daemon.objects.note(about: device) {
            // Not inside a report.
            daemon.loop.post { [weak self] in self?.followNote(device, note, isReported: isLinkChange) }
        }
        guard let session = sessions[device], let facts = facts(of: device) else { return }
        if facts.isConnected { endTurn(session) }
        run(session) { $0.factsChanged(facts, hasLinkEnded: isLinkChange && !values.isConnected) }
    }

    // MARK: The end of the client

    /// Whether nothing is under way, and no pairing that was refused can still make a bond. On the loop only.
    var isSettled: Bool { sessions.isEmpty && daemon.objects.refusedDevices.isEmpty }

    /// Returns that; if false, `completion` is called when it is true. On the loop only, as `completion` is.
    package func isSettled(orWhenChanged completion: @escaping @Sendable () -> Void) -> Bool {
        guard !isSettled else { return true }
        waiting.append(completion)
        return false
    }

    private func reportSettled() {
        guard !waiting.isEmpty, isSettled else { return }
        let waiting = waiting
        self.waiting = []
        daemon.loop.post { for completion in waiting { completion() } }
    }

    /// Ends everything without waiting for BlueZ, which cancels the pairings of a connection that ends.
    func close() {
        for session in sessions.values { run(session) { $0.deviceGone(.noSuchObject) } }
        linkCapabilities = [:]
        removalTimer.cancel()
    }

    private func facts(of device: ObjectKey) -> PairingMachine.Facts? {
        values(of: device).map {
            PairingMachine.Facts(isPaired: $0.isPaired, isBonded: $0.keepsKeys, isConnected: $0.isConnected)
        }
    }

    // MARK: Orders

    private func run(_ device: ObjectKey, _ event: (inout PairingMachine) -> [PairingMachine.Order]) {
        if let session = sessions[device] { run(session, event) }
    }

    private func run(_ session: Session, _ event: (inout PairingMachine) -> [PairingMachine.Order]) {
        // A reply may come after the end of its session.
        guard sessions[session.device] === session else { return }
        // What was answered on another thread comes before the event.
        for (number, exchange) in session.exchanges.sorted(by: { $0.key < $1.key }) {
            guard let answer = exchange.request.takeAnswer() else { continue }
            perform(session.machine.answered(number, answer), session)
        }
        perform(event(&session.machine), session)
        if session.machine.isIdle, sessions[session.device] === session {
            sessions[session.device] = nil
            endTurn(session)
        }
        agent.busyChanged()
    }

    private func session(of device: ObjectKey) -> Session {
        let session = sessions[device] ?? Session(device)
        sessions[device] = session
        return session
    }

    private func perform(_ orders: [PairingMachine.Order], _ session: Session) {
        for order in orders { perform(order, session) }
    }

    private func perform(_ order: PairingMachine.Order, _ session: Session) {
        let device = session.device
        switch order {
        case .wantAgent:
            session.display = nil
            endTurn(session)
            agent.whenRegistered { [weak self] error in
                guard let self else { return }
                run(session) { $0.agentReady(error: error, mustRelink: self.mustRelink(device)) }
            }
        case .callDisconnect:
            connector.disconnect(device) { [weak self] _ in self?.run(session) { $0.disconnected() } }
        case .callPair: takeTurn(session)
        case .leaveQueue:
            if let turn = session.turn { connector.cancel(turn) }
            session.turn = nil
        case .callCancelPairing:
            call(device, "CancelPairing") { [weak self] _ in self?.run(session) { $0.cancelReplied() } }
        case .noteRefusal: refuse(device)
        case .startTimer(let timer, let seconds):
            let loopTimer = LoopTimer(on: daemon.loop)
            session.timers[timer] = loopTimer
            loopTimer.start(after: seconds) { [weak self] in
                guard let self else { return }
                let problem = agent.problem
                run(session) { $0.timerFired(timer, agentProblem: problem) }
            }
        case .cancelTimer(let timer): session.timers.removeValue(forKey: timer)?.cancel()
        case .settle(let waiter, let outcome):
            guard let completion = session.waiters.removeValue(forKey: waiter) else { return }
            daemon.loop.post { [display = session.display] in
                // It may have been rejected while the pairing succeeded.
                completion(display?.refusal.map { .failed($0, nil) } ?? outcome)
            }
        case .receive(let number):
            if let exchange = session.exchanges[number] { exchange.delegate.agentRequested(exchange.request) }
        case .endRequest(let number, let end): endRequest(number, end, session)
        }
    }

    private func endRequest(_ number: AgentRequest.Number, _ end: AgentEnd, _ session: Session) {
        guard let exchange = session.exchanges.removeValue(forKey: number) else { return }
        switch end {
        case .answered(.accept): exchange.invocation?.reply()
        case .answered(.passkey(let passkey)): exchange.invocation?.reply { $0.uint32(passkey) }
        case .answered(.reject): exchange.invocation?.fail(.rejected)
        case .ended, .cancelled: exchange.invocation?.fail(.cancelled)
        }
        exchange.request.end()
        // A displayed passkey that another thread has rejected in this moment.
        let late = exchange.request.takeAnswer().map { AgentEnd.answered($0) }
        exchange.delegate.agentRequestEnded(exchange.request, late ?? end)
        if exchange.request.kind.isDisplay, let cause = late?.refusal { run(session) { $0.displayRefused(cause) } }
    }

    private func call(
        _ device: ObjectKey, _ member: String, timeout: Double = DaemonLink.defaultTimeout,
        completion: @escaping @Sendable (BlueZError?) -> Void
    ) {
        daemon.call(
            device, interface: BlueZName.device, member: member, timeout: timeout,
            completion: { completion($0.failure) })
    }

    private func takeTurn(_ session: Session) {
        (session.hasTurn, session.hasLostTurn) = (false, false)
        session.lastCall += 1
        guard facts(of: session.device)?.isConnected == false else { return callPair(session) }
        session.turn = connector.takeTurn(session.device) { [weak self] in self?.callPair(session) }
    }

    private func callPair(_ session: Session) {
        run(session) {
            $0.pairSent()
            return []
        }
        session.hasTurn = true
        let isConnected = facts(of: session.device)?.isConnected == true
        if isConnected { endTurn(session) }
        // Another pairing, on another link.
        if !isConnected, !hasKeys(session.device) { endRefusal(of: session.device) }
        let number = session.lastCall
        call(session.device, "Pair", timeout: Self.callLimit) { [weak self] error in
            guard let self, sessions[session.device] === session, number == session.lastCall else { return }
            endTurn(session)
            run(session) { $0.pairReplied(error, hasLostTurn: session.hasLostTurn) }
        }
    }

    /// The link is up, or `Pair` has a reply: other devices may be connected.
    private func endTurn(_ session: Session) {
        guard session.hasTurn, let turn = session.turn else { return }
        session.turn = nil
        session.hasLostTurn = !connector.endTurn(turn)
    }
}
