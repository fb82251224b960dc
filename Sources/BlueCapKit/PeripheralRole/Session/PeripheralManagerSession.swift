import BlueZ
import DBus
import Dispatch
import Foundation
import Futures
import GATT
import Reactor

/// What stands behind a `PeripheralManager`: one lock around `PeripheralManagerState`, and the hands that do what it decides.
///
/// As with `CentralSession`: whoever asks for something, on any thread, has it decided under the lock; what follows is done
/// on the loop, in that order. The lock is a leaf. Values and their updates are behind the locks of their characteristics,
/// which are leaves as well: no two locks are ever held.
final class PeripheralManagerSession: Sendable {
    struct Core {
        var state = PeripheralManagerState()
        var effects = EffectQueue<PeripheralManagerState.Effect>()
        // How this manager hangs on to BlueZ; changed on the loop alone.
        var observation: Observation?
        var choice: AdapterChoice
        /// The adapter in use, while there is one.
        var adapter: ObjectKey?
        /// The adapter that what we have in BlueZ is meant for, also while that is gone.
        var place: ObjectKey?
        var timers: [PeripheralManagerState.Timer: TimerID] = [:]
        var served: [ServiceRegistry.Number: Served] = [:]
        var adding: [ServiceRegistry.Number: [Promise<Void>]] = [:]
        var aired: [AdvertisingRegistry.Number: Aired] = [:]
        /// What BlueZ advertises for us, until it has confirmed the end.
        var onAir: [AdvertisingRegistry.Number: Advertising] = [:]
        var stopping: [AdvertisingRegistry.Stop: Promise<Void>] = [:]
        /// What an earlier run advertised.
        var restored: AdvertisingData?
        /// What was kept has been read: from now on it may be written.
        var isKeeping = false
        var roll = CentralRoll()
        /// The manager has ended: nothing more is begun.
        var isClosed = false
        var standing = Standing()
        private var lastNumber: UInt64 = 0

        init(choice: AdapterChoice) { self.choice = choice }

        /// Where to register: an adapter that went between the decision and this moment is waited for there.
        var target: ObjectKey? { adapter ?? place }

        mutating func makeNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    let options: PeripheralManagerOptions
    let client: BlueZClient
    let core: Locked<Core>
    /// Where promises are completed; `nil` for the loop itself. A serial queue on top of the user's, which may be
    /// concurrent and would deliver in any order.
    private let queue: DispatchQueue?
    private let statePromise = StreamPromise<ManagerState>(capacity: 1)
    let capabilitiesPromise = StreamPromise<BluetoothCapabilities>(capacity: 1)
    /// Where the state is kept; `nil` where it is not.
    let keeper: StateKeeper<PeripheralRestorationState>?
    let restoredPromise = Promise<PeripheralAdvertisements>()
    let centralPromise = StreamPromise<[Central]>(capacity: 1)

    init(queue: DispatchQueue?, options: PeripheralManagerOptions) {
        self.queue = queue.map { DispatchQueue(label: "bluecap.peripheral-manager", target: $0) }
        self.options = options
        keeper = options.restoreIdentifier.map { StateKeeper(identifier: $0, folder: options.stateFolder) }
        client = BlueZClient.shared(at: options.busAddress)
        core = Locked(Core(choice: AdapterChoice(wanted: options.adapter)))
    }

    var loop: any EventLoop { client.loop }
    var stateStream: FutureStream<ManagerState> {
        tryAgain()
        return statePromise.stream
    }
    var centralStream: FutureStream<[Central]> { centralPromise.stream }
    var managerState: ManagerState {
        tryAgain()
        return core.withLock { $0.state.managerState }
    }
    var stateExplanation: String { standing.explanation }

    /// The state, and why it is that: both of one moment.
    var standing: (state: ManagerState, explanation: String) {
        core.withLock { ($0.state.managerState, options.problem?.description ?? $0.standing.explanation) }
    }

    // MARK: Beginning and end; any thread

    func open() {
        if let shortage = loop.start() { fail(shortage) }
        let observation = client.observe(self)
        core.withLock { $0.observation = observation }
    }

    /// Takes everything back, and leaves the client last, when that is under way.
    func close() {
        var hasTakenOver = false
        decide { core in
            core.isClosed = true
            hasTakenOver = core.isKeeping
            return core.state.endAll()
        }
        endRestoration(hasTakenOver)
        loop.post {
            self.drain()
            let observation = self.core.withLock { core in
                defer { core.observation = nil }
                return core.observation
            }
            self.complete {
                self.statePromise.finish()
                self.centralPromise.finish()
                self.capabilitiesPromise.finish()
            }
            observation?.cancel()
        }
    }

    func reset() {
        decide { core in
            core.standing = Standing()
            return core.state.reset()
        }
        loop.post { [self] in
            drain()
            let old = core.withLock { core in
                defer { core.observation = nil }
                (core.adapter, core.place) = (nil, nil)
                return core.observation
            }
            guard client.availability == .ready else {
                // The last one who leaves has the way to BlueZ begun anew.
                old?.cancel()
                return open()
            }
            // Without leaving the bus: others may be using it.
            open()
            old?.cancel()
            client.reload()
        }
    }

    // MARK: Without a thread

    /// As with `CentralSession`.
    private func fail(_ shortage: LoopShortage) {
        let effects = core.withLock { core in
            core.standing.reach = Explanation.of(.noBus(DBusError(shortage)))
            return core.state.event(.reached(.noBus))
        }
        // Here, since a queue may need a thread, too.
        for case .announce(let state) in effects { statePromise.success(state) }
    }

    /// If there could be no thread before, there may be one now: then all that has waited for it begins.
    private func tryAgain() { _ = loop.start() }

    // MARK: Deciding

    /// Has `decision` made under the lock, and what follows from it done on the loop.
    func decide(_ decision: (inout Core) -> [PeripheralManagerState.Effect]) {
        tryAgain()
        let mustWake = core.withLock { core in
            core.effects.pending += decision(&core)
            return core.effects.mustWake()
        }
        if mustWake { loop.post { self.drain() } }
    }

    /// The same for what must not begin any more once the manager has ended. Answers whether it was decided.
    func decideIfOpen(_ decision: (inout Core) -> [PeripheralManagerState.Effect]) -> Bool {
        var isOpen = false
        decide { core in
            isOpen = !core.isClosed
            return isOpen ? decision(&core) : []
        }
        return isOpen
    }

    /// On the loop: does what is pending, and what comes to be pending meanwhile.
    func drain() {
        var effects: [PeripheralManagerState.Effect] = []
        while true {
            effects.removeAll(keepingCapacity: true)
            core.withLock { $0.effects.take(into: &effects) }
            guard !effects.isEmpty else { return }
            for effect in effects { perform(effect) }
        }
    }

    // MARK: Doing; on the loop

    private func perform(_ effect: PeripheralManagerState.Effect) {
        switch effect {
        case .announce(let state): complete { self.statePromise.success(state) }
        case .startTimer(let timer, let seconds): start(timer, after: seconds)
        case .cancelTimer(let timer): cancel(timer)
        case .service(let effect): perform(effect)
        case .advertising(let effect): perform(effect)
        case .restored: tellRestored()
        }
        // Whatever is kept changes with one of these, though not with each.
        switch effect {
        case .service, .advertising: keepSoon()
        case .announce, .startTimer, .cancelTimer, .restored: break
        }
    }

    /// Completes promises where this manager's user wants it.
    func complete(_ work: @escaping @Sendable () -> Void) {
        if let queue { queue.async(execute: work) } else { work() }
    }

    func start(_ timer: PeripheralManagerState.Timer, after seconds: TimeInterval) {
        let id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            core.withLock { $0.timers[timer] = nil }
            if timer == .keeping { return keepNow() }
            decide { $0.state.fired(timer) }
        }
        if let old = core.withLock({ $0.timers.updateValue(id, forKey: timer) }) { loop.cancel(old) }
    }

    private func cancel(_ timer: PeripheralManagerState.Timer) {
        if let id = core.withLock({ $0.timers.removeValue(forKey: timer) }) { loop.cancel(id) }
    }
}
