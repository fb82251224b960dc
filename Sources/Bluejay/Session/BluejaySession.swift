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

    struct PendingWork {
        let work: Work
        /// Those who observed when it was decided: who comes later is told how things stand instead, and so hears of
        /// everything once.
        let observers: [ObserverList<any ConnectionObserver>.Entry]
    }

    struct Core {
        var machine = BluejayMachine()
        var manager: CentralManager?
        /// Counts the starts: what an earlier manager tells does not count any more.
        var start = 0
        var stateToken = CancelToken()
        /// The one that is connected, or was last, or is being connected.
        var peripheral: Peripheral?
        var requests: [RequestID: Request] = [:]
        private var lastRequest: UInt64 = 0
        var listens: [CharacteristicIdentifier: Listen] = [:]
        /// Those that wait for the connection to come back.
        var restoredListens: [Listen] = []
        var observers = ObserverList<any ConnectionObserver>()
        var rssiObservers = ObserverList<any RSSIObserver>()
        var serviceObservers = ObserverList<any ServiceObserver>()
        var logObservers = ObserverList<any LogObserver>()
        var serviceWatch: ServiceWatch?
        weak var handler: (any DisconnectHandler)?
        weak var restorer: (any ListenRestorer)?
        weak var backgroundRestorer: (any BackgroundRestorer)?
        var isRestorationEnabled = false
        /// The connection of an earlier run, until it is known whether it comes back.
        var restoration: Restoration?
        /// What scans have found, so that it can be connected to also when BlueZ has forgotten it.
        var discovered = DiscoveredPeripherals()
        /// Counts the background tasks.
        var task = 0
        var pending: [PendingWork] = []
        var isDraining = false

        mutating func add(_ request: Request) -> RequestID {
            lastRequest += 1
            let id = RequestID(rawValue: lastRequest)
            requests[id] = request
            return id
        }
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
            let works = decision(&core)
            let observers = core.observers.entries
            core.pending += works.map { PendingWork(work: $0, observers: observers) }
            guard !core.pending.isEmpty, !core.isDraining else { return false }
            core.isDraining = true
            return true
        }
        if mustDrain { drain() }
    }

    private func drain() {
        while true {
            var works: [PendingWork] = []
            core.withLock { core in
                swap(&works, &core.pending)
                core.isDraining = !works.isEmpty
            }
            guard !works.isEmpty else { return }
            for index in works.indices {
                switch works[index].work {
                case .call(let call): call()
                case .effect(.settle(let id, let outcome)): settle(id, outcome, isToBeStopped(id, in: works[index...]))
                case .effect(let effect): perform(effect, works[index].observers)
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

    private func isToBeStopped(_ id: RequestID, in works: ArraySlice<PendingWork>) -> Bool {
        guard works.count > 1, case .effect(.stop(id)) = works[works.startIndex + 1].work else { return false }
        return true
    }

    private func settle(_ id: RequestID, _ outcome: Outcome, _ isToBeStopped: Bool) {
        let request = core.withLock { isToBeStopped ? $0.requests[id] : $0.requests.removeValue(forKey: id) }
        if case .failure(let error) = outcome { log("A request has failed: \(error.localizedDescription)") }
        request?.settle(self, outcome)
    }

    private func perform(
        _ effect: BluejayMachine.Effect, _ observers: [ObserverList<any ConnectionObserver>.Entry]
    ) {
        switch effect {
        case .settle:
            break
        case .begin(let id):
            core.withLock { $0.requests[id] }?.begin(self, id)
        case .stop(let id):
            core.withLock { $0.requests.removeValue(forKey: id) }?.stop(self, id)
        case .endLink:
            log("Disconnecting.")
            core.withLock { $0.peripheral }?.disconnect()
        case .reconnect:
            log("Reconnecting.")
            if let peripheral = core.withLock({ $0.peripheral }) { link(to: peripheral, timeout: .none) }
        case .tryAgain:
            log("The attempt to reconnect has failed; trying again.")
            core.withLock { $0.peripheral }?.reconnect()
        case .endListens(let error):
            endListens(error)
            endRestoration(error)
        case .failTask(let error):
            // Unless that task is over, and another one at work.
            if core.withLock({ $0.machine.taskFailure != nil }) { gate.fail(error) }
        case .tellAvailability(let isAvailable):
            log(isAvailable ? "Bluetooth is available." : "Bluetooth is not available.")
            call { self.tell(observers, \.observers) { $0.bluetoothAvailable(isAvailable) } }
        case .tellConnected:
            tellConnected(observers)
        case .tellDisconnected(let error, let willReconnect):
            tellDisconnected(observers, error, willReconnect: willReconnect)
        }
    }

    /// Calls user code, on the callback queue.
    func call(_ work: @escaping () -> Void) {
        let handed = Handed(work)
        callbackQueue.async { handed.value() }
    }

    // MARK: Observers

    func register(_ observer: any ConnectionObserver) {
        work { core in
            core.observers.add(ObjectIdentifier(observer)) { [weak observer] in observer }
            let isAvailable = core.machine.isAvailable
            let peripheral = core.machine.connection == .connected ? core.peripheral : nil
            let newest = core.observers.entries.suffix(1)
            return [
                .call {
                    self.call {
                        self.tell(newest, \.observers) { observer in
                            if let isAvailable { observer.bluetoothAvailable(isAvailable) }
                            if let peripheral { observer.connected(peripheral) }
                        }
                    }
                }
            ]
        }
    }

    func unregister(_ observer: any ConnectionObserver) {
        core.withLock { $0.observers.remove(ObjectIdentifier(observer)) }
    }

    /// Calls those of the observers that have not been removed meanwhile. On the callback queue.
    func tell<Observer>(
        _ entries: some Sequence<ObserverList<Observer>.Entry>,
        _ list: WritableKeyPath<Core, ObserverList<Observer>>, _ event: (Observer) -> Void
    ) {
        for entry in entries {
            // Each time anew, for the one before may have removed it.
            guard core.withLock({ $0[keyPath: list].contains(entry) }) else { continue }
            if let observer = entry.observer() {
                event(observer)
            } else {
                core.withLock { $0[keyPath: list].remove(entry) }
            }
        }
    }

    private func tellConnected(_ observers: [ObserverList<any ConnectionObserver>.Entry]) {
        let (peripheral, listens) = core.withLock { core in
            defer { core.restoredListens = [] }
            return (core.peripheral, core.restoredListens)
        }
        guard let peripheral else { return }
        log("Connected to \(peripheral.name).")
        for listen in listens { begin(listen, by: .application) }
        watchServices()
        restorationSucceeded(peripheral)
        call { self.tell(observers, \.observers) { $0.connected(peripheral) } }
    }

    private func tellDisconnected(
        _ observers: [ObserverList<any ConnectionObserver>.Entry], _ error: (any Error)?, willReconnect: Bool
    ) {
        guard let peripheral = core.withLock({ $0.peripheral }) else { return }
        log("Disconnected from \(peripheral.name).\(error.map { " " + $0.localizedDescription } ?? "")")
        call {
            self.tell(observers, \.observers) { $0.disconnected(peripheral) }
            let handler = self.core.withLock { $0.handler }
            let answer = handler?.didDisconnect(from: peripheral, with: error, willReconnect: willReconnect)
            self.decide { $0.machine.handlerAnswered(answer ?? .noChange) }
        }
    }
}
