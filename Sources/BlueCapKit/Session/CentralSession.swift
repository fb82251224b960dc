import BlueZ
import DBus
import Dispatch
import Foundation
import Futures
import GATT
import Reactor

/// What stands behind a `CentralManager` and its `Peripheral`s: one lock around `CentralState`, and the hands that do
/// what it decides.
///
/// Whoever asks for something, on any thread, has it decided under the lock; what follows is queued there, in order,
/// and done on the loop, where the bus is. The lock is a leaf: under it nobody else's code runs and nothing is waited
/// for.
final class CentralSession: Sendable {
    struct Core {
        var state: CentralState
        /// How this manager hangs on to BlueZ; changed on the loop alone.
        var link: Link
        var handles = HandleTable()
        /// The handles of services, characteristics and descriptors, by their peripherals.
        var attributeHandles: [PeripheralKey: AttributeHandles] = [:]
        /// Who watches the services of a peripheral.
        var serviceStreams: [PeripheralKey: StreamPromise<Peripheral>] = [:]
        /// Who receives the notifications of a characteristic.
        var sinks: [NotificationChannels.Subject: [NotificationSink]] = [:]
        /// Sockets for writing, while somebody holds them.
        var writers: [PeripheralKey: [WeakWriter]] = [:]
        /// Sockets for writing that BlueZ is asked for.
        var writerRequests: [PeripheralKey: [OperationID: Promise<CharacteristicWriter>]] = [:]
        /// The streams of scans, until they end.
        var scans: [ScanNumber: StreamPromise<Peripheral>] = [:]
        /// Those of scans that want each report's own data.
        var reportScans: [ScanNumber: StreamPromise<ScanReport>] = [:]
        var rangings: [ScanNumber: StreamPromise<BeaconSighting>] = [:]
        var effects = EffectQueue<CentralState.Effect>()
        /// The time at which the present batch of messages is heard, once it was asked for.
        var batchTime: Instant?
        var timers: [CentralState.Timer: TimerID] = [:]
        /// The streams of the manager itself; ``CentralManager/invalidate()`` replaces them.
        var streams = ManagerStreams()
        /// What users wait for, until it is settled.
        var completions: [OperationID: Completion] = [:]
        private var lastOperation: UInt64 = 0
        /// The streams of calls of `connect`, until they end.
        var connections: [ConnectionName: ConnectionStream] = [:]
        var connectionHands: [PeripheralKey: ConnectionHands] = [:]
        var rssiPolls: [PeripheralKey: RSSIPoll] = [:]
        /// The runs that wait or are at work.
        var runs: [OperationID: PeripheralRun] = [:]
        /// What an earlier run has kept, until it is told.
        var restored: RestorationState?
        /// What was kept has been read: from now on it may be written.
        var isKeeping = false
        /// The manager has ended: nothing more is begun.
        var isClosed = false
        var standing = Standing()

        init(state: CentralState, link: Link) {
            self.state = state
            self.link = link
        }

        mutating func makeOperation(_ completion: @escaping Completion) -> OperationID {
            let id = nameOperation()
            completions[id] = completion
            return id
        }

        /// For those whose completion has to know the name.
        mutating func nameOperation() -> OperationID {
            lastOperation += 1
            return OperationID(rawValue: lastOperation)
        }
    }

    let profileManager: ProfileManager?
    let options: ManagerOptions
    let client: BlueZClient
    let core: Locked<Core>
    /// On the loop only.
    let channels = NotificationChannels()
    /// Where the state is kept; `nil` where it is not.
    let keeper: RestorationKeeper?
    let restoredPromise = Promise<Restored>()
    /// Where promises are completed; `nil` for the loop itself. A serial queue on top of the user's, which may be
    /// concurrent and would deliver in any order.
    private let queue: DispatchQueue?

    init(queue: DispatchQueue?, profileManager: ProfileManager?, options: ManagerOptions) {
        self.queue = queue.map { DispatchQueue(label: "bluecap.manager", target: $0) }
        self.profileManager = profileManager
        self.options = options
        keeper = options.restoreIdentifier.map { RestorationKeeper(identifier: $0, folder: options.stateFolder) }
        client = BlueZClient.shared(at: options.busAddress)
        core = Locked(
            Core(
                state: CentralState(
                    maximumPeripherals: options.maximumPeripherals,
                    backOffSeed: UInt64(client.loop.date.timeIntervalSinceReferenceDate.bitPattern)),
                link: Link(choice: AdapterChoice(wanted: options.adapter))))
    }

    var loop: any EventLoop { client.loop }
    var date: Date { loop.date }
    /// The streams of the manager itself, as they are at the moment.
    var streams: ManagerStreams { core.withLock { $0.streams } }
    var stateStream: FutureStream<ManagerState> {
        tryAgain()
        return streams.states.stream
    }

    // MARK: Without a thread

    /// There is no thread to talk to the bus on. To be called before anything else is decided: nothing else is announced
    /// meanwhile.
    func fail(_ shortage: LoopShortage) {
        let effects = core.withLock { core in
            core.standing.reach = Explanation.of(.noBus(DBusError(shortage)))
            return core.state.event(.reached(.noBus))
        }
        // Here, since a queue may need a thread, too.
        for case .announce(let state) in effects { streams.states.success(state) }
    }

    /// If there could be no thread before, there may be one now: then all that has waited for it begins.
    func tryAgain() { _ = loop.start() }

    // MARK: Deciding

    /// Has `decision` made under the lock, and what follows from it done on the loop.
    func decide(_ decision: (inout Core) -> [CentralState.Effect]) {
        tryAgain()
        let mustWake = core.withLock { core in
            core.effects.pending += decision(&core)
            return core.effects.mustWake()
        }
        if mustWake { loop.post { self.drain() } }
    }

    /// The same for what must not begin any more once the manager has ended. Answers whether it was decided.
    func decideIfOpen(_ decision: (inout Core) -> [CentralState.Effect]) -> Bool {
        let (isOpen, mustWake) = core.withLock { core in
            guard !core.isClosed else { return (false, false) }
            core.effects.pending += decision(&core)
            return (true, core.effects.mustWake())
        }
        if mustWake { loop.post { self.drain() } }
        return isOpen
    }

    /// On the loop: does what is pending, and what comes to be pending meanwhile.
    func drain() {
        var effects: [CentralState.Effect] = []
        while true {
            effects.removeAll(keepingCapacity: true)
            core.withLock { core in
                core.effects.take(into: &effects)
            }
            guard !effects.isEmpty else { return }
            perform(effects)
        }
    }

    // MARK: Doing

    private func perform(_ effects: [CentralState.Effect]) {
        var index = effects.startIndex
        while index < effects.endIndex {
            switch effects[index] {
            case .discovered(_, let scan):
                index = report(effects, from: index, to: { $0.scans[scan] }) { effect, core in
                    guard case .discovered(let key, scan) = effect else { return nil }
                    return core.handles.hold(key) { Peripheral(session: self, key: key) }
                }
            case .reported(_, let scan, _):
                index = report(effects, from: index, to: { $0.reportScans[scan] }) { effect, core in
                    guard case .reported(let key, scan, let data) = effect else { return nil }
                    return ScanReport(
                        peripheral: core.handles.hold(key) { Peripheral(session: self, key: key) }, date: data.date,
                        rssi: data.rssi, advertisements: data.advertisements)
                }
            default:
                perform(effects[index])
                index += 1
            }
        }
    }

    /// Passes a run of sightings of one scan to its stream at once, so that a handler is woken once for all of them.
    /// `element` returns `nil` for the first effect that is not of the run. Returns where the run ends.
    private func report<T: Sendable>(
        _ effects: [CentralState.Effect], from start: Int, to stream: (Core) -> StreamPromise<T>?,
        _ element: (CentralState.Effect, inout Core) -> T?
    ) -> Int {
        var end = start
        var sighted: [T] = []
        sighted.reserveCapacity(effects.count - start)
        let promise = core.withLock { core -> StreamPromise<T>? in
            while end < effects.endIndex, let next = element(effects[end], &core) {
                sighted.append(next)
                end += 1
            }
            return stream(core)
        }
        // The scan may have been stopped since; then nobody wants to hear of it.
        if let promise { complete { [sighted] in promise.success(contentsOf: sighted) } }
        return end
    }

    private func perform(_ effect: CentralState.Effect) {
        switch effect {
        case .announce(let state):
            let promise = streams.states
            complete { promise.success(state) }
        case .startScan(let scan, let request): discover(scan, request)
        case .stopScan(let scan): discover(scan, nil)
        case .startTimer(let timer, let seconds): start(timer, after: seconds)
        case .cancelTimer(let timer): cancel(timer)
        case .discovered, .reported: break
        case .ranged(let key, let scan, let beacon): report(beacon, from: key, to: scan)
        case .finish(let scan, let error): finish(scan, error)
        case .expired(let key):
            let (handle, promise) = core.withLock { ($0.handles[key], $0.streams.expiries) }
            guard let handle else { return }
            complete { promise.success(handle) }
        case .drop(let key):
            // It may have been listed again since this was decided.
            let handles = core.withLock { core -> (Peripheral?, [AnyObject]?) in
                guard core.state.read(key, { $0.isListed }) != true else { return (nil, nil) }
                return (core.handles.letGo(key), core.attributeHandles[key]?.letGoOfAll())
            }
            withExtendedLifetime(handles) {}
        case .peripheral(let key, let effect):
            perform(effect, of: key)
        case .restored:
            tellRestored()
        }
        // Whatever is kept changes with one of these, though not with each.
        switch effect {
        case .startScan, .stopScan, .peripheral: keepSoon()
        case .announce, .startTimer, .cancelTimer, .discovered, .reported, .ranged, .finish, .expired, .drop,
            .restored:
            break
        }
    }

    private func finish(_ scan: ScanNumber, _ error: CentralManagerError?) {
        let (promise, reports, ranging) = core.withLock {
            (
                $0.scans.removeValue(forKey: scan), $0.reportScans.removeValue(forKey: scan),
                $0.rangings.removeValue(forKey: scan)
            )
        }
        complete {
            if let error {
                promise?.failure(error)
                reports?.failure(error)
                ranging?.failure(error)
            }
            promise?.finish()
            reports?.finish()
            ranging?.finish()
        }
    }

    /// Nothing comes any more to those who watch the manager.
    func finishStreams() {
        let (services, streams) = core.withLock { core in
            defer { core.serviceStreams = [:] }
            return (core.serviceStreams.sorted { $0.key < $1.key }.map(\.value), core.streams)
        }
        complete {
            for promise in services { promise.finish() }
            streams.finish()
        }
    }

    /// Ends the streams of the manager itself, and replaces them for later calls. The new ones begin with the state that
    /// the reset announces.
    func invalidate() {
        let ended = core.withLock { core -> ManagerStreams? in
            guard !core.isClosed else { return nil }
            defer { core.streams = ManagerStreams() }
            return core.streams
        }
        guard let ended else { return }
        complete { ended.finish() }
        reset()
    }

    /// Completes promises where this manager's user wants it.
    func complete(_ work: @escaping @Sendable () -> Void) {
        if let queue { queue.async(execute: work) } else { work() }
    }

    // MARK: Timers

    func start(_ timer: CentralState.Timer, after seconds: TimeInterval) {
        let id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            core.withLock { $0.timers[timer] = nil }
            if timer == .keeping { return keepNow() }
            decide { $0.state.fired(timer, at: self.loop.now) }
        }
        if let old = core.withLock({ $0.timers.updateValue(id, forKey: timer) }) { loop.cancel(old) }
    }

    func cancel(_ timer: CentralState.Timer) {
        if let id = core.withLock({ $0.timers.removeValue(forKey: timer) }) { loop.cancel(id) }
    }
}

/// The streams that tell of the manager itself. Every call of a manager's function answers the same one.
struct ManagerStreams {
    let states = StreamPromise<ManagerState>(capacity: 1)
    let expiries = StreamPromise<Peripheral>(capacity: 0)
    let restarts = StreamPromise<ScanRestart>(capacity: 0)
    let capabilities = StreamPromise<BluetoothCapabilities>(capacity: 1)

    func finish() {
        states.finish()
        expiries.finish()
        restarts.finish()
        capabilities.finish()
    }
}
