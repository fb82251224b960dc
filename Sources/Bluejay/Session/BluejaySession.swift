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
        let observations: [Observation]
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
        var observations: [Observation] = []
        private var lastObservation: UInt64 = 0
        weak var handler: (any DisconnectHandler)?
        weak var restorer: (any ListenRestorer)?
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

        mutating func add(_ observer: any ConnectionObserver) {
            remove(observer)
            lastObservation += 1
            observations.append(Observation(number: lastObservation, observer))
        }

        mutating func remove(_ observer: any ConnectionObserver) {
            observations.removeAll { $0.identity == ObjectIdentifier(observer) }
        }
    }

    /// An observer from its registration on.
    struct Observation {
        let number: UInt64
        /// For those who look under the lock: somebody who is held there for a moment might die there.
        let identity: ObjectIdentifier
        weak var observer: (any ConnectionObserver)?

        init(number: UInt64, _ observer: any ConnectionObserver) {
            self.number = number
            identity = ObjectIdentifier(observer)
            self.observer = observer
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
            let observations = core.observations
            core.pending += works.map { PendingWork(work: $0, observations: observations) }
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
                case .effect(let effect): perform(effect, works[index].observations)
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
        request?.settle(self, outcome)
    }

    private func perform(_ effect: BluejayMachine.Effect, _ observations: [Observation]) {
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
            // Unless that task is over, and another one at work.
            if core.withLock({ $0.machine.taskFailure != nil }) { gate.fail(error) }
        case .tellAvailability(let isAvailable):
            call { self.tell(observations) { $0.bluetoothAvailable(isAvailable) } }
        case .tellConnected:
            tellConnected(observations)
        case .tellDisconnected(let error, let willReconnect):
            tellDisconnected(observations, error, willReconnect: willReconnect)
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
            core.add(observer)
            let isAvailable = core.machine.isAvailable
            let peripheral = core.machine.connection == .connected ? core.peripheral : nil
            let newest = core.observations.suffix(1)
            return [
                .call {
                    self.call {
                        self.tell(newest) { observer in
                            if let isAvailable { observer.bluetoothAvailable(isAvailable) }
                            if let peripheral { observer.connected(to: peripheral) }
                        }
                    }
                }
            ]
        }
    }

    func unregister(_ observer: any ConnectionObserver) { core.withLock { $0.remove(observer) } }

    /// Tells those of them who have not left meanwhile. On the callback queue.
    private func tell(_ observations: some Sequence<Observation>, _ event: (any ConnectionObserver) -> Void) {
        for observation in observations {
            // Each time anew, for the one before may have had it leave.
            guard core.withLock({ $0.observations.contains { $0.number == observation.number } }) else { continue }
            if let observer = observation.observer {
                event(observer)
            } else {
                core.withLock { $0.observations.removeAll { $0.number == observation.number } }
            }
        }
    }

    private func tellConnected(_ observations: [Observation]) {
        let (peripheral, listens) = core.withLock { core in
            defer { core.restoredListens = [] }
            return (core.peripheral, core.restoredListens)
        }
        guard let peripheral else { return }
        for listen in listens { begin(listen, by: .application) }
        call { self.tell(observations) { $0.connected(to: peripheral) } }
    }

    private func tellDisconnected(_ observations: [Observation], _ error: (any Error)?, willReconnect: Bool) {
        guard let peripheral = core.withLock({ $0.peripheral }) else { return }
        call {
            self.tell(observations) { $0.disconnected(from: peripheral) }
            let handler = self.core.withLock { $0.handler }
            let answer = handler?.didDisconnect(from: peripheral, with: error, willReconnect: willReconnect)
            self.decide { $0.machine.handlerAnswered(answer ?? .noChange) }
        }
    }
}
