import BlueCapDBus
import BlueCapFutures
import BlueCapReactor

/// The pairings of this process: one machine for each device, whatever the number of managers that wait for it; and the agent,
/// which BlueZ asks when a pairing needs an answer.
///
/// There is one agent for each connection to the bus, registered while a manager wants one, with the capabilities of all of
/// them together. BlueZ asks it in two cases: about each pairing that this process has begun with `Pair`, and, if it is the
/// default agent, about each pairing of the machine that no program has begun. BlueZ makes the first agent of the system the
/// default one, asked for or not. So each request is given to the manager that it concerns, and rejected if there is none.
///
/// On the loop only, and unchecked because of that.
package final class Pairings: DaemonCallee, @unchecked Sendable {
    package typealias WaiterID = UInt64
    package typealias Completion = @Sendable (PairingOutcome) -> Void

    private struct Manager {
        let delegate: any AgentDelegate
        var requirement: AgentMachine.Requirement
    }

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
        var exchanges: [AgentRequest.ID: Exchange] = [:]
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

    static let agentPath: ObjectPath = "/org/bluecap/agent"

    /// Seconds after which a removal is repeated, if no change of the adapter or the device repeats it before.
    private static let removalPause = 5.0

    /// A day: the waiters have limits of their own, after which `CancelPairing` makes BlueZ reply.
    private static let callLimit = 86_400.0

    let daemon: DaemonLink
    private let connector: Connector
    private var agent = AgentMachine()
    private let agentTimer: LoopTimer
    /// In the order in which they began to need the agent.
    private var managers: [Manager] = []
    private var waitingForAgent: [@Sendable (BlueZError?) -> Void] = []
    private var sessions: [ObjectKey: Session] = [:] { didSet { reportSettled() } }
    /// The capability that the agent had when each link came up.
    private var linkCapabilities: [ObjectKey: IOCapability] = [:]
    /// The devices that are being removed because this process has refused their pairings.
    private var removing: Set<ObjectKey> = []
    /// Repeats removals.
    private let removalTimer: LoopTimer
    private var waiting: [(includesAgent: Bool, completion: @Sendable () -> Void)] = []

    init(_ daemon: DaemonLink, _ connector: Connector) {
        self.daemon = daemon
        self.connector = connector
        agentTimer = LoopTimer(on: daemon.loop)
        removalTimer = LoopTimer(on: daemon.loop)
    }

    // MARK: The agent

    /// How far the registration has come.
    package var agentState: AgentState { agent.state }

    /// Registers the agent with this capability for a manager, together with those of other managers; `nil` if it needs none
    /// any more, which rejects the requests that it has not answered. The agent retains the delegate until then.
    ///
    /// - Parameter asDefault: Whether it is made the default agent, which decides about pairings of other programs too.
    package func wantAgent(_ capability: IOCapability?, asDefault: Bool = false, for delegate: any AgentDelegate) {
        daemon.requireLoop()
        let index = managers.firstIndex { $0.delegate === delegate }
        if let capability {
            let requirement = AgentMachine.Requirement(capability, isDefault: asDefault)
            if let index {
                managers[index].requirement = requirement
            } else {
                managers.append(Manager(delegate: delegate, requirement: requirement))
            }
        } else if let index {
            managers.remove(at: index)
            for exchange in exchanges where exchange.delegate === delegate {
                exchange.request.answer(.reject(.rejectedByUser))
            }
        }
        updateAgent()
    }

    private func updateAgent() {
        let requirements = managers.map(\.requirement)
        perform(agent.wanted(requirements.first.map { requirements.reduce($0) { $0.union($1) } }))
    }

    /// Calls `completion` once the agent is registered; with an error if BlueZ refuses it or no manager wants one. Never
    /// before this returns.
    package func whenAgentRegistered(_ completion: @escaping @Sendable (BlueZError?) -> Void) {
        daemon.requireLoop()
        waitingForAgent.append(completion)
        completeWaitingForAgent()
    }

    private func completeWaitingForAgent() {
        guard !waitingForAgent.isEmpty else { return }
        let error: BlueZError?
        switch agent.state {
        case .registered: error = nil
        case .refused(let refusal): error = refusal
        case .absent where managers.isEmpty: error = .noAgent
        case .absent, .registering: return
        }
        let waiting = waitingForAgent
        waitingForAgent = []
        daemon.loop.post { for completion in waiting { completion(error) } }
    }

    /// The agent is registered before the objects are known, and so before services and advertisements are.
    func availabilityChanged(_ availability: Availability) {
        switch availability {
        case .loading, .ready:
            updateAgent()
            perform(agent.daemonReady())
        case .notLoaded: break
        case .connecting, .noBus, .refused, .noDaemon: daemonLeft()
        }
    }

    private func daemonLeft() {
        endRequests()
        perform(agent.daemonLeft())
    }

    private func perform(_ orders: [AgentMachine.Order]) {
        for order in orders {
            switch order {
            case .register(let capability, let call):
                daemon.connection?.export(ExportedObject(Self.agentPath, [AgentTable.table.bound(to: self)]))
                self.call("RegisterAgent", call) {
                    $0.objectPath(Self.agentPath)
                    $0.string(capability.rawValue)
                }
            case .requestDefault(let call): self.call("RequestDefaultAgent", call) { $0.objectPath(Self.agentPath) }
            case .unregister(let call):
                endRequests()
                self.call("UnregisterAgent", call) { $0.objectPath(Self.agentPath) }
            case .startTimer(let seconds):
                agentTimer.start(after: seconds) { [weak self] in self.map { $0.perform($0.agent.timerFired()) } }
            case .cancelTimer: agentTimer.cancel()
            }
        }
        completeWaitingForAgent()
        reportSettled()
    }

    private func call(_ member: String, _ call: AgentMachine.CallID, body: (inout MessageWriter) -> Void) {
        daemon.call(path: "/org/bluez", interface: "org.bluez.AgentManager1", member: member, body: body) {
            [weak self] result in
            self.map { $0.perform($0.agent.replied(call, error: result.failure)) }
        }
    }

    // MARK: Managers

    /// Pairs with a device by `Device1.Pair`, or joins the pairing of another manager. Connects if there is no link, in turn
    /// with other attempts to connect. Succeeds without a call if the device is bonded. On the loop only, as `completion` is,
    /// which comes exactly once and never before this returns.
    ///
    /// A manager must want the agent before; see ``wantAgent(_:asDefault:for:)``.
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
        guard let status = status(of: device) else {
            daemon.loop.post { completion(.failed(.notFound, .noSuchObject)) }
            return waiter
        }
        let session = session(of: device)
        session.waiters[waiter] = completion
        run(session) { $0.statusChanged(status) + $0.asked(waiter, limit: timeout, mayEndLink: mayEndLink) }
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

    /// The requests that have not ended, in their order.
    private var exchanges: [Exchange] {
        sessions.values.flatMap(\.exchanges.values).ordered { $0.request.number < $1.request.number }
    }

    /// BlueZ asks about a device, so its link is up.
    fileprivate func requested(_ invocation: Invocation, _ kind: (inout MessageReader) -> AgentRequest.Kind?) {
        var reader = invocation.reader
        guard let device = reader.withString({ ObjectKey(path: $0) }) ?? nil, let status = status(of: device),
            let kind = kind(&reader)
        else { return invocation.fail(.rejected) }
        // Another pairing on the same link.
        if let note = daemon.objects.note(about: device), note.isRefused, !hasKeys(device) { endRefusal(of: device) }
        // BlueZ has one open question for each agent.
        let isFree = kind.isDisplay || !sessions.values.contains { $0.machine.hasQuestion }
        let delegate = isFree ? delegate(for: device) : nil
        let session = session(of: device)
        endTurn(session)
        let request = AgentRequest(number: daemon.makeID(), device: device, kind: kind) { [weak self, daemon] _ in
            daemon.loop.perform { [self] in self?.run(device) { _ in [] } }
        }
        if let delegate {
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
            $0.statusChanged(status)
                + $0.requested(request.number, isDisplay: kind.isDisplay, isReceived: delegate != nil)
        }
    }

    /// The delegate with the greatest claim, of equal ones the first; `nil` if none has any.
    private func delegate(for device: ObjectKey) -> (any AgentDelegate)? {
        var best: (claim: AgentClaim, delegate: (any AgentDelegate)?) = (.no, nil)
        for manager in managers {
            let claim = manager.delegate.claim(device, in: daemon.objects)
            if claim > best.claim { best = (claim, manager.delegate) }
        }
        return best.delegate
    }

    fileprivate func released(_ invocation: Invocation) {
        invocation.reply()
        endRequests()
        perform(agent.released())
    }

    /// BlueZ does not wait for an answer any more.
    fileprivate func cancelled(_ invocation: Invocation) {
        invocation.reply()
        if let session = sessions.values.first(where: { $0.machine.hasQuestion }) {
            run(session) { $0.endQuestion() }
        }
    }

    /// The agent or the daemon is gone.
    private func endRequests() { for exchange in exchanges { endRequests(about: exchange.request.device) } }

    /// Ends the requests about a device that is about to be removed: an answer that comes later has no effect.
    func endRequests(about device: ObjectKey) { run(device) { $0.endRequests() } }

    // MARK: Bonds of refused pairings

    private func hasKeys(_ device: ObjectKey) -> Bool { daemon.objects[device]?.hasKeys ?? false }

    /// From now on a bond of the device is removed, and counts as none: until BlueZ reports it without a link and a bond.
    private func refuse(_ device: ObjectKey) {
        guard daemon.objects.contains(device) else { return }
        daemon.changeNote(about: device) { $0.isRefused = true }
        removeRefused(device)
    }

    private func endRefusal(of device: ObjectKey) {
        daemon.changeNote(about: device) { $0.isRefused = false }
        reportSettled()
    }

    /// Removes a device with a bond that this process has refused, now or when its adapter has power.
    private func removeRefused(_ device: ObjectKey) {
        guard !removing.contains(device), hasKeys(device), daemon.objects[adapter: device.adapter]?.isPowered == true
        else {
            return
        }
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
        guard let values = daemon.objects[device] else { return }
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
            status(of: device)?.isConnected == true, let adapter = daemon.objects[adapter: device.adapter]
        else { return false }
        return adapter.capabilities.pairsWithCapabilityOfLink && linkCapabilities[device] != capability
    }

    // MARK: Changes

    func adaptersChanged() { if !daemon.objects.notes.isEmpty { removeAllRefused() } }

    func deviceRemoved(_ device: ObjectKey) {
        linkCapabilities[device] = nil
        run(device) { $0.deviceGone(.noSuchObject) }
        reportSettled()
    }

    /// A device's link or bond has changed, or the device has appeared.
    /// - Parameter isLinkChange: Whether there may be another link than before.
    func deviceChanged(_ device: ObjectKey, isLinkChange: Bool) {
        guard let status = status(of: device) else { return }
        if isLinkChange { linkCapabilities[device] = status.isConnected ? agent.state.capability : nil }
        if let note = daemon.objects.note(about: device) {
            // Not inside a report.
            daemon.loop.post { [weak self] in self?.followNote(device, note, isReported: isLinkChange) }
        }
        guard let session = sessions[device] else { return }
        if status.isConnected { endTurn(session) }
        run(session) { $0.statusChanged(status, hasLinkEnded: isLinkChange && !status.isConnected) }
    }

    // MARK: The end of the client

    /// Unregisters the agent. A manager that begins again, and still needs it, has it registered with the next daemon.
    func stop() { perform(agent.wanted(nil)) }

    /// Whether nothing is under way, and no pairing that was refused can still make a bond. On the loop only.
    var isSettled: Bool { sessions.isEmpty && daemon.objects.refusedDevices.isEmpty }

    private func isSettled(includingAgent: Bool) -> Bool { isSettled && (!includingAgent || agent.state == .absent) }

    /// Returns that; if false, `completion` is called when it is true. On the loop only, as `completion` is.
    /// - Parameter includesAgent: Whether also no agent must be registered.
    package func isSettled(
        includingAgent includesAgent: Bool = false, orWhenChanged completion: @escaping @Sendable () -> Void
    ) -> Bool {
        guard !isSettled(includingAgent: includesAgent) else { return true }
        waiting.append((includesAgent, completion))
        return false
    }

    private func reportSettled() {
        guard !waiting.isEmpty, isSettled else { return }
        let settled = waiting.filter { isSettled(includingAgent: $0.includesAgent) }
        waiting.removeAll { isSettled(includingAgent: $0.includesAgent) }
        daemon.loop.post { for each in settled { each.completion() } }
    }

    /// Ends everything without waiting for BlueZ, which cancels the pairings of a connection that ends.
    func close() {
        for session in sessions.values { run(session) { $0.deviceGone(.noSuchObject) } }
        linkCapabilities = [:]
        removalTimer.cancel()
        stop()
        daemonLeft()
        waiting.removeAll(where: \.includesAgent)
    }

    private func status(of device: ObjectKey) -> LinkStatus? {
        daemon.objects[device].map { LinkStatus(of: device, $0) }
    }

    // MARK: Orders

    private func run(_ device: ObjectKey, _ event: (inout PairingMachine) -> [PairingMachine.Order]) {
        if let session = sessions[device] { run(session, event) }
    }

    /// Short, because the compiler makes one of it for each closure: what does not depend on the event is in other functions.
    private func run(_ session: Session, _ event: (inout PairingMachine) -> [PairingMachine.Order]) {
        // A reply may come after the end of its session.
        guard sessions[session.device] === session else { return }
        takeAnswers(of: session)
        perform(event(&session.machine), session)
        endIfIdle(session)
    }

    /// What was answered on another thread comes before the event.
    private func takeAnswers(of session: Session) {
        for (number, exchange) in session.exchanges.ordered(by: { $0.key < $1.key }) {
            guard let answer = exchange.request.takeAnswer() else { continue }
            perform(session.machine.answered(number, answer), session)
        }
    }

    private func endIfIdle(_ session: Session) {
        if session.machine.isIdle, sessions[session.device] === session {
            sessions[session.device] = nil
            endTurn(session)
        }
        perform(agent.busyChanged(sessions.values.contains { $0.machine.isBusy }))
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
            whenAgentRegistered { [weak self] error in
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

    private func endRequest(_ number: AgentRequest.ID, _ end: AgentEnd, _ session: Session) {
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
        guard status(of: session.device)?.isConnected == false else { return callPair(session) }
        session.turn = connector.takeTurn(session.device) { [weak self] in self?.callPair(session) }
    }

    private func callPair(_ session: Session) {
        run(session) {
            $0.pairSent()
            return []
        }
        session.hasTurn = true
        let isConnected = status(of: session.device)?.isConnected == true
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

/// The interface that `bluetoothd` calls (`doc/org.bluez.Agent.rst`, up to 5.70 `doc/agent-api.txt`).
private enum AgentTable {
    static let table = InterfaceTable<Pairings>(
        "org.bluez.Agent1",
        methods: [
            .ofDaemon("Release") { $0.released($1) },
            // Of BR/EDR.
            .ofDaemon("RequestPinCode", in: ["device": "o"], out: ["pincode": "s"]) { $1.fail(.rejected) },
            .ofDaemon("DisplayPinCode", in: ["device": "o", "pincode": "s"]) { $1.fail(.rejected) },
            .ofDaemon("RequestPasskey", in: ["device": "o"], out: ["passkey": "u"]) {
                $0.requested($1) { _ in .enterPasskey }
            },
            .ofDaemon("DisplayPasskey", in: ["device": "o", "passkey": "u", "entered": "q"]) {
                $0.requested($1) { reader in
                    reader.uint32().flatMap { passkey in reader.uint16().map { .display(passkey, entered: $0) } }
                }
            },
            .ofDaemon("RequestConfirmation", in: ["device": "o", "passkey": "u"]) {
                $0.requested($1) { reader in reader.uint32().map { .confirm($0) } }
            },
            .ofDaemon("RequestAuthorization", in: ["device": "o"]) { $0.requested($1) { _ in .authorize } },
            // Of profiles that are not GATT.
            .ofDaemon("AuthorizeService", in: ["device": "o", "uuid": "s"]) { $1.fail(.rejected) },
            .ofDaemon("Cancel") { $0.cancelled($1) },
        ])
}

extension DBusError {
    static let rejected = DBusError(name: "org.bluez.Error.Rejected", message: "Rejected")
    static let cancelled = DBusError(name: "org.bluez.Error.Canceled", message: "Canceled")
}

extension BlueZError {
    /// No manager of this process needs the agent.
    package static let noAgent = BlueZError(
        name: "org.bluez.Error.Rejected", message: "No manager of this process allows pairing.")

    /// BlueZ was asked to register the agent, and has not replied so far.
    static let agentUnanswered = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "bluetoothd has not registered the agent so far")
}
