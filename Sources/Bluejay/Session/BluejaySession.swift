import BlueCapKit
import Dispatch
import Foundation

/// The implementation of a ``Bluejay``: owns the lock and the machine, and performs the machine's effects.
///
/// A request is decided under the lock, on any thread. Its effects are performed without the lock, in the order of the
/// decisions, by one thread at a time: the one that finds no other at work. User code is called on the callback queue, or
/// on the thread of the background task if it belongs to that.
final class BluejaySession: Swift.Sendable {
    typealias Outcome = BluejayMachine.Outcome
    typealias Effect = BluejayMachine.Effect

    /// An observer of one kind, from its registration on.
    private final class Registration {
        /// The protocol.
        let kind: Any.Type
        /// Identifies the observer without retaining it: its last reference must not be released under the lock.
        let identity: ObjectIdentifier
        private(set) weak var observer: AnyObject?

        init(_ observer: AnyObject, as kind: Any.Type) {
            (self.observer, self.kind, identity) = (observer, kind, ObjectIdentifier(observer))
        }
    }

    private struct Core {
        var machine = BluejayMachine()
        var manager: CentralManager?
        /// The peripheral that is or was connected last, or is being connected.
        var peripheral: Peripheral?
        var listens: [CharacteristicIdentifier: Listen] = [:]
        /// The listens that wait for the connection to come back.
        var restoredListens: [Listen] = []
        /// Cancels the handler of the manager's pairing requests; `nil` if there is none.
        var requestWatch: CancelToken?
        /// The peripheral whose pairing and services are followed.
        var followed: Peripheral?
        /// The services of this connection when they were read last; `nil` until then.
        var services: [Service]?
        /// In the order of their registration.
        var registrations: [Registration] = []
        weak var handler: (any DisconnectHandler)?
        var restoration = Restoration(.disable)
        /// The peripherals that scans have found, which can be connected also after BlueZ has removed them. Bounded,
        /// because a scan may run for days.
        var discovered: [UUID: Peripheral] = [:]
        var task: SynchronizedPeripheral?
        /// The effects with the observers that were registered when they were decided. An observer that registers later
        /// receives the present state instead, so it receives each event once.
        var pending: [(effect: Effect, observers: [Registration])] = []
        var isDraining = false

        /// The peripheral if it is connected.
        var connected: Peripheral? { machine.connection == .connected ? peripheral : nil }

        /// The observers of one kind, also those that have been deallocated since the last event.
        func observers(_ kind: Any.Type) -> [Registration] { registrations.filter { $0.kind == kind } }

        /// Adds an observer at the end; one that is registered already moves there.
        mutating func add(_ observer: AnyObject, as kind: Any.Type) {
            remove(observer, as: kind)
            registrations.append(Registration(observer, as: kind))
        }

        mutating func remove(_ observer: AnyObject, as kind: Any.Type) {
            registrations.removeAll { $0.kind == kind && $0.identity == ObjectIdentifier(observer) }
        }
    }

    private let core = Locked(Core())
    private let callbackQueue: DispatchQueue
    /// Of all handlers: a stream has at most one of them at a time.
    private let token = CancelToken()
    /// The thread of background tasks.
    private let taskQueue = DispatchQueue(label: "bluejay.background-task")
    private static let ownTask = DispatchSpecificKey<ObjectIdentifier>()

    init(callbackQueue: DispatchQueue) {
        // A serial queue on top of the user's, which may be concurrent and would call back in any order. The main queue is
        // used itself, so that code on it runs on the main thread.
        self.callbackQueue =
            callbackQueue === DispatchQueue.main
            ? callbackQueue : DispatchQueue(label: "bluejay.callbacks", target: callbackQueue)
        taskQueue.setSpecific(key: Self.ownTask, value: ObjectIdentifier(self))
    }

    // MARK: State

    func state<R>(_ property: (BluejayMachine) -> R) -> R { core.withLock { property($0.machine) } }

    var manager: CentralManager? { core.withLock { $0.manager } }
    var peripheral: Peripheral? { core.withLock { $0.peripheral } }
    var isRestorationEnabled: Bool { core.withLock { $0.machine.isStarted && $0.restoration.identifier != nil } }

    var handler: (any DisconnectHandler)? {
        get { core.withLock { $0.handler } }
        set { core.withLock { $0.handler = newValue } }
    }

    private var isInsideTask: Bool { DispatchQueue.getSpecific(key: Self.ownTask) == ObjectIdentifier(self) }

    /// Whether this background task is running, and this is its thread.
    func isInside(_ task: SynchronizedPeripheral) -> Bool {
        isInsideTask && core.withLock { $0.task === task && $0.machine.isTaskRunning }
    }

    /// The origin of a request that the application makes on this thread.
    private var caller: BluejayMachine.Caller { isInsideTask ? .insideTask : .application }

    // MARK: Decisions

    /// Decides under the lock, and performs the effects unless another thread does already.
    private func update(_ decision: (inout Core) -> [Effect]) {
        let mustDrain = core.withLock { core in
            let effects = decision(&core)
            let observers = core.observers((any ConnectionObserver).self)
            core.pending += effects.map { ($0, observers) }
            guard !core.pending.isEmpty, !core.isDraining else { return false }
            core.isDraining = true
            return true
        }
        guard mustDrain else { return }
        while true {
            let pending = core.withLock { core in
                defer { core.pending = [] }
                core.isDraining = !core.pending.isEmpty
                return core.pending
            }
            if pending.isEmpty { return }
            for (effect, observers) in pending { perform(effect, observers) }
        }
    }

    func decide(_ event: (inout BluejayMachine) -> [Effect]) { update { event(&$0.machine) } }

    /// Makes a request of the application. `completion` is called once, on the callback queue.
    func request(_ work: Request.Work, completion: @escaping (Outcome) -> Void) {
        request(work, by: caller) { outcome in self.call { completion(outcome) } }
    }

    /// Makes a request of the application whose completion receives a result.
    func request<R: RequestResult>(
        _ work: Request.Work, _ completion: ((R) -> Void)?, _ success: @escaping (Data) throws -> R
    ) {
        request(work) { completion?(R($0, success)) }
    }

    /// Makes a request of the application that begins or ends the connection.
    func request<R: RequestResult>(
        forLink work: Request.Work, _ completion: ((R) -> Void)?, _ success: @escaping (Peripheral) -> R
    ) {
        request(work, by: caller) { outcome in
            let result = outcome.flatMap { _ in
                self.peripheral.map(Result.success) ?? .failure(BluejayError.notConnected)
            }
            self.call { completion?(R(result, success)) }
        }
    }

    func request(_ work: Request.Work, by caller: BluejayMachine.Caller, settle: @escaping (Outcome) -> Void) {
        decide { $0.requested(Request(work, settle: settle), by: caller) }
    }

    private func finished(_ request: Request, _ outcome: Outcome) { decide { $0.finished(request, outcome) } }

    private func perform(_ effect: Effect, _ observers: [Registration]) {
        switch effect {
        case .call(let work):
            work()
        case .begin(let request):
            begin(request)
        case .settle(let request, let outcome):
            if case .failure(let error) = outcome {
                log("A request has failed: \(error.localizedDescription)")
                if case .listen(let listen) = request.work { end(listen, with: error) }
            }
            request.settle(outcome)
        case .stop(let request):
            stop(request)
        case .endLink:
            log("Disconnecting.")
            peripheral?.disconnect()
        case .reconnect:
            log("Reconnecting.")
            if let peripheral { link(to: peripheral, timeout: .none) }
        case .tryAgain:
            log("The attempt to reconnect has failed; trying again.")
            peripheral?.reconnect()
        case .endListens(let error):
            endListens(error)
            endRestoration { $0.didFailToRestoreConnection(to: $1, error: error) }
        case .failTask(let error):
            // Unless that task has ended, and another one is running.
            core.withLock { $0.machine.taskFailure == nil ? nil : $0.task }?.fail(error)
        case .reportAvailability(let isAvailable):
            log(isAvailable ? "Bluetooth is available." : "Bluetooth is not available.")
            notify((any ConnectionObserver).self, observers) { $0.bluetoothAvailable(isAvailable) }
        case .reportConnected:
            reportConnected(observers)
        case .reportDisconnected(let error, let willReconnect):
            reportDisconnected(observers, error, willReconnect: willReconnect)
        }
    }

    // MARK: User code

    /// Calls user code, on the callback queue.
    func call(_ work: @escaping () -> Void) {
        // The application's closures are made on one thread and called on the callback queue alone, one at a time.
        nonisolated(unsafe) let work = work
        callbackQueue.async { work() }
    }

    /// Calls the observers of one kind, or those of `registrations` that are still registered.
    private func notify<Observer>(
        _ kind: Observer.Type, _ registrations: [Registration]? = nil, _ event: @escaping (Observer) -> Void
    ) {
        let registrations = registrations ?? core.withLock { $0.observers(kind) }
        guard !registrations.isEmpty else { return }
        call {
            for registration in registrations {
                // Each time, because an observer may remove the next one.
                guard self.core.withLock({ $0.registrations.contains { $0 === registration } }) else { continue }
                if let observer = registration.observer as? Observer {
                    event(observer)
                } else {
                    self.core.withLock { $0.registrations.removeAll { $0 === registration } }
                }
            }
        }
    }

    /// Sends a line to the log observers. The text is made only if there is one.
    private func log(_ text: @autoclosure @escaping () -> String) {
        notify((any LogObserver).self) { $0.debug(text()) }
    }

    // MARK: Start and stop

    /// - Parameter policy: `nil` for that of the manager.
    func start(_ mode: StartMode, observer: (any ConnectionObserver)?, pairing policy: PairingPolicy?) {
        guard !state(\.isStarted) else { return }
        if let observer { register(observer) }
        let manager: CentralManager
        var (restoration, peripheral) = (Restoration(.disable), Peripheral?.none)
        switch mode {
        case .new(let options):
            restoration = Restoration(options.backgroundRestore)
            var managerOptions = options.managerOptions
            managerOptions[CBCentralManagerOptionRestoreIdentifierKey] = restoration.identifier
            if let policy { managerOptions["CentralManagerOptionPairingPolicyKey"] = policy }
            manager = CentralManager(queue: nil, options: managerOptions, over: options.managerConfiguration)
        case .use(let existing, let connected):
            manager = existing
            if let policy { manager.pairingPolicy = policy }
            if connected?.state == .connected || connected?.state == .connecting { peripheral = connected }
        }
        // Released after the lock.
        var last: Core?
        defer { withExtendedLifetime(last) {} }
        update { core in
            // Another thread may have started it.
            guard !core.machine.isStarted else { return [] }
            last = core
            (core.manager, core.restoration) = (manager, restoration)
            let effects = core.machine.started() + [.call { self.follow(manager) }]
            guard let peripheral else { return effects }
            core.peripheral = peripheral
            return effects + core.machine.reconnect()
        }
    }

    private func follow(_ manager: CentralManager) {
        log("Started.")
        manager.whenStateChanges().onSuccess(context: ImmediateContext(), cancelToken: token) {
            [weak self, weak manager] state in
            guard state != .unknown else { return }
            self?.update { core in
                core.manager === manager ? core.machine.availabilityChanged(state == .poweredOn) : []
            }
        }
        followPairingRequests()
        if isRestorationEnabled { followRestoration(of: manager) }
    }

    /// Fails everything with `stopped`. Returns the manager, and the peripheral if it is connected.
    @discardableResult
    func stop() -> (manager: CentralManager, peripheral: Peripheral?)? {
        var state: (manager: CentralManager, peripheral: Peripheral?)?
        update { core in
            guard let manager = core.manager else { return [] }
            state = (manager, core.connected)
            // The effects of the stop need the manager and the peripheral.
            return core.machine.stopped() + [.call { self.forget(manager) }]
        }
        return state
    }

    private func forget(_ manager: CentralManager) {
        log("Stopped.")
        manager.whenStateChanges().cancel(token)
        if let watch = core.withLock({ $0.requestWatch.take() }) { manager.whenPairingIsRequested().cancel(watch) }
        let dropped = core.withLock { core -> Core? in
            // It may have been started again.
            guard core.manager === manager, !core.machine.isStarted else { return nil }
            let dropped = core
            (core.manager, core.peripheral, core.followed) = (nil, nil, nil)
            core.discovered = [:]
            return dropped
        }
        dropped?.followed.map(unfollow)
    }

    // MARK: The connection

    /// Returns the peripheral that a scan has found, or that BlueZ knows.
    private func peripheral(_ identifier: PeripheralIdentifier) -> Peripheral? {
        let (manager, known) = core.withLock { ($0.manager, $0.discovered[identifier.uuid]) }
        return known ?? manager?.retrievePeripherals(withIdentifiers: [identifier.uuid]).first
    }

    /// Connects; the machine receives what follows.
    private func link(to peripheral: Peripheral, timeout: Timeout) {
        let (attempt, last, followed) = core.withLock { core in
            defer { (core.peripheral, core.followed) = (peripheral, peripheral) }
            return (core.machine.attempt, core.peripheral, core.followed)
        }
        defer { withExtendedLifetime(last) {} }
        if followed !== peripheral {
            followed.map(unfollow)
            follow(peripheral)
        }
        let events: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> = peripheral.connect(
            timeoutRetries: 0, connectionTimeout: timeout.interval)
        events.onComplete(context: ImmediateContext()) { [weak self] event in
            self?.decide { machine in
                guard machine.attempt == attempt else { return [] }
                return switch event {
                case .success((_, .connect)): machine.linkWentUp()
                case .success((_, .disconnect)): machine.linkWentDown(isRequested: false)
                case .success((_, .forceDisconnect)): machine.linkWentDown(isRequested: true)
                case .success((_, .timeout)), .success((_, .giveUp)):
                    machine.linkFailed(BluejayError.connectionTimedOut)
                case .failure(let error): machine.linkFailed(BluejayError.documented(error))
                }
            }
        }
    }

    private func follow(_ peripheral: Peripheral) {
        peripheral.whenPairingChanges().onSuccess(context: ImmediateContext(), cancelToken: token) {
            [weak self, weak peripheral] change in
            guard let identifier = peripheral.map(PeripheralIdentifier.init) else { return }
            self?.notify((any PairingObserver).self) { $0.didChangePairing(of: identifier, to: change) }
        }
        peripheral.whenServicesChange().onSuccess(context: ImmediateContext(), cancelToken: token) {
            [weak self] _ in self?.readServices(haveChanged: true)
        }
    }

    private func unfollow(_ peripheral: Peripheral) {
        peripheral.whenPairingChanges().cancel(token)
        peripheral.whenServicesChange().cancel(token)
    }

    private func reportConnected(_ observers: [Registration]) {
        let (peripheral, listens) = core.withLock { core in
            defer { core.restoredListens = [] }
            return (core.peripheral, core.restoredListens)
        }
        guard let peripheral else { return }
        log("Connected to \(peripheral.name).")
        for listen in listens { request(.listen(listen), by: .application) { _ in } }
        readServices(haveChanged: false)
        endRestoration { $0.didRestoreConnection(to: $1) }
        notify((any ConnectionObserver).self, observers) { $0.connected(peripheral) }
    }

    private func reportDisconnected(_ observers: [Registration], _ error: (any Error)?, willReconnect: Bool) {
        guard let peripheral else { return }
        log("Disconnected from \(peripheral.name).\(error.map { " " + $0.localizedDescription } ?? "")")
        notify((any ConnectionObserver).self, observers) { $0.disconnected(peripheral) }
        call {
            let mode = self.handler?.didDisconnect(from: peripheral, with: error, willReconnect: willReconnect)
            self.decide { $0.handlerReturned(mode ?? .noChange) }
        }
    }

    // MARK: Requests

    /// Begins the work of a request, whose turn has come. The machine receives its end, at once or later.
    private func begin(_ request: Request) {
        switch request.work {
        case .scan(let scan):
            begin(scan, request)
        case .connect(let identifier, let timeout):
            guard let peripheral = peripheral(identifier) else {
                return decide { $0.linkFailed(BluejayError.unexpectedPeripheral(identifier)) }
            }
            link(to: peripheral, timeout: timeout)
        case .disconnect:
            break  // The effect `endLink` begins it.
        case .read(let identifier):
            perform(request, on: peripheral, of: identifier) { $0.read(identifier) }
        case .write(let data, let identifier, let type):
            perform(request, on: peripheral, of: identifier) { $0.write(data, to: identifier, type: type) }
        case .listen(let listen):
            subscribe(listen, request)
        case .endListen(let identifier, let error):
            perform(request, on: peripheral, of: identifier) { peripheral in
                if let listen = core.withLock({ $0.listens[identifier] }) { end(listen, with: error) }
                return peripheral.stopNotifications(identifier)
            }
        case .pair(let timeout):
            perform(request, on: peripheral) { $0.pair(timeout: timeout.interval) }
        case .unpair(let identifier):
            perform(request, on: peripheral(identifier), or: .unexpectedPeripheral(identifier)) { $0.unpair() }
        }
    }

    /// Ends the work of a request that was settled before its end.
    private func stop(_ request: Request) {
        switch request.work {
        case .scan:
            manager?.whenPeripheralsExpire().cancel(token)
            manager?.stopScanning()
            finished(request, .success(Data()))
        case .listen(let listen):
            peripheral?.stopNotifications(listen.identifier)
        case .pair:
            peripheral?.cancelPairing()
        case .connect, .disconnect, .read, .write, .endListen, .unpair:
            break
        }
    }

    /// Performs an operation, and finishes its request with the outcome, of which only bytes are a value of the request.
    ///
    /// - Parameters:
    ///   - identifier: The characteristic of the operation, for its errors.
    ///   - missing: The error if there is no peripheral.
    private func perform<T>(
        _ request: Request, on peripheral: Peripheral?, of identifier: CharacteristicIdentifier? = nil,
        or missing: BluejayError = .notConnected, _ operation: (Peripheral) -> Future<T>
    ) {
        guard let peripheral else { return finished(request, .failure(missing)) }
        operation(peripheral).onComplete(context: ImmediateContext()) { [weak self] result in
            switch result {
            case .success(let value): self?.finished(request, .success(value as? Data ?? Data()))
            case .failure(let error): self?.finished(request, .failure(BluejayError.documented(error, of: identifier)))
            }
        }
    }

    // MARK: Listens

    private func subscribe(_ listen: Listen, _ request: Request) {
        let identifier = listen.identifier
        let (peripheral, replaced) = core.withLock { core -> (Peripheral?, Listen?) in
            let replaced = core.listens[identifier]
            guard replaced?.option != .trap else { return (nil, nil) }
            core.listens[identifier] = listen
            return (core.peripheral, replaced)
        }
        perform(request, on: peripheral, of: identifier, or: .multipleListenTrapped) { peripheral in
            if let replaced { end(replaced, with: BluejayError.multipleListenReplaced) }
            let found = peripheral.characteristic(identifier, for: [.notify, .indicate])
            let subscription = found.flatMap(context: ImmediateContext()) { [self] in try subscribe(listen, to: $0) }
            subscription.onSuccess(context: ImmediateContext()) { [weak self] in
                // It may have been abandoned during the subscription.
                if self?.core.withLock({ $0.listens[identifier] == nil }) == true {
                    peripheral.stopNotifications(identifier)
                }
            }
            return subscription
        }
    }

    private func subscribe(_ listen: Listen, to characteristic: Characteristic) throws -> Future<Void> {
        let stream: FutureStream<Data?> = characteristic.receiveNotificationUpdates(capacity: 0)
        try core.withLock { _ in
            if listen.isEnded { throw BluejayError.cancelled }
            listen.stream = stream
        }
        stream.onComplete(context: ImmediateContext(), cancelToken: token) { [weak self] element in
            switch element {
            case .success(let data):
                let value = data.map(Outcome.success) ?? .failure(CharacteristicError.notificationsInterrupted)
                // Under the lock, so that no value follows the end.
                self?.core.withLock { _ in if !listen.isEnded { listen.receive(value) } }
            case .failure(let error):
                self?.end(listen, with: BluejayError.documented(error, of: listen.identifier))
            }
        }
        return characteristic.startNotifying()
    }

    /// Ends the values of a listen, with at most one error. Returns whether they had not ended.
    @discardableResult
    private func end(_ listen: Listen, with error: (any Error)?) -> Bool {
        let (isFirst, stream) = core.withLock { core in
            defer { (listen.isEnded, listen.stream) = (true, nil) }
            if core.listens[listen.identifier] === listen { core.listens[listen.identifier] = nil }
            if !listen.isEnded, let error { listen.receive(.failure(error)) }
            return (!listen.isEnded, listen.stream)
        }
        stream?.cancel(token)
        return isFirst
    }

    /// Ends a listen outside the queue, if it cannot have a turn any more.
    func abandon(_ listen: Listen) {
        if end(listen, with: nil) { peripheral?.stopNotifications(listen.identifier) }
    }

    /// Ends all listens: the connection has ended, or Bluejay has stopped.
    private func endListens(_ error: any Error) {
        let (last, isStarted) = core.withLock { core in
            defer { (core.services, core.listens, core.restoredListens) = (nil, [:], []) }
            return (core, core.machine.isStarted)
        }
        let listens = Array(last.listens.values) + last.restoredListens
        // The order of a dictionary differs between processes.
        for listen in listens.sorted(by: { $0.identifier.description < $1.identifier.description }) {
            end(listen, with: error)
            // Else BlueCapKit would subscribe again on the next connection. After a stop the subscriptions remain for the
            // next owner of the manager.
            guard isStarted else { continue }
            last.peripheral?.stopNotifications(listen.identifier)
            last.peripheral?.forgetRestoredSubscription(to: listen.identifier)
        }
    }

    func isListening(to identifier: CharacteristicIdentifier) throws -> Bool {
        try core.withLock { core in
            guard core.machine.connection == .connected else { throw BluejayError.notConnected }
            return core.listens[identifier].map { !$0.isUnhandled } ?? false
        }
    }

    // MARK: Scans

    private func begin(_ scan: Scan, _ request: Request) {
        guard let manager else { return finished(request, .failure(BluejayError.stopped)) }
        if scan.allowsDuplicates, scan.expired != nil {
            manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext(), cancelToken: token) {
                [weak self] peripheral in
                let identifier = PeripheralIdentifier(peripheral)
                self?.follow(request) { scan.hasExpired(identifier) }
            }
        }
        // The end of a Bluejay scan's duration is no error, unlike the time-out of a manager's scan.
        if scan.duration > 0, scan.duration.isFinite {
            _ = manager.timer(after: scan.duration) { [weak self, weak request] in
                // It may have ended already.
                if let request { self?.decide { $0.ended(request, .success(Data())) } }
            }
        }
        let stream = manager.startScanning(
            forServiceUUIDs: scan.services, options: ScanOptions(allowsDuplicates: scan.allowsDuplicates))
        stream.onComplete(context: ImmediateContext()) { [weak self] element in
            guard let self else { return }
            switch element {
            case .success(let peripheral):
                let discovery = ScanDiscovery(peripheral)
                let dropped = core.withLock { core in
                    let dropped = core.discovered.count < 4096 ? [:] : core.discovered
                    if !dropped.isEmpty { core.discovered = [:] }
                    core.discovered[discovery.peripheralIdentifier.uuid] = peripheral
                    return dropped
                }
                follow(request) { scan.hasDiscovered(discovery) }
                withExtendedLifetime(dropped) {}
            case .failure(let error):
                self.manager?.whenPeripheralsExpire().cancel(token)
                finished(request, .failure(error))
            }
        }
    }

    /// Performs the action that the application returns, on the callback queue, unless the scan has ended.
    private func follow(_ request: Request, _ action: @escaping () -> ScanAction) {
        call {
            guard self.state({ $0.isScanning(for: request) }) else { return }
            let action = action()
            switch action {
            case .continue, .blacklist: return
            case .stop, .connect: self.decide { $0.ended(request, .success(Data())) }
            }
            guard case .connect(let discovery, let completion) = action else { return }
            let work = Request.Work.connect(discovery.peripheralIdentifier, discovery.connectionTimeout)
            self.request(forLink: work, completion) { .success($0) }
        }
    }

    // MARK: Background tasks

    /// Runs `work` on the thread of background tasks.
    func run<R>(
        _ work: @escaping @Sendable (SynchronizedPeripheral) throws -> R,
        _ completion: @escaping (RunResult<R>) -> Void
    ) {
        let (caller, task) = (caller, SynchronizedPeripheral(session: self))
        let refusal = core.withLock { core in
            let refusal = core.machine.taskRequested(by: caller)
            if refusal == nil { core.task = task }
            return refusal
        }
        if let refusal { return call { completion(.failure(refusal)) } }
        // Called on the callback queue alone.
        nonisolated(unsafe) let completion = completion
        taskQueue.async { [self] in
            let result = RunResult(Result { try work(task) }) { .success($0) }
            update { core in
                // The completion precedes the reports that the task has deferred.
                [.call { self.call { completion(result) } }] + (core.task === task ? core.machine.taskEnded() : [])
            }
            task.end()
            core.withLock { if $0.task === task { $0.task = nil } }
        }
    }

    /// Waits until the background task waits for Bluetooth, or there is none.
    func awaitBackgroundTask(limit: TimeInterval) -> Bool {
        core.withLock { $0.task }?.awaitStillness(limit: limit) ?? true
    }

    // MARK: Restoration

    private func followRestoration(of manager: CentralManager) {
        let restoration: Future<(peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])> =
            manager.whenStateRestored()
        restoration.onSuccess(context: ImmediateContext()) { [weak self, weak manager] in
            self?.restored($0.peripherals, by: manager)
        }
        restoration.onFailure(context: ImmediateContext()) { [weak self, weak manager] error in
            // A manager that is released before it has restored fails too.
            guard let self, let manager, self.manager === manager, isRestorationEnabled else { return }
            log("Nothing was restored: \(manager.stateRestorationFailure ?? error.localizedDescription)")
        }
    }

    private func restored(_ peripherals: [Peripheral], by manager: CentralManager?) {
        guard let peripheral = peripherals.first else { return }
        // An identifier belongs to one Bluejay, which has one connection.
        for other in peripherals.dropFirst() { other.terminate() }
        let listens = peripheral.restoredSubscriptions
        var (isUsed, attempt) = (false, Int?.none)
        update { core in
            guard core.manager === manager, core.restoration.identifier != nil else { return [] }
            let effects = core.machine.reconnect()
            // The application may have connected the same peripheral, or asked for that.
            isUsed =
                !effects.isEmpty || core.machine.isConnecting(to: peripheral.identifier)
                || core.peripheral === peripheral && core.machine.connection.isThereOrTried
            guard isUsed else { return [] }
            if !effects.isEmpty {
                core.peripheral = peripheral
                if core.restoration.backgroundRestorer != nil { attempt = core.machine.attempt }
                core.restoration.attempt = attempt
            }
            // The restorer is asked before the connection is reported.
            return [.call { self.call { self.askRestorer(about: listens, of: peripheral) } }] + effects
        }
        guard isUsed else { return peripheral.terminate() }
        guard let attempt else { return }
        _ = manager?.timer(after: Restoration.limit) { [weak self] in
            // After that attempt it has no effect.
            self?.decide { $0.attempt == attempt ? $0.reconnectionTimedOut() : [] }
        }
    }

    /// Ends the restoration of the connection, if there is one, and reports it to the restorer.
    private func endRestoration(
        _ report: @escaping (any BackgroundRestorer, PeripheralIdentifier) -> BackgroundRestoreCompletion
    ) {
        let (attempt, peripheral) = core.withLock { ($0.restoration.attempt.take(), $0.peripheral) }
        guard attempt != nil, let peripheral else { return }
        call {
            guard let restorer = self.core.withLock({ $0.restoration.backgroundRestorer }) else { return }
            if case .callback(let work) = report(restorer, PeripheralIdentifier(peripheral)) { work() }
        }
    }

    /// Asks the restorer which listens stay. Called on the callback queue.
    private func askRestorer(about listens: [CharacteristicIdentifier], of peripheral: Peripheral) {
        let restorer = core.withLock { $0.restoration.listenRestorer }
        for identifier in listens {
            if let restorer, restorer.willRestoreListen(on: identifier) {
                if restorer.receivesUnhandledListens { restoreUnhandledListen(to: identifier, of: peripheral) }
                continue
            }
            peripheral.forgetRestoredSubscription(to: identifier)
            // BlueCapKit may have subscribed already, even before Bluejay has received the connection: so without a turn.
            peripheral.stopNotifications(identifier)
        }
    }

    func restoreListen(_ listen: Listen) {
        let waits = core.withLock { core in
            let waits = core.machine.connection != .connected && core.machine.willBeConnected
            if waits { core.restoredListens.append(listen) }
            return waits
        }
        // Without a connection or an attempt it fails.
        if !waits { request(.listen(listen), by: caller) { _ in } }
    }

    /// Restores a listen whose values go to the ``ListenRestorer`` until the application listens, unless it has restored
    /// the listen itself.
    private func restoreUnhandledListen(to identifier: CharacteristicIdentifier, of peripheral: Peripheral) {
        let isKnown = core.withLock { core in
            core.listens[identifier] != nil || core.restoredListens.contains { $0.identifier == identifier }
        }
        guard !isKnown else { return }
        let reported = PeripheralIdentifier(peripheral)
        let listen = Listen(identifier, .replaceable, isUnhandled: true) { [weak self] outcome in
            // The restorer does not receive the failure that ends the listen.
            guard let self, case .success(let value) = outcome else { return }
            call {
                let restorer = self.core.withLock { core in
                    // The application may listen now.
                    core.listens[identifier]?.isUnhandled == true ? core.restoration.listenRestorer : nil
                }
                let action: ListenRestoreAction? = restorer?.didReceiveUnhandledListen(
                    from: reported, on: identifier, with: value)
                if action == .stopListen { self.request(.endListen(identifier, nil), by: .application) { _ in } }
            }
        }
        restoreListen(listen)
    }

    // MARK: Observers

    func register(_ observer: AnyObject, as kind: Any.Type) {
        core.withLock { $0.add(observer, as: kind) }
        followPairingRequests()
        readServices(haveChanged: false)
    }

    func unregister(_ observer: AnyObject, as kind: Any.Type) { core.withLock { $0.remove(observer, as: kind) } }

    func register(_ observer: any ConnectionObserver) {
        update { core in
            core.add(observer, as: (any ConnectionObserver).self)
            let (isAvailable, peripheral) = (core.machine.isAvailable, core.connected)
            let newest = core.registrations.suffix(1)
            let report: () -> Void = {
                self.notify((any ConnectionObserver).self, Array(newest)) { observer in
                    if let isAvailable { observer.bluetoothAvailable(isAvailable) }
                    if let peripheral { observer.connected(peripheral) }
                }
            }
            return [.call(report)]
        }
    }

    func readRSSI() throws {
        let caller = caller
        let peripheral = try core.withLock { core -> Peripheral in
            if let refusal = core.machine.refusal(by: caller) { throw refusal }
            guard let peripheral = core.connected else { throw BluejayError.notConnected }
            return peripheral
        }
        let identifier = PeripheralIdentifier(peripheral)
        peripheral.readRSSI().onComplete(context: ImmediateContext()) { [weak self] result in
            let strength = NSNumber(value: result.value ?? 127)
            self?.notify((any RSSIObserver).self) {
                $0.didReadRSSI(from: identifier, RSSI: strength, error: result.error)
            }
        }
    }

    /// Follows the requests of pairings if there is an observer: BlueCapKit rejects a request without a handler.
    private func followPairingRequests() {
        let watch = CancelToken()
        let manager = core.withLock { core -> CentralManager? in
            guard core.machine.isStarted, core.requestWatch == nil, !core.observers((any PairingObserver).self).isEmpty
            else { return nil }
            core.requestWatch = watch
            return core.manager
        }
        manager?.whenPairingIsRequested().onSuccess(context: ImmediateContext(), cancelToken: watch) {
            [weak self, weak manager] request in
            if let manager { self?.giveToObservers(request, of: manager, watch) }
        }
    }

    /// Gives the request of a pairing to the observers. Without one, another handler answers it, or it is rejected.
    private func giveToObservers(_ request: PairingRequest, of manager: CentralManager, _ watch: CancelToken) {
        let registrations = core.withLock { core in
            core.requestWatch == watch ? core.observers((any PairingObserver).self) : []
        }
        guard case .peripheral(let peripheral) = request.peer, registrations.contains(where: { $0.observer != nil })
        else {
            core.withLock { if $0.requestWatch == watch { $0.requestWatch = nil } }
            manager.whenPairingIsRequested().cancel(watch)
            guard !manager.whenPairingIsRequested().isWatched(besides: watch) else { return }
            if registrations.isEmpty { request.decline() } else { request.reject() }
            return
        }
        log("The pairing with \(peripheral.name) needs an answer.")
        let identifier = PeripheralIdentifier(peripheral)
        notify((any PairingObserver).self) { $0.didReceivePairingRequest(request, from: identifier) }
    }

    /// Reads the services of the connected peripheral if there is an observer, and reports which are gone since they
    /// were read last.
    ///
    /// - Parameter haveChanged: Whether they are read again if they are known.
    private func readServices(haveChanged: Bool) {
        let peripheral = core.withLock { core in
            let isAsked = !core.observers((any ServiceObserver).self).isEmpty
            return isAsked && (haveChanged || core.services == nil) ? core.connected : nil
        }
        guard let peripheral else { return }
        let discovery: Future<Peripheral> = peripheral.discoverAllServices()
        discovery.onSuccess(context: ImmediateContext()) { [weak self] peripheral in
            let present = peripheral.services
            let known = self?.core.withLock { core -> [Service]? in
                guard core.connected === peripheral else { return nil }
                defer { core.services = present }
                return core.services
            }
            guard let self, let known, haveChanged else { return }
            let gone = known.filter { service in !present.contains { $0 === service } }
            let identifier = PeripheralIdentifier(peripheral)
            notify((any ServiceObserver).self) { observer in
                let invalidated = gone.map { ServiceIdentifier(uuid: $0.uuid) }
                observer.didModifyServices(from: identifier, invalidatedServices: invalidated)
            }
        }
    }
}
