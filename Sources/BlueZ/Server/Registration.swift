import DBus
import Reactor

/// What `bluetoothd` reads from objects of this process after a call that registers them. On the client's loop.
protocol RegisteredContent: AnyObject, Sendable {
    associatedtype Value: Hashable, Sendable

    static var rules: RegistrationMachine.Rules { get }
    /// The interface of the adapter that registers it.
    static var manager: String { get }
    /// What the methods' names end with: `RegisterApplication`, `UnregisterApplication`.
    static var noun: String { get }
    /// How long to wait for the reply to the last `Unregister…`, in seconds.
    static var lastTimeout: Double { get }

    /// What is registered as long as no value was requested.
    var first: Value? { get }
    /// Whether there is nothing to register.
    func isEmpty(_ value: Value) -> Bool
    /// Whether BlueZ ends it after a time-out.
    func isLimited(_ value: Value) -> Bool
    func path(of generation: RegistrationMachine.Generation) -> ObjectPath
    /// What prevents the registration on an adapter that is there.
    func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle?

    /// - Returns: Whether handles were chosen for its attributes.
    func export(_ value: Value, _ generation: RegistrationMachine.Generation) -> Bool
    /// The content is not registered any more.
    /// - Parameter generation: `nil` for each.
    func withdraw(_ generation: RegistrationMachine.Generation?)
    func forgetHandles()
    func restoreHandles()
    /// Handles that were forgotten are not restored any more.
    func keepHandles()
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree)
    /// Nothing of it is left in BlueZ.
    func ended()
}

extension RegisteredContent {
    func isEmpty(_ value: Value) -> Bool { false }
    func isLimited(_ value: Value) -> Bool { false }
    func forgetHandles() {}
    func restoreHandles() {}
    func keepHandles() {}
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {}
}

/// The registration of one application or advertisement: runs its ``RegistrationMachine`` and performs what that orders.
///
/// On the client's loop, and unchecked because of that. The client retains it until its observation ends, which is when
/// nothing of it is left in BlueZ.
final class Registration<Content: RegisteredContent>: BlueZObserver, @unchecked Sendable {
    typealias Generation = RegistrationMachine.Generation
    typealias RequestID = RegistrationMachine.RequestID

    /// 24 h, in practice no limit: callers have their own time-outs, the machine calls again after
    /// ``RegistrationMachine/patience``, and a late reply is still needed to unregister. If the daemon ends before it replies,
    /// the bus reports an error at once.
    private let registerTimeout = 86_400.0
    private let endTimeout = 5.0

    let client: BlueZClient
    let content: Content
    private let adapter: ObjectKey
    private var stateChanged: @Sendable (RegistrationState) -> Void
    private var machine = RegistrationMachine(Content.rules)
    private var state = RegistrationState.idle
    private var values: [Generation: Content.Value] = [:]
    private var newest: Generation = 0
    private let timer: LoopTimer
    /// For the reply to a registration.
    private let patience: LoopTimer
    private var waiting: [(generation: Generation, completion: BlueZCompletion<Void>)] = []
    private var isEnding = false
    private var whenEnded: [@Sendable () -> Void] = []
    private var observation: CancelHandle?

    init(
        _ content: Content, on adapter: ObjectKey, client: BlueZClient,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) {
        self.client = client
        self.content = content
        self.adapter = adapter
        self.stateChanged = stateChanged
        timer = LoopTimer(on: client.loop)
        patience = LoopTimer(on: client.loop)
    }

    /// Any thread.
    func begin() {
        let observation = client.observe(self)
        client.loop.perform { self.observation = observation }
    }

    // MARK: Requests

    func update(_ value: Content.Value, completion: BlueZCompletion<Void>? = nil) {
        guard machine.state != .ended else { return client.loop.post { completion?(.failure(.closedApplication)) } }
        if values[newest] == value, machine.state == .registered(newest) || completion == nil {
            return client.loop.post { completion?(.success(())) }
        }
        newest += 1
        if !Content.rules.fallsBack { values = [:] }
        values[newest] = value
        if let completion { waiting.append((newest, completion)) }
        perform(
            machine.requested(newest, isEmpty: content.isEmpty(value), isLimited: content.isLimited(value)))
    }

    func end(completion: @escaping @Sendable () -> Void) {
        guard machine.state != .ended else { return client.loop.post(completion) }
        isEnding = true
        whenEnded.append(completion)
        perform(machine.end())
    }

    // MARK: Events

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        // Not before the adapter was reported, if it is there.
        if newest == 0, let first = content.first { update(first) }
    }

    func batchEnded() {}

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        content.treeChanged(change, in: tree)
        switch change {
        case .adapterAdded(adapter), .adapterChanged(adapter, _):
            if let values = tree[adapter: adapter] { perform(machine.obstacleChanged(content.obstacle(on: values))) }
        case .adapterRemoved(adapter):
            perform(machine.obstacleChanged(.adapter))
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved,
            .attributeAdded, .attributeChanged, .attributeRemoved:
            return
        }
    }

    /// BlueZ has dropped it.
    func released() { perform(machine.released()) }

    // MARK: Orders

    private func perform(_ orders: [RegistrationMachine.Order]) {
        for order in orders {
            switch order {
            case .register(let generation, let request): register(generation, request)
            case .unregister(let generation): unregister(generation, timeout: endTimeout) { _ in }
            case .unregisterLast(let generation, let request):
                unregister(generation, timeout: Content.lastTimeout, completion: reply(to: request))
            case .forgetHandles: content.forgetHandles()
            case .restoreHandles: content.restoreHandles()
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in
                    guard let self else { return }
                    perform(machine.timerFired())
                }
            case .cancelTimer: timer.cancel()
            case .report(let state): report(state)
            case .settled(let generation, let error): settle(generation, error)
            case .withdrawn: confirmEnd()
            case .ended: ended()
            }
        }
    }

    private func register(_ generation: Generation, _ request: RequestID) {
        if let value = values[generation], content.export(value, generation) { machine.handlesChosen() }
        call("Register", timeout: registerTimeout, completion: reply(to: request)) {
            [path = content.path(of: generation)] in
            $0.objectPath(path)
            $0.dictionary(key: "s", value: "v") { _ in }
        }
        patience.start(after: machine.patience) { [weak self] in
            guard let self else { return }
            perform(machine.unanswered(request))
        }
    }

    private func unregister(
        _ generation: Generation, timeout: Double, completion: @escaping @Sendable (BlueZError?) -> Void
    ) {
        content.withdraw(generation)
        call("Unregister", timeout: timeout, completion: completion) { [path = content.path(of: generation)] in
            $0.objectPath(path)
        }
    }

    private func call(
        _ verb: String, timeout: Double, completion: @escaping @Sendable (BlueZError?) -> Void,
        body: (inout MessageWriter) -> Void
    ) {
        client.daemon.call(
            adapter, interface: Content.manager, member: verb + Content.noun, timeout: timeout, body: body,
            completion: { completion($0.failure) })
    }

    private func reply(to request: RequestID) -> @Sendable (BlueZError?) -> Void {
        { [weak self] error in
            guard let self else { return }
            perform(machine.replied(request, error: error))
        }
    }

    private func report(_ new: RegistrationState) {
        if case .waiting = new { content.withdraw(nil) }
        guard new != state else { return }
        state = new
        let stateChanged = stateChanged
        client.loop.post { if !self.isEnding || new == .idle { stateChanged(new) } }
    }

    private func settle(_ generation: Generation, _ error: BlueZError?) {
        if error == nil {
            values = values.filter { $0.key >= generation }
            content.keepHandles()
        }
        let settled = waiting.filter { $0.generation <= generation }
        waiting.removeAll { $0.generation <= generation }
        guard !settled.isEmpty else { return }
        client.loop.post { for (_, completion) in settled { completion(error.map { .failure($0) } ?? .success(())) } }
    }

    private func confirmEnd() {
        let whenEnded = whenEnded
        self.whenEnded = []
        client.loop.post { for work in whenEnded { work() } }
    }

    private func ended() {
        content.withdraw(nil)
        content.ended()
        timer.cancel()
        patience.cancel()
        confirmEnd()
        stateChanged = { _ in }
        values = [:]
        observation = nil
    }
}
