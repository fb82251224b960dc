import BlueCapBlueZ
import BlueCapDBus
import Dispatch
import Foundation
import BlueCapFutures
import BlueCapReactor

/// The part of a manager that is the same in both roles: it observes BlueZ, chooses an adapter, follows its own state,
/// performs what is decided under its lock, runs timers and keeps its state on the disk.
///
/// A call, on any thread, changes ``core`` under the lock and appends orders to a queue. The loop performs the orders
/// in their sequence. Code of the application never runs under the lock, and nothing waits under it.
protocol ManagerSession: BlueZObserver {
    associatedtype Core: SessionCore
    associatedtype Failure: SessionError
    /// The value with which ``restoredPromise`` succeeds.
    associatedtype Restored: Sendable

    var client: BlueZClient { get }
    var core: Locked<Core> { get }
    /// The queue on which promises are completed; `nil` for the loop. It is serial and targets the application's queue,
    /// which may be concurrent and would not keep the sequence.
    var queue: DispatchQueue? { get }
    /// Keeps the state on the disk; `nil` if the manager has no restore identifier.
    var keeper: StateKeeper<Core.Kept>? { get }
    var restoredPromise: Promise<Restored> { get }
    /// What is wrong with the manager's configuration; `nil` if nothing is.
    var problem: Failure? { get }

    /// Performs orders, on the loop.
    func perform(_ orders: [Core.Orders.Order])

    /// The manager uses another adapter, or BlueZ's objects were loaded again. Called on the loop, before the manager's
    /// state follows. ``SessionShell/adapter`` is the new one.
    func adapterChanged(from old: ObjectKey?, in tree: borrowing ObjectTree)
    /// The manager's state has followed the adapters.
    func adaptersSettled()
    /// BlueZ's objects are no longer known.
    func daemonLeft()

    /// Restores what an earlier manager has kept, on the queue of the disk. Sets ``SessionShell/isKeeping`` in the same
    /// decision: a manager that ends before that leaves the state on the disk unchanged.
    func restore(_ kept: Core.Kept)
    /// Reports what was restored, on the loop, when the manager's state is known or has not been known for too long.
    func reportRestored()

    /// Ends everything under the lock, when the manager ends. ``SessionShell/isClosed`` is set already.
    /// - Returns: The state to write to the disk, if the state there belongs to this manager.
    func end(_ core: inout Core) -> Core.Kept?
    /// Finishes the streams, on the loop, after the orders of ``end(_:)`` were performed.
    func finish()
}

/// The errors that managers of both roles report.
protocol SessionError: Error, Sendable, CustomStringConvertible {
    static func invalidOption(_ text: String) -> Self
    static var restoreFailed: Self { get }
    static func restoreIdentifierInUse(_ path: String) -> Self
}

/// The state that the lock of a session guards.
protocol SessionCore {
    associatedtype Orders: OrderQueue
    associatedtype Timer: Hashable, Sendable
    associatedtype Kept: KeptState

    var shell: SessionShell<Orders, Timer> { get set }
    var managerState: ManagerState { get }
    /// What is under way and outlives the process.
    var kept: Kept { get }

    mutating func event(_ event: ManagerStateMachine.Event)
    mutating func fired(_ timer: Timer, at now: Instant)
    /// Ends what is under way, and discards the manager's state so that each state is announced again.
    mutating func reset()
}

/// The part of a session's state that both roles have.
struct SessionShell<Orders: OrderQueue, Timer: Hashable> {
    /// The orders that wait to be performed, in the sequence of the decisions.
    var orders: Orders
    /// Whether the loop is about to perform the orders.
    private var isDraining = false
    /// An empty array with memory that is reused for the next orders.
    private var spare: [Orders.Order] = []
    /// Why the manager's state is what it is.
    fileprivate(set) var standing = Standing()
    /// The adapter in use, while there is one. It changes on the loop only.
    fileprivate(set) var adapter: ObjectKey?
    fileprivate(set) var choice: AdapterChoice
    /// Whether the manager has ended: then it starts nothing.
    fileprivate(set) var isClosed = false
    /// Whether the state on the disk was read: it may be replaced only after that.
    var isKeeping = false
    /// Whether the restored state has not been reported yet.
    fileprivate var isRestoring = false
    /// Whether a timer runs, after which the state is written to the disk.
    fileprivate var isWriteDue = false
    var streams = StateStreams()
    fileprivate var observation: CancelHandle?
    fileprivate(set) var timers: [Timer: TimerID] = [:]
    /// How many times a state other than `.poweredOn` was announced after it.
    private(set) var interruptions = 0
    private var wasPoweredOn = false

    init(adapter: String?, orders: Orders) {
        self.orders = orders
        choice = AdapterChoice(wanted: adapter)
    }

    /// The device with this address on the adapter in use; `nil` if BlueZ has none there.
    func device(_ address: BluetoothAddress, in daemon: DaemonLink) -> ObjectKey? {
        let device = adapter.map { ObjectKey(device: address, on: $0) }
        return device.flatMap { daemon.hasDevice($0) ? $0 : nil }
    }

    fileprivate mutating func count(_ announced: ManagerState) {
        if wasPoweredOn, announced != .poweredOn { interruptions += 1 }
        wasPoweredOn = announced == .poweredOn
    }

    /// Returns whether the loop has to be woken to perform the orders; true once until it has performed them.
    mutating func mustWake() -> Bool {
        guard !orders.pending.isEmpty, !isDraining else { return false }
        isDraining = true
        return true
    }

    /// Exchanges the orders for an empty array. If there were none, the memory of `taken` is reused for later ones.
    fileprivate mutating func take(into taken: inout [Orders.Order]) {
        swap(&taken, &orders.pending)
        isDraining = !taken.isEmpty
        if isDraining, orders.pending.capacity == 0 { swap(&spare, &orders.pending) }
        if !isDraining, spare.capacity < taken.capacity { swap(&spare, &taken) }
    }
}

/// The streams of a manager's state. Each call of a manager's function returns the same one.
struct StateStreams {
    let states = StreamPromise<ManagerState>(capacity: 1)
    let capabilities = StreamPromise<BluetoothCapabilities>(capacity: 1)

    func finish() {
        states.finish()
        capabilities.finish()
    }
}

/// The orders that wait for the loop.
protocol OrderQueue {
    associatedtype Order
    var pending: [Order] { get set }
    /// Whether the pending orders only send calls to BlueZ and limit their time: then no promise is completed by them.
    var areCalls: Bool { get }
}

extension OrderQueue {
    var areCalls: Bool { false }
}

extension Array: OrderQueue {
    var pending: [Element] {
        get { self }
        set { self = newValue }
    }
}

extension ManagerSession {
    var loop: any EventLoop { client.loop }
    var executor: LoopExecutor { client.executor }

    // MARK: State

    var managerState: ManagerState {
        tryAgain()
        return core.withLock { $0.managerState }
    }

    /// The state and its explanation at the same moment.
    var standing: (state: ManagerState, explanation: String) {
        core.withLock { ($0.managerState, problem?.description ?? $0.shell.standing.explanation) }
    }

    var stateStream: FutureStream<ManagerState> {
        tryAgain()
        return core.withLock { $0.shell.streams }.states.stream
    }

    var capabilities: BluetoothCapabilities { core.withLock { $0.shell.standing.capabilities } }
    var capabilityStream: FutureStream<BluetoothCapabilities> {
        core.withLock { $0.shell.streams }.capabilities.stream
    }

    /// Performs the order to announce a state.
    func announce(_ state: ManagerState) {
        let (promise, isRestoring) = core.withLock { core in
            core.shell.count(state)
            return (core.shell.streams.states, core.shell.isRestoring)
        }
        complete { promise.success(state) }
        // After what else the new state has caused.
        if isRestoring { loop.post { self.endRestoring() } }
    }

    private func announce(_ capabilities: BluetoothCapabilities?) {
        guard let capabilities else { return }
        let promise = core.withLock { $0.shell.streams }.capabilities
        complete { promise.success(capabilities) }
    }

    // MARK: Beginning and end; any thread

    func open() {
        if let shortage = loop.start() { fail(shortage) }
        let observation = client.observe(self)
        core.withLock { $0.shell.observation = observation }
    }

    /// Ends everything, and the observation last.
    func close() {
        var kept: Core.Kept?
        decide { core in
            core.shell.isClosed = true
            let last = end(&core)
            if core.shell.isKeeping { kept = last }
        }
        keeper?.finish(kept, for: loop)
        complete { self.restoredPromise.failure(Failure.restoreFailed) }
        loop.post {
            self.drain()
            let observation = self.core.withLock { $0.shell.observation.take() }
            self.finish()
            observation?.cancel()
        }
    }

    func reset() {
        decide { core in
            core.shell.standing = Standing()
            core.reset()
        }
        loop.post { [self] in
            drain()
            let old = core.withLock { core in
                core.shell.adapter = nil
                return core.shell.observation.take()
            }
            guard client.availability == .ready else {
                // Without an observer the client leaves the bus, so the next observer makes it connect again.
                old?.cancel()
                return open()
            }
            // The client stays on the bus: calls and subscriptions that are under way belong to this connection.
            open()
            // Cancelled after the new observer is added: no report arrives between the two.
            loop.post { old?.cancel() }
            client.reload()
        }
    }

    // MARK: No thread available

    /// Fails the manager because there is no thread for the bus. Called before any other decision: nothing else is
    /// announced.
    private func fail(_ shortage: LoopShortage) {
        let (state, promise) = core.withLock { core in
            let availability = Availability.noBus(DBusError(shortage))
            core.shell.standing.reach = Explanation.of(availability)
            core.event(.reached(availability))
            core.shell.orders.pending = []
            return (core.managerState, core.shell.streams.states)
        }
        // Completed here, because a queue may need a thread too.
        promise.success(state)
    }

    /// Tries to start the loop's thread if there was none before. If it starts, what has waited for it begins.
    func tryAgain() { _ = loop.start() }

    // MARK: Deciding

    /// Makes `decision` under the lock. The loop performs the orders that it adds. Calls to BlueZ are sent inside this
    /// function if the loop sleeps, which saves waking it: its next wake-up is the reply.
    func decide(_ decision: (inout Core) -> Void) {
        tryAgain()
        let (mustWake, areCalls) = core.withLock { core in
            decision(&core)
            let mustWake = core.shell.mustWake()
            // If the loop need not be woken, orders of earlier decisions are pending too, maybe thousands.
            return (mustWake, mustWake && core.shell.orders.areCalls)
        }
        guard mustWake, !(areCalls && loop.performIfIdle { drain(callsOnly: true) }) else { return }
        loop.post { self.drain() }
    }

    /// Makes `decision` unless the manager has ended. Returns whether it was made.
    func decideIfOpen(_ decision: (inout Core) -> Void) -> Bool {
        var isOpen = false
        decide { core in
            isOpen = !core.shell.isClosed
            if isOpen { decision(&core) }
        }
        return isOpen
    }

    /// Performs the pending orders, and those that are added until that is done. On the loop. With `callsOnly`, orders that are
    /// more than calls are left to the loop's own thread.
    func drain(callsOnly: Bool = false) {
        var orders: [Core.Orders.Order] = []
        while true {
            orders.removeAll(keepingCapacity: true)
            let isForThread = core.withLock { core in
                if callsOnly, !core.shell.orders.areCalls { return true }
                core.shell.take(into: &orders)
                return false
            }
            if isForThread { return loop.post { self.drain() } }
            guard !orders.isEmpty else { return }
            perform(orders)
        }
    }

    /// Completes promises on the application's queue, or at once if there is none.
    func complete(_ work: @escaping @Sendable () -> Void) {
        if let queue { queue.async(execute: work) } else { work() }
    }

    /// Returns a future with this result, completed where the manager's promises are.
    func settled<T: Sendable>(_ result: Try<T>) -> Future<T> {
        let future = Future<T>()
        complete(future, result)
        return future
    }

    func complete<T: Sendable>(_ future: Future<T>, _ result: Try<T>) { complete { future.complete(result) } }

    func failed<T: Sendable>(_ error: any Error) -> Future<T> { settled(.failure(error)) }

    // MARK: Timers

    func start(_ timer: Core.Timer, after seconds: TimeInterval) {
        let id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            core.withLock { $0.shell.timers[timer] = nil }
            decide { $0.fired(timer, at: self.loop.now) }
        }
        if let old = core.withLock({ $0.shell.timers.updateValue(id, forKey: timer) }) { loop.cancel(old) }
    }

    func cancel(_ timer: Core.Timer) {
        if let id = core.withLock({ $0.shell.timers.removeValue(forKey: timer) }) { loop.cancel(id) }
    }

    // MARK: BlueZ; on the loop

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        if availability == .ready {
            client.withTree { adaptersChanged(in: $0, isReload: true) }
        } else {
            let news = core.withLock { core in
                core.shell.choice.allWent()
                return core.shell.standing.capabilitiesChanged(to: nil)
            }
            announce(news)
            daemonLeft()
        }
        decide { core in
            core.shell.standing.reach = Explanation.of(availability)
            core.event(.reached(availability))
        }
    }

    /// Follows the changes of adapters only.
    func adapterReported(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        // An adapter that disappears together with its daemon was not removed.
        case .adapterRemoved where client.availability != .ready: break
        case .adapterChanged(_, let fields)
        where fields.isDisjoint(with: [.isPowered, .powerState, .address, .capabilities]):
            break
        case .adapterAdded(let key), .adapterChanged(let key, _), .adapterRemoved(let key):
            let isConcerned = core.withLock { core in
                core.shell.choice.concerns(key, current: core.shell.adapter, in: tree)
            }
            if isConcerned { adaptersChanged(in: tree) }
        case .deviceAdded, .deviceChanged, .deviceRemoved, .attributeAdded, .attributeChanged, .attributeRemoved:
            break
        }
    }

    /// Chooses an adapter if adapters have changed that no report has compared yet.
    func adapterBatchEnded() {
        if core.withLock({ $0.shell.choice.isOutdated }) { client.withTree { adaptersChanged(in: $0) } }
    }

    private func adaptersChanged(in tree: borrowing ObjectTree, isReload: Bool = false) {
        let keys = AdapterChoice.candidates(in: tree)
        let (choice, old, adapter) = core.withLock { core in
            let old = core.shell.adapter
            let choice = core.shell.choice.choose(from: Array(keys.keys))
            core.shell.adapter = choice.flatMap { keys[$0] }
            return (choice, old, core.shell.adapter)
        }
        if isReload || adapter != old { adapterChanged(from: old, in: tree) }
        let values = adapter.flatMap { tree[adapter: $0] }
        // Announced before the state, because the state's handlers read the capabilities.
        announce(core.withLock { $0.shell.standing.capabilitiesChanged(to: values?.capabilities) })
        decide { core in
            core.shell.standing.adapter = Explanation.of(
                choice, isPowered: values?.isPowered, values?.powerState, wanted: core.shell.choice.wanted,
                present: keys.keys.map(\.name).sorted())
            core.event(.adapterPower(values?.isPowered))
        }
        adaptersSettled()
    }
}

// MARK: - Restoration

extension ManagerSession {
    /// Seconds from a change until it is written to the disk, together with all changes in between.
    private static var keepingDelay: Double { 0.25 }
    /// Seconds until a write that failed is repeated.
    private static var keepingPatience: Double { 30 }
    /// Seconds for which the restored state waits for the manager's state.
    private static var restorationPatience: Double { 5 }
    /// Seconds until a state is opened again if the process had no descriptor for it.
    private static var openingPatience: Double { 1 }

    /// Reads the state from the disk and restores it. Any thread.
    func beginRestoration() {
        guard problem == nil, let keeper else {
            let error =
                problem
                ?? .invalidOption("A state is restored for a manager whose configuration has a restoreIdentifier.")
            return complete { self.restoredPromise.failure(error) }
        }
        // If there is no thread, the queue of the disk may have to wait for one as well.
        guard loop.start() == nil else { return loop.post { [weak self] in self?.beginRestoration() } }
        guard !core.withLock({ $0.shell.isClosed }) else { return }
        keeper.open(for: loop) { [weak self] opening in self?.opened(opening) }
    }

    /// On the queue of the disk.
    private func opened(_ opening: StateKeeper<Core.Kept>.Opening) {
        // Requests that were made before the state was read are kept from now on.
        defer { loop.post { self.keepSoon() } }
        switch opening {
        case .postponed:
            loop.schedule(after: Self.openingPatience) { [weak self] in self?.beginRestoration() }
        case .failed(let path):
            core.withLock { $0.shell.isKeeping = true }
            let error = path.map { Failure.restoreIdentifierInUse($0) } ?? .restoreFailed
            // Completed later, because a handler must not delay the disk.
            loop.post { self.complete { self.restoredPromise.failure(error) } }
        case .kept(let state):
            restore(state)
            core.withLock { $0.shell.isRestoring = true }
            loop.post { [self] in
                guard core.withLock({ $0.managerState }) == .unknown else { return endRestoring() }
                loop.schedule(after: Self.restorationPatience) { [weak self] in self?.endRestoring() }
            }
        }
    }

    private func endRestoring() {
        let mustReport = core.withLock { core in
            defer { core.shell.isRestoring = false }
            return core.shell.isRestoring && !core.shell.isClosed
        }
        if mustReport { reportRestored() }
    }

    /// Writes the state to the disk soon, since it may have changed. On the loop.
    func keepSoon() {
        if keeper != nil { keep(after: Self.keepingDelay) }
    }

    private func keep(after seconds: Double) {
        let mustSchedule = core.withLock { core -> Bool in
            guard core.shell.isKeeping, !core.shell.isClosed, !core.shell.isWriteDue else { return false }
            core.shell.isWriteDue = true
            return true
        }
        if mustSchedule { loop.schedule(after: seconds) { [weak self] in self?.keepNow() } }
    }

    private func keepNow() {
        let kept = core.withLock { core in
            core.shell.isWriteDue = false
            return core.shell.isClosed ? nil : core.kept
        }
        guard let keeper, let kept else { return }
        keeper.keep(kept, for: loop) { [weak self] in
            guard let self else { return }
            loop.post { self.keep(after: Self.keepingPatience) }
        }
    }
}
