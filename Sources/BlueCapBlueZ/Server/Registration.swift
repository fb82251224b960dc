import BlueCapDBus
import BlueCapReactor

/// Something of this process that `bluetoothd` registers on an adapter: services, or an advertisement. It is registered again
/// whenever daemon, bus, adapter or power return. Runs a ``RegistrationMachine`` and performs what that orders.
///
/// On the client's loop, except for ``end(completion:)``, and unchecked because of that. The client retains it until nothing
/// of it is left in BlueZ, which ``end(completion:)`` brings about.
package class Registration: BlueZObserver, @unchecked Sendable {
    private typealias RequestID = RegistrationMachine.RequestID

    /// 24 h, in practice no limit: callers have their own time-outs, the machine calls again after
    /// ``RegistrationMachine/patience``, and a late reply is still needed to unregister. If the daemon ends before it replies,
    /// the bus reports an error at once.
    private let registerTimeout = 86_400.0
    private let endTimeout = 5.0

    let client: BlueZClient
    let adapter: ObjectKey
    /// The object that BlueZ reads.
    let path: ObjectPath
    private let rules: RegistrationMachine.Rules
    private var stateChanged: @Sendable (RegistrationState) -> Void
    private var machine: RegistrationMachine
    private var state = RegistrationState.idle
    private let timer: LoopTimer
    /// For the reply to a registration.
    private let patience: LoopTimer
    private var isEnding = false
    private var whenEnded: [@Sendable () -> Void] = []
    private var observation: CancelHandle?

    /// Begins to register it, on any thread. The adapter need not be there.
    /// - Parameter stateChanged: Called on the loop at each change, never inside a call.
    init(
        _ rules: RegistrationMachine.Rules, on adapter: ObjectKey, client: BlueZClient,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) {
        self.client = client
        self.adapter = adapter
        self.rules = rules
        self.stateChanged = stateChanged
        path = ("/org/bluecap" as ObjectPath).appending(rules.noun.lowercased() + "\(client.makeID())")
        machine = RegistrationMachine(rules)
        timer = LoopTimer(on: client.loop)
        patience = LoopTimer(on: client.loop)
        let observation = client.observe(self)
        client.loop.perform { self.observation = observation }
    }

    /// Unregisters it, on any thread. Its last state is `.idle`. A second call does nothing.
    ///
    /// - Parameter completion: On the loop, never inside the call: when BlueZ has confirmed it or the time for that has passed;
    ///   later only if BlueZ has not answered the registration yet.
    package func end(completion: @escaping @Sendable () -> Void = {}) {
        client.loop.perform { [self] in
            guard machine.state != .ended else { return client.loop.post(completion) }
            isEnding = true
            whenEnded.append(completion)
            perform(machine.end())
        }
    }

    // MARK: The content, which subclasses have

    /// Whether BlueZ ends it after a time-out.
    var isLimited: Bool { false }
    /// What prevents the registration on an adapter that is there.
    func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle? { nil }
    /// Exports the objects that BlueZ reads.
    /// - Returns: Whether handles were chosen for its attributes.
    func export() -> Bool { false }
    /// It is not registered any more.
    func withdraw() {}
    func forgetHandles() {}
    /// Nothing of it is left in BlueZ.
    func ended() {}

    // MARK: Events

    package func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        // Not before the adapter was reported, if it is there.
        if machine.state == .idle { changed() }
    }

    package func batchEnded() {}

    package func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded(adapter), .adapterChanged(adapter, _):
            if let values = tree[adapter: adapter] { perform(machine.obstacleChanged(obstacle(on: values))) }
        case .adapterRemoved(adapter):
            perform(machine.obstacleChanged(.adapter))
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved,
            .attributeAdded, .attributeChanged, .attributeRemoved:
            return
        }
    }

    /// The content has changed.
    func changed() { perform(machine.changed()) }

    /// BlueZ has dropped it.
    func released() { perform(machine.released(isLimited: isLimited)) }

    // MARK: Orders

    private func perform(_ orders: [RegistrationMachine.Order]) {
        for order in orders {
            switch order {
            case .register(let request): register(request)
            case .unregister: unregister(timeout: endTimeout, for: nil)
            case .unregisterLast(let request): unregister(timeout: rules.lastTimeout, for: request)
            case .forgetHandles: forgetHandles()
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in self.map { $0.perform($0.machine.timerFired()) } }
            case .report(let state): report(state)
            case .withdrawn: confirmEnd()
            case .ended: finish()
            }
        }
    }

    private func register(_ request: RequestID) {
        if export() { machine.handlesChosen() }
        call("Register", timeout: registerTimeout, for: request) { [path] in
            $0.objectPath(path)
            $0.dictionary(key: "s", value: "v") { _ in }
        }
        patience.start(after: machine.patience) { [weak self] in
            self.map { $0.perform($0.machine.unanswered(request)) }
        }
    }

    private func unregister(timeout: Double, for request: RequestID?) {
        withdraw()
        call("Unregister", timeout: timeout, for: request) { [path] in $0.objectPath(path) }
    }

    /// - Parameter request: The request that receives the reply, if one does.
    private func call(_ verb: String, timeout: Double, for request: RequestID?, body: (inout MessageWriter) -> Void) {
        client.daemon.call(
            adapter, interface: rules.manager, member: verb + rules.noun, timeout: timeout, body: body
        ) { [weak self] (result: Result<Message, BlueZError>) in
            guard let self, let request else { return }
            perform(machine.replied(request, error: result.failure))
        }
    }

    private func report(_ new: RegistrationState) {
        if case .waiting = new { withdraw() }
        guard new != state else { return }
        state = new
        let stateChanged = stateChanged
        client.loop.post { if !self.isEnding || new == .idle { stateChanged(new) } }
    }

    private func confirmEnd() {
        let whenEnded = whenEnded
        self.whenEnded = []
        client.loop.post { for work in whenEnded { work() } }
    }

    private func finish() {
        withdraw()
        ended()
        timer.cancel()
        patience.cancel()
        confirmEnd()
        stateChanged = { _ in }
        observation = nil
    }
}
