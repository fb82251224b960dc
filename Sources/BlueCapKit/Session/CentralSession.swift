import BlueZ
import DBus
import Dispatch
import Foundation
import Futures
import GATT
import Reactor

/// Owns the lock and the state of a `CentralManager` and its `Peripheral`s, and executes the orders that the state gives.
///
/// A call of the application, on any thread, is decided under the lock; the orders are queued there and executed on the
/// loop, where the bus is. The lock is a leaf: no other code runs under it, and nothing is waited for.
final class CentralSession: Sendable {
    struct TimerKey: Hashable {
        let peripheral: PeripheralKey
        let timer: Order.Timer

        /// Identifies a timer of the manager.
        init(_ timer: Order.Timer, of peripheral: PeripheralKey = PeripheralKey(rawValue: 0)) {
            self.peripheral = peripheral
            self.timer = timer
        }
    }

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
        var sinks: [CharacteristicKey: [NotificationSink]] = [:]
        /// Sockets for writing, while somebody holds them.
        var writers: [PeripheralKey: [WeakWriter]] = [:]
        /// Sockets for writing that BlueZ is asked for.
        var writerRequests: [PeripheralKey: [OperationID: Promise<CharacteristicWriter>]] = [:]
        /// The streams of scans, until they end.
        var scans: [ScanNumber: StreamPromise<Peripheral>] = [:]
        /// Those of scans that want each report's own data.
        var reportScans: [ScanNumber: StreamPromise<ScanReport>] = [:]
        var rangings: [ScanNumber: StreamPromise<BeaconSighting>] = [:]
        var orders = Orders()
        /// The time at which the present batch of messages is heard, once it was asked for.
        var batchTime: Instant?
        var timers: [TimerKey: TimerID] = [:]
        /// The streams of the manager itself; ``CentralManager/invalidate()`` replaces them.
        var streams = ManagerStreams()
        /// What users wait for, until it is settled.
        var completions: [OperationID: Completion] = [:]
        private var lastOperation: UInt64 = 0
        /// The streams of calls of `connect`, until they end.
        var connections: [ConnectionName: ConnectionStream] = [:]
        var connectionCalls: [PeripheralKey: ConnectionCalls] = [:]
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

        mutating func makeOperation() -> OperationID {
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

    /// No thread is available for the bus. Called before any other decision.
    func fail(_ shortage: LoopShortage) {
        var orders = Orders()
        core.withLock { core in
            core.standing.reach = Explanation.of(.noBus(DBusError(shortage)))
            core.state.event(.reached(.noBus), into: &orders)
        }
        // Here, since a queue may need a thread, too.
        for order in orders.list { if case .announce(let state) = order.action { streams.states.success(state) } }
    }

    /// If no thread was available before, one may be now: then everything that has waited for it begins.
    func tryAgain() { _ = loop.start() }

    // MARK: Deciding

    /// Decides under the lock, and has the orders executed on the loop.
    func decide(_ decision: (inout Core) -> Void) {
        tryAgain()
        let mustWake = core.withLock { core in
            decision(&core)
            return core.orders.mustWake()
        }
        if mustWake { loop.post { self.drain() } }
    }

    /// Decides something that must not begin after the end of the manager. Returns false if the manager has ended.
    func decideIfOpen(_ decision: (inout Core) -> Void) -> Bool {
        let (isOpen, mustWake) = core.withLock { core in
            guard !core.isClosed else { return (false, false) }
            decision(&core)
            return (true, core.orders.mustWake())
        }
        if mustWake { loop.post { self.drain() } }
        return isOpen
    }

    /// Executes all orders, including those that are given in the meantime. On the loop.
    func drain() {
        var orders: [Order] = []
        while true {
            orders.removeAll(keepingCapacity: true)
            core.withLock { $0.orders.take(into: &orders) }
            guard !orders.isEmpty else { return }
            execute(orders)
        }
    }

    // MARK: Executing

    private func execute(_ orders: [Order]) {
        var index = orders.startIndex
        var mayChangeKept = false
        while index < orders.endIndex {
            let order = orders[index]
            if order.subject.peripheral.rawValue != 0 { mayChangeKept = true }
            switch order.action {
            case .discovered(_, let scan):
                index = report(orders, from: index, to: { $0.scans[scan] }) { action, core in
                    guard case .discovered(let key, scan) = action else { return nil }
                    return core.handles.hold(key) { Peripheral(session: self, key: key) }
                }
                continue
            case .reported(_, let scan, _):
                index = report(orders, from: index, to: { $0.reportScans[scan] }) { action, core in
                    guard case .reported(let key, scan, let data) = action else { return nil }
                    return ScanReport(
                        peripheral: core.handles.hold(key) { Peripheral(session: self, key: key) }, date: data.date,
                        rssi: data.rssi, advertisements: data.advertisements)
                }
                continue
            case .startScan, .stopScan:
                mayChangeKept = true
                execute(order)
            default:
                execute(order)
            }
            index += 1
        }
        if mayChangeKept { keepSoon() }
    }

    /// Delivers successive sightings of one scan to its stream together, so that a handler is called once for all of them.
    /// `element` returns `nil` for the first order that is no such sighting. Returns the index of that order.
    private func report<T: Sendable>(
        _ orders: [Order], from start: Int, to stream: (Core) -> StreamPromise<T>?,
        _ element: (Order.Action, inout Core) -> T?
    ) -> Int {
        var end = start
        var sighted: [T] = []
        sighted.reserveCapacity(orders.count - start)
        let promise = core.withLock { core -> StreamPromise<T>? in
            while end < orders.endIndex, let next = element(orders[end].action, &core) {
                sighted.append(next)
                end += 1
            }
            return stream(core)
        }
        // The scan may have been stopped since.
        if let promise { complete { [sighted] in promise.success(contentsOf: sighted) } }
        return end
    }

    private func execute(_ order: Order) {
        let subject = order.subject
        let key = subject.peripheral
        switch order.action {
        case .startTimer(let timer, let seconds): start(TimerKey(timer, of: key), after: seconds)
        case .cancelTimer(let timer): cancel(TimerKey(timer, of: key))
        case .settle(let id, let outcome):
            guard let completion = core.withLock({ $0.completions.removeValue(forKey: id) }) else { return }
            if let queue { queue.async { completion(outcome) } } else { completion(outcome) }

        case .announce(let state):
            let promise = streams.states
            complete { promise.success(state) }
        case .startScan(let scan, let request): discover(scan, request)
        case .stopScan(let scan): discover(scan, nil)
        case .discovered, .reported: break
        case .ranged(let key, let scan, let beacon): report(beacon, from: key, to: scan)
        case .finishScan(let scan, let error): finish(scan, error)
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
        case .restored: completeRestoration()

        case .callConnect(let attempt): connect(key, attempt, subject.device)
        case .cancelConnect: cancelConnect(key)
        case .callDisconnect: disconnect(key, subject.device)
        case .seek: seek(key)
        case .stopSeeking: stopSeeking(key)
        case .pauseScan: pauseScan(key)
        case .resumeScan: resumeScan(key)
        case .report(let number, let report): self.report(report, to: ConnectionName(key: key, number: number))
        case .reportFailure(let number, let refusal):
            let stream = core.withLock { $0.connections[ConnectionName(key: key, number: number)] }
            if let stream { complete { stream.fail(refusal.error) } }
        case .finishStream(let number):
            let stream = core.withLock {
                $0.connections.removeValue(forKey: ConnectionName(key: key, number: number))
            }
            if let stream { complete { stream.finish() } }
        case .linkWentUp:
            core.withLock { core in
                core.state.updateState(of: key) { $0.statistics.connected(at: loop.date) }
            }
        case .linkWentDown(let loss): linkWentDown(key, loss)
        case .forget: forget(key)

        case .fence(let device, let link):
            client.connector.fence(device) { [weak self] in
                self?.decideHere(key) { $0.attributes.fencePassed(link: link, into: &$1) }
            }
        case .readTable(let device, let link): readTable(of: device, of: key, link: link)
        case .read(let id, let attribute, let offset): read(attribute, offset: offset, for: id, of: key)
        case .write(let id, let attribute, let data, let type, let offset):
            write(data, to: attribute, type, offset: offset, for: id, of: key)
        case .release(let ids): releaseAttributes(ids, of: key)
        case .servicesChanged:
            let (promise, peripheral) = core.withLock { ($0.serviceStreams[key], $0.handles[key]) }
            guard let promise, let peripheral else { return }
            complete { promise.success(peripheral) }

        case .callStart(let call): startNotifying(call, subject)
        case .acquire(let call): acquireNotifications(call, subject)
        case .callStop(let call): stopNotifying(call, subject)
        case .closeSocket(let call): if let attribute = subject.attribute { channels.closeSocket(of: attribute, call) }
        case .openGate(let transport, let afterGap): openGate(transport, afterGap: afterGap, subject)
        case .markGap: markGap(subject)
        case .closeGate: closeGate(subject)
        case .deliver(let failure): deliver(failure, subject)
        case .finishNotifications(let failure): finishNotifications(failure, subject)

        case .beginRun(let id): core.withLock { $0.runs[id] }?.begin()
        case .stopRun(let id): core.withLock { $0.runs.removeValue(forKey: id) }?.stop()
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

    func start(_ key: TimerKey, after seconds: TimeInterval) {
        let id = loop.schedule(after: seconds) { [weak self] in
            guard let self else { return }
            core.withLock { $0.timers[key] = nil }
            if key.timer == .keeping { return keepNow() }
            decide { $0.state.fired(key.timer, of: key.peripheral, at: self.loop.now, into: &$0.orders) }
        }
        if let old = core.withLock({ $0.timers.updateValue(id, forKey: key) }) { loop.cancel(old) }
    }

    private func cancel(_ key: TimerKey) {
        if let id = core.withLock({ $0.timers.removeValue(forKey: key) }) { loop.cancel(id) }
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
