import BlueCapBlueZ
import Dispatch
import Foundation
import BlueCapFutures
import BlueCapReactor

/// Owns the lock and the state of a `CentralManager` and its `Peripheral`s, and executes the orders that the state
/// returns.
final class CentralSession: ManagerSession {
    typealias Core = CentralCore

    struct TimerKey: Hashable {
        /// Zero for timers of the manager.
        var peripheral = PeripheralKey(rawValue: 0)
        let timer: Order.Timer
    }

    /// Settles an operation with its outcome. It is called on the context that completes the manager's promises. It is
    /// a structure because storing and removing a bare function in a dictionary would allocate each time.
    struct Completion: Sendable {
        let peripheral: PeripheralKey
        let hasLimit: Bool
        let settle: @Sendable (Order.Outcome) -> Void
    }

    /// A weak reference for closures. They share this one: a weak reference of each closure's own would cost an
    /// allocation.
    // Unchecked: it is set once, before the session can be used; the runtime reads and clears weak references on any thread.
    final class Reference: Sendable {
        nonisolated(unsafe) fileprivate(set) weak var session: CentralSession?
    }

    let profileManager: ProfileManager?
    let configuration: CentralManager.Configuration
    let problem: CentralManagerError?
    let client: BlueZClient
    let core: Locked<Core>
    let queue: DispatchQueue?
    let keeper: StateKeeper<RestorationState>?
    let restoredPromise = Promise<RestoredCentral>()
    /// On the loop only.
    private let limits: TimeLimits
    let reference = Reference()
    let log: CentralLog?

    init(
        queue: DispatchQueue?, profileManager: ProfileManager?,
        _ options: (CentralManager.Configuration, problem: String?)
    ) {
        configuration = options.0
        problem = options.problem.map { .invalidOption($0) }
        self.queue = queue.map { DispatchQueue(label: "bluecap.manager", target: $0) }
        self.profileManager = profileManager
        log = configuration.logger.map { CentralLog($0) }
        keeper = StateKeeper(identifier: configuration.restoreIdentifier, folder: configuration.stateDirectory)
        client = BlueZClient.shared(at: configuration.busAddress, notesIn: configuration.stateDirectory)
        limits = TimeLimits(client.loop) { [reference] in reference.session?.exceeded($0) }
        core = Locked(
            CentralCore(configuration, seed: UInt64(client.loop.date.timeIntervalSinceReferenceDate.bitPattern)))
        reference.session = self
    }

    var date: Date { loop.date }
    /// The current streams of the manager itself.
    var streams: ManagerStreams { core.withLock { $0.streams } }

    // MARK: End

    func end(_ core: inout Core) -> RestorationState? {
        // A state that has not been restored yet stays in its file.
        let kept =
            core.restored == nil
            ? configuration.keepsLinks ? core.state.kept : RestorationState(bonds: core.state.keptBonds) : nil
        core.state.stopScans(into: &core.shell.orders)
        core.state.closePeripherals(keepingLinks: configuration.keepsLinks, into: &core.shell.orders)
        return kept
    }

    func finish() {
        let (all, streams, states) = core.withLock { core in
            core.state.forgetAll { client.daemon.readDevice($0) { PeripheralRecord.LastValues($0) } }
            return (core.state.peripherals.removeObjects(), core.streams, core.shell.streams)
        }
        let changes = all.uses.map { $0.release().changes }
        complete {
            for streams in changes { streams.finish() }
            streams.finish()
            states.finish()
        }
        for use in all.uses { end(use) }
        endPairing()
    }

    /// Ends the streams of the manager itself, and replaces them for later calls. The new streams begin with the state
    /// that the reset announces.
    func invalidate() {
        let ended = core.withLock { core -> (ManagerStreams, StateStreams)? in
            guard !core.shell.isClosed else { return nil }
            defer { (core.streams, core.shell.streams) = (ManagerStreams(), StateStreams()) }
            return (core.streams, core.shell.streams)
        }
        guard let ended else { return }
        complete {
            ended.0.finish()
            ended.1.finish()
        }
        reset()
    }

    // MARK: Executing; on the loop

    func perform(_ orders: [Order]) {
        var index = orders.startIndex
        var mayChangeKept = false
        while index < orders.endIndex {
            let order = orders[index]
            if order.subject.peripheral.rawValue != 0 { mayChangeKept = true }
            switch order.action {
            case .discovered(_, let scan), .sighted(_, let scan, _):
                index = report(orders, from: index, to: scan)
                continue
            case .startScan, .endScan: mayChangeKept = true
            default: break
            }
            log?.note(order, of: self)
            perform(order)
            index += 1
        }
        if mayChangeKept { keepSoon() }
    }

    private func perform(_ order: Order) {
        let subject = order.subject
        let key = subject.peripheral
        let completion = core.withLock { core -> Completion? in
            core.counter.count(order, of: core.state.peripherals.use(of: key), by: loop)
            return if case .settle(let id, _) = order.action { core.completions.remove(id) } else { nil }
        }
        switch order.action {
        case .startTimer(let timer, let seconds): start(TimerKey(peripheral: key, timer: timer), after: seconds)
        case .cancelTimer(let timer): cancel(TimerKey(peripheral: key, timer: timer))
        case .limit(let id, let seconds): limits.add(id, of: key, seconds: seconds)
        case .settle(let id, let outcome):
            guard let completion else { return }
            if completion.hasLimit { limits.remove(id) }
            if let queue { queue.async { completion.settle(outcome) } } else { completion.settle(outcome) }

        case .announce(let state): announce(state)
        case .startScan: syncDiscovery()
        // Successive sightings are delivered together.
        case .discovered, .sighted: break
        case .endScan(let scan, let error):
            guard let ended = core.withLock({ $0.scans.remove(scan) }) else { return }
            if let discovery = ended.discovery { stop(discovery) }
            complete { ended.stream.finish(error) }
        case .expired(let key):
            let (peripheral, promise) = core.withLock { core in
                (core.state.peripherals[objectOf: key], core.streams.expiries)
            }
            if let peripheral { complete { promise.success(peripheral) } }
        case .drop(let key):
            // It may have been listed again since this was decided.
            let objects = core.withLock { core in
                core.state.peripherals.read(key, { $0.isListed }) == true ? nil : core.state.peripherals.weaken(key)
            }
            withExtendedLifetime(objects) {}

        case .callConnect(let attempt, let pausesScans):
            connect(key, attempt, subject.device, pausesScans: pausesScans)
        case .cancelConnect: cancelConnect(key)
        case .callDisconnect: disconnect(key, subject.device)
        case .seek: seek(key)
        case .stopSeeking: if let id = use(of: key, { $0.searches.popLast() }) { client.discovery.stop(id) {} }
        case .awaitReplies:
            guard let device = subject.device else { return }
            client.connector.fence(device) { [weak self] in self?.decideHere(key) { $0.repliesCame(into: &$1) } }
        case .report(let number, let report):
            let stream = use(of: key) { $0.connections[number] }
            if let stream { complete { stream.report(report) } }
        case .finishStream(let number):
            let stream = use(of: key) { $0.connections.removeValue(forKey: number) }
            if let stream { complete { stream.finish() } }
        case .linkWentUp: break
        case .linkWentDown(let loss): linkWentDown(key, loss)
        case .forget: forget(key)
        case .endUse: if let use = core.withLock({ $0.state.endUse(of: key) }) { end(use) }

        case .fence(let link):
            guard let device = subject.device else { return }
            client.connector.readMTU(of: device)
            client.connector.fence(device) { [weak self] in
                self?.decideHere(key) { $0.attributes.fencePassed(link: link, into: &$1) }
            }
        case .readTable(let link):
            guard let device = subject.device else { return }
            let exported = client.withTree { ExportedAttributes(of: device, in: $0) }
            decide(key) { $0.attributes.tableRead(exported, link: link, into: &$1) }
        case .read(let id, let handle, let offset, let limit):
            guard let attribute = subject.key(of: handle) else { return replied(id, of: key, .failure(.noSuchObject)) }
            client.readValue(attribute, offset: offset, timeout: limit) { [client, reference] reply in
                let value = client.readEnded(attribute, offset: offset, reply)
                reference.session?.replied(id, of: key, value.map { $0 })
            }
        case .write(let id, let handle, let data, let type, let offset, let limit):
            guard let attribute = subject.key(of: handle) else { return replied(id, of: key, .failure(.noSuchObject)) }
            client.daemon.writeValue(attribute, data, type: type, offset: offset, timeout: limit) {
                [reference] reply in
                reference.session?.replied(id, of: key, reply.done.map { nil })
            }
        case .release(let ids): releaseAttributes(ids, of: key)
        case .servicesChanged:
            let (promise, peripheral) = core.withLock {
                ($0.state.peripherals.use(of: key)?.changes.ofServices, $0.state.peripherals[objectOf: key])
            }
            if let promise, let peripheral { complete { promise.success(peripheral) } }

        case .subscribe(let call, let transport, let afterGap, let isRepeated):
            subscribe(call, over: transport, afterGap: afterGap, isRepeated: isRepeated, subject)
        case .subscribed: break
        case .unsubscribe(let call): unsubscribe(call, subject)
        case .deliver(let failure): deliver(failure, subject)
        case .finishNotifications(let failure):
            endNotifications(subject.characteristic, of: key, failure: failure?.error)

        case .askForConsent, .callPair, .cancelPairing, .removeDevice, .setTrusted, .noteShortLinks, .reportPairing,
            .rejectRequests, .cancelRequests:
            performPairing(order.action, of: key)

        case .beginRun(let id): use(of: key) { $0.runs[id] }?.begin()
        case .stopRun(let id): use(of: key) { $0.runs.removeValue(forKey: id) }?.stop()
        }
    }

    private func replied(_ id: OperationID, of key: PeripheralKey, _ result: Result<Data?, BlueZError>) {
        decideHere(key, isOperation: true) { $0.attributes.replied(id, result, at: loop.now, into: &$1) }
    }

    private func exceeded(_ operations: TimeLimits.Operations) {
        let obstacles = operations.map { obstacle(of: $0.peripheral) }
        decide { core in
            for ((id, peripheral), obstacle) in zip(operations, obstacles) where core.state.hasState(of: peripheral) {
                core.decide(peripheral) { $0.timedOut(id, obstacle, into: &$1) }
            }
        }
    }

    /// Delivers successive sightings of one scan to its stream together, so that a handler is called once for all of
    /// them. Returns the index of the order after them.
    private func report(_ orders: [Order], from start: Int, to scan: ScanNumber) -> Int {
        var end = start
        var sighted: [Scans.Stream.Sighting] = []
        sighted.reserveCapacity(orders.count - start)
        let stream = core.withLock { core -> Scans.Stream? in
            loop: while end < orders.endIndex {
                switch orders[end].action {
                case .discovered(let key, scan): sighted.append((core.state.peripherals.hold(key, in: self), nil))
                case .sighted(let key, scan, let data):
                    sighted.append((core.state.peripherals.hold(key, in: self), data))
                default: break loop
                }
                end += 1
            }
            core.counter.reported(sighted.count)
            return core.scans[scan]
        }
        if let log { for order in orders[start..<end] { log.note(order, of: self) } }
        // The scan may have been stopped since.
        if let stream { complete { [sighted] in stream.send(sighted) } }
        return end
    }

    // MARK: Operations; any thread

    /// Applies a decision to a peripheral's state. Returns false if the manager has ended.
    @discardableResult
    func decide(_ key: PeripheralKey, _ decision: (inout PeripheralState, inout Orders) -> Void) -> Bool {
        decideIfOpen { $0.decide(key, decision) }
    }

    /// Applies a decision to the state of a peripheral that the application has used.
    func decideIfUsed(_ key: PeripheralKey, _ decision: (inout PeripheralState, inout Orders) -> Void) {
        decide { core in if core.state.hasState(of: key) { core.decide(key, decision) } }
    }

    /// Starts an operation of a peripheral.
    ///
    /// The future is completed exactly once: when the operation is settled, or at once if the manager has ended. An operation that
    /// ``awaiting(_:)`` starts is withdrawn if the task is cancelled.
    /// - Parameters:
    ///   - timeout: The time limit in seconds.
    ///   - limitsItself: Whether the decision orders the time limit.
    ///   - isOperation: Whether it is an operation on an attribute.
    ///   - value: The result of the operation if it succeeds; `nil` if `convert` finds it in the outcome.
    func operation<T: Sendable>(
        on key: PeripheralKey, timeout: TimeInterval, limitsItself: Bool = false, isOperation: Bool = false,
        yielding value: T? = nil, converting convert: (@Sendable (Order.Outcome) -> T?)? = nil,
        _ decision: (inout PeripheralState, OperationID, inout Orders) -> Void
    ) -> Future<T> {
        let future = Future<T>()
        let completion = Completion(peripheral: key, hasLimit: timeout.isFinite) { outcome in
            if case .failed(let failure) = outcome {
                future.complete(.failure(failure.error))
            } else if let value = value ?? convert?(outcome) {
                future.complete(.success(value))
            } else {
                future.complete(.failure(PeripheralError.disconnected))
            }
        }
        var id = OperationID.none
        let isAccepted = decideIfOpen { core in
            id = core.makeOperation()
            core.completions[id] = completion
            core.decide(key, isOperation: isOperation) {
                if timeout.isFinite, !limitsItself { $1.append(.limit(id, max(0, timeout))) }
                decision(&$0, id, &$1)
            }
        }
        if !isAccepted { complete { completion.settle(.failed(.peripheral(.disconnected))) } }
        Withdrawal.current?.register { [reference, id] in reference.session?.withdraw(id, of: key) ?? false }
        return future
    }

    /// Ends an operation whose caller no longer waits. Returns false if its outcome is about to be delivered.
    private func withdraw(_ id: OperationID, of key: PeripheralKey) -> Bool {
        var isUnsettled = false
        decideIfUsed(key) { isUnsettled = $0.withdraw(id, into: &$1) }
        return isUnsettled
    }

    /// Applies a decision to a peripheral's state on the loop, outside any report, and executes the orders at once.
    func decideHere(
        _ key: PeripheralKey, isOperation: Bool = false, _ decision: (inout PeripheralState, inout Orders) -> Void
    ) {
        let mustDrain = core.withLock { core in
            guard core.state.hasState(of: key) else { return false }
            core.decide(key, isOperation: isOperation, decision)
            return core.shell.mustWake()
        }
        if mustDrain { drain() }
    }

    /// Reads or changes what the manager has of a peripheral; `nil` if the application has not used it. Any thread.
    @discardableResult
    func use<R>(of key: PeripheralKey, _ body: (PeripheralUse) -> R?) -> R? {
        core.withLock { $0.state.peripherals.use(of: key).flatMap(body) }
    }

    /// Reads the table of a peripheral's attributes; `nil` if the application has not used the peripheral.
    func attributes<R>(_ key: PeripheralKey, _ body: (borrowing AttributeTable) -> R?) -> R? {
        use(of: key) { body($0.state.attributes.table) }
    }

    // MARK: Peripherals; any thread

    /// Reads a peripheral's device in place; `nil` if no data of it are known.
    ///
    /// - Parameter body: Runs under locks, and must not call the application's code.
    func read<R>(_ key: PeripheralKey, _ body: (borrowing Device1) -> R?) -> R? {
        readRecord(key) { $0.read(in: client.daemon, body) }
    }

    /// Returns the address that a peripheral has now: a bond replaces a private one.
    func presentAddress(of key: PeripheralKey) -> PeripheralKey { core.withLock { $0.state.presentAddress(of: key) } }

    /// Reads the record of a peripheral on the list.
    func readRecord<R>(_ key: PeripheralKey, _ body: (borrowing PeripheralRecord.Listing) -> R?) -> R? {
        core.withLock { $0.state.peripherals.read(key, body) }
    }

    /// Handles the release of a peripheral's object.
    func released(_ key: PeripheralKey) {
        var (successor, released): (Peripheral?, PeripheralUse.Released?)
        decide { core in
            successor = core.state.peripherals[objectOf: key]
            if successor == nil { released = core.state.release(key, into: &core.shell.orders) }
        }
        if let changes = released?.changes { complete { changes.finish() } }
        withExtendedLifetime((successor, released)) {}
    }

    /// Ends what a manager has of a peripheral without a state: no subscription is resumed.
    private func end(_ use: PeripheralUse) {
        finish(use.removeSinks())
        end(use.removeWriters(), .disconnected)
        use.rssiPoll.take()?.end()
    }

    // MARK: Restoration

    func restore(_ kept: RestorationState) { _ = decideIfOpen { $0.restore(kept, in: self) } }

    func reportRestored() {
        if let reason = keeper?.failure { log?.restorationFailed(reason) }
        var restored = RestoredCentral()
        decide { restored = $0.completeRestoration(in: self) }
        complete { [restored] in self.restoredPromise.success(restored) }
    }
}

extension Orders: OrderQueue {
    var areCalls: Bool {
        pending.allSatisfy { order in
            switch order.action {
            case .limit, .read, .write: true
            default: false
            }
        }
    }
}

/// The restored state of a central manager, as values and objects.
struct RestoredCentral: Sendable {
    var peripherals: [Peripheral] = []
    var scan: ScanRequest?
}

/// The streams of a central manager, except those of its state. Each call of a manager's function returns the same
/// stream.
struct ManagerStreams {
    let expiries = StreamPromise<Peripheral>(capacity: 0)
    let restarts = StreamPromise<ScanRestart>(capacity: 0)
    let pairingRequests = StreamPromise<PairingRequest>(capacity: 0)

    func finish() {
        expiries.finish()
        restarts.finish()
        pairingRequests.finish()
    }
}

extension FutureStream {
    /// A finished stream without elements.
    static var ended: FutureStream<T> {
        let promise = StreamPromise<T>(capacity: 0)
        promise.finish()
        return promise.stream
    }

    /// Returns a finished stream with one failure.
    static func failed(_ error: any Error) -> FutureStream<T> {
        let promise = StreamPromise<T>(capacity: 1)
        promise.failure(error)
        promise.finish()
        return promise.stream
    }
}
