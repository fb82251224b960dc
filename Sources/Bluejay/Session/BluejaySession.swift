import BlueCapKit
import Dispatch
import Foundation

/// What stands behind a ``Bluejay``: one lock around the machine and the requests, and the hands that do what it decides.
///
/// Whoever asks for something, on any thread, has it decided under the lock. What follows is done in the order of the
/// decisions by one thread at a time, without the lock: the one that finds nobody at it. User code is called on the
/// callback queue, or, what belongs to a background task, on that task's thread.
final class BluejaySession: Swift.Sendable {
    typealias RequestID = BluejayMachine.RequestID
    typealias Outcome = BluejayMachine.Outcome

    /// What is to be done.
    enum Work {
        case effect(BluejayMachine.Effect)
        case call(() -> Void)
    }

    struct Core {
        var machine = BluejayMachine()
        var manager: CentralManager?
        /// Counts the starts: what an earlier manager tells does not count any more.
        var start = 0
        var stateToken = CancelToken()
        /// The one that is connected, or was last, or is being connected.
        var peripheral: Peripheral?
        /// Counts the attempts: what is told of an earlier one does not count any more.
        var attempt = 0
        var requests: [RequestID: Request] = [:]
        private var lastRequest: UInt64 = 0
        var listens: [CharacteristicIdentifier: Listen] = [:]
        /// Those that wait for the connection to come back.
        var restoredListens: [Listen] = []
        var observers: [WeakObserver] = []
        weak var handler: (any DisconnectHandler)?
        weak var restorer: (any ListenRestorer)?
        /// What scans have found, so that it can be connected to also when BlueZ has forgotten it.
        var discovered = DiscoveredPeripherals()
        /// Counts the background tasks.
        var task = 0
        var pending: [Work] = []
        var isDraining = false

        mutating func add(_ request: Request) -> RequestID {
            lastRequest += 1
            let id = RequestID(rawValue: lastRequest)
            requests[id] = request
            return id
        }

        mutating func add(_ observer: any ConnectionObserver) {
            remove(observer)
            observers.append(WeakObserver(observer: observer))
        }

        mutating func remove(_ observer: any ConnectionObserver) {
            observers.removeAll { $0.observer == nil || $0.observer === observer }
        }
    }

    struct WeakObserver {
        weak var observer: (any ConnectionObserver)?
    }

    let core = Locked(Core())
    let callbackQueue: DispatchQueue
    /// The thread of background tasks.
    let taskQueue = DispatchQueue(label: "bluejay.background-task")
    let gate = TaskGate()
    private static let ownTask = DispatchSpecificKey<ObjectIdentifier>()

    init(callbackQueue: DispatchQueue) {
        // A serial queue on top of the user's, which may be concurrent and would call back in any order. The main queue
        // is itself: whoever asks whether he is on it is to hear so.
        self.callbackQueue =
            callbackQueue === DispatchQueue.main
            ? callbackQueue : DispatchQueue(label: "bluejay.callbacks", target: callbackQueue)
        taskQueue.setSpecific(key: Self.ownTask, value: ObjectIdentifier(self))
    }

    // MARK: Deciding

    /// Has a decision made under the lock, and what follows from it done, unless somebody is at that already.
    func decide(_ decision: (inout Core) -> [BluejayMachine.Effect]) {
        work { core in decision(&core).map { .effect($0) } }
    }

    func work(_ decision: (inout Core) -> [Work]) {
        let mustDrain = core.withLock { core in
            core.pending += decision(&core)
            guard !core.pending.isEmpty, !core.isDraining else { return false }
            core.isDraining = true
            return true
        }
        if mustDrain { drain() }
    }

    private func drain() {
        while true {
            var works: [Work] = []
            core.withLock { core in
                swap(&works, &core.pending)
                core.isDraining = !works.isEmpty
            }
            guard !works.isEmpty else { return }
            for index in works.indices {
                switch works[index] {
                case .call(let call): call()
                case .effect(.settle(let id, let outcome)): settle(id, outcome, isToBeStopped(id, in: works[index...]))
                case .effect(let effect): perform(effect)
                }
            }
        }
    }

    /// Asks for something.
    func request(_ kind: BluejayMachine.Kind, by caller: BluejayMachine.Caller? = nil, _ request: Request) {
        let caller = caller ?? self.caller
        decide { core in core.machine.requested(core.add(request), kind, by: caller) }
    }

    func finished(_ id: RequestID, _ outcome: Outcome) { decide { $0.machine.finished(id, outcome) } }

    /// Whether this is the thread of a background task of this Bluejay.
    var isInsideTask: Bool { DispatchQueue.getSpecific(key: Self.ownTask) == ObjectIdentifier(self) }

    var caller: BluejayMachine.Caller { isInsideTask ? .insideTask : .application }

    // MARK: Doing

    private func isToBeStopped(_ id: RequestID, in works: ArraySlice<Work>) -> Bool {
        guard works.count > 1, case .effect(.stop(id)) = works[works.startIndex + 1] else { return false }
        return true
    }

    private func settle(_ id: RequestID, _ outcome: Outcome, _ isToBeStopped: Bool) {
        let request = core.withLock { isToBeStopped ? $0.requests[id] : $0.requests.removeValue(forKey: id) }
        request?.settle(self, outcome)
    }

    private func perform(_ effect: BluejayMachine.Effect) {
        switch effect {
        case .settle:
            break
        case .begin(let id):
            core.withLock { $0.requests[id] }?.begin(self, id)
        case .stop(let id):
            core.withLock { $0.requests.removeValue(forKey: id) }?.stop(self, id)
        case .endLink:
            core.withLock { $0.peripheral }?.disconnect()
        case .reconnect:
            if let peripheral = core.withLock({ $0.peripheral }) { link(to: peripheral, timeout: .none) }
        case .tryAgain:
            core.withLock { $0.peripheral }?.reconnect()
        case .endListens(let error):
            endListens(error)
        case .failTask(let error):
            gate.fail(error)
        case .tellAvailability(let isAvailable):
            tell(observers) { $0.bluetoothAvailable(isAvailable) }
        case .tellConnected:
            tellConnected()
        case .tellDisconnected(let error, let willReconnect):
            tellDisconnected(error, willReconnect: willReconnect)
        }
    }

    /// Calls user code, on the callback queue.
    func call(_ work: @escaping () -> Void) {
        let handed = Handed(work)
        callbackQueue.async { handed.value() }
    }

    // MARK: Observers

    /// It joins between the events that were decided before and those after, and the greeting tells what came before: so
    /// it hears of everything once.
    func register(_ observer: any ConnectionObserver) {
        work { core in
            let isAvailable = core.machine.isAvailable
            let peripheral = core.machine.connection == .connected ? core.peripheral : nil
            return [
                .call {
                    self.core.withLock { $0.add(observer) }
                    self.tell([WeakObserver(observer: observer)]) { observer in
                        if let isAvailable { observer.bluetoothAvailable(isAvailable) }
                        if let peripheral { observer.connected(to: peripheral) }
                    }
                }
            ]
        }
    }

    func unregister(_ observer: any ConnectionObserver) {
        core.withLock { $0.remove(observer) }
        // Its registration may not have been done so far.
        work { _ in [.call { self.core.withLock { $0.remove(observer) } }] }
    }

    private var observers: [WeakObserver] { core.withLock { $0.observers } }

    /// Tells those of them who have not left meanwhile.
    private func tell(_ observers: [WeakObserver], _ event: @escaping (any ConnectionObserver) -> Void) {
        call { self.tellNow(observers, event) }
    }

    /// On the callback queue.
    private func tellNow(_ observers: [WeakObserver], _ event: (any ConnectionObserver) -> Void) {
        for case let observer? in observers.map(\.observer) {
            // Each time anew, for the one before may have had it leave.
            if core.withLock({ core in core.observers.contains { $0.observer === observer } }) { event(observer) }
        }
    }

    private func tellConnected() {
        let (peripheral, listens) = core.withLock { core in
            defer { core.restoredListens = [] }
            return (core.peripheral, core.restoredListens)
        }
        guard let peripheral else { return }
        for listen in listens { begin(listen, by: .application) }
        tell(observers) { $0.connected(to: peripheral) }
    }

    private func tellDisconnected(_ error: (any Error)?, willReconnect: Bool) {
        guard let peripheral = core.withLock({ $0.peripheral }) else { return }
        let observers = observers
        call {
            self.tellNow(observers) { $0.disconnected(from: peripheral) }
            let handler = self.core.withLock { $0.handler }
            let answer = handler?.didDisconnect(from: peripheral, with: error, willReconnect: willReconnect)
            self.decide { $0.machine.handlerAnswered(answer ?? .noChange) }
        }
    }
}
