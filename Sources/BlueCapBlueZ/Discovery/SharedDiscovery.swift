import BlueCapDBus
import BlueCapFutures
import BlueCapReactor

/// One discovery session for each adapter, shared among any number of scans.
///
/// On the loop only, and unchecked because of that.
package final class SharedDiscovery: @unchecked Sendable {
    private struct Scan {
        let adapter: ObjectKey
        let handler: @Sendable (ScanEvent) -> Void
    }

    /// An adapter's machine with its timers.
    ///
    /// Kept as long as the client is in use, also at rest: its numbers for requests continue, so that a late reply never
    /// matches a new request.
    private final class Session: @unchecked Sendable {
        var machine = DiscoveryMachine()
        let timers: [DiscoveryMachine.Timer: LoopTimer]
        /// Completions of scans that have ended, called when BlueZ has confirmed it.
        var waiting: [@Sendable () -> Void] = []
        /// Whether the adapter has received an advertisement since the last event of the machine.
        var hasReceived = false

        init(on loop: any EventLoop) {
            timers = [.retry: LoopTimer(on: loop), .watchdog: LoopTimer(on: loop)]
        }
    }

    /// Seconds for a call: longer than the kernel takes to start or stop a scan, shorter than people wait.
    private static let callTimeout = 10.0

    private let daemon: DaemonLink
    private let loop: any EventLoop
    private var sessions: [ObjectKey: Session] = [:]
    private var scans: [ScanID: Scan] = [:]

    init(_ daemon: DaemonLink) {
        self.daemon = daemon
        loop = daemon.loop
    }

    // MARK: Scans

    /// How many scans there are.
    var scanCount: Int { scans.count }

    /// Starts a scan, or adds it to what the adapter discovers already.
    ///
    /// The adapter need not be there or on: the scan waits for it, and survives its absence.
    /// - Parameters:
    ///   - watchdogSeconds: The seconds without any report after which the session is started again; `nil` for never.
    ///   - handler: Called on the loop with the scan's events, never before this method returns.
    package func start(
        on adapter: ObjectKey, filter: DiscoveryFilter, watchdogSeconds: Double? = 90,
        handler: @escaping @Sendable (ScanEvent) -> Void
    ) -> ScanID {
        daemon.requireLoop()
        let id = ScanID(daemon.makeID())
        scans[id] = Scan(adapter: adapter, handler: handler)
        makeSession(of: adapter)
        run(adapter) { $0.scanAdded(DiscoveryMachine.Scan(id: id, filter: filter, watchdogSeconds: watchdogSeconds)) }
        return id
    }

    private func makeSession(of adapter: ObjectKey) {
        guard sessions[adapter] == nil else { return }
        sessions[adapter] = Session(on: loop)
        if daemon.objects[adapter: adapter]?.isPowered == true { run(adapter) { $0.poweredOn() } }
    }

    /// Pauses all scans of the process on an adapter, as many controllers need it while they connect; or resumes them, without
    /// an event. On the loop only.
    func setPaused(_ isPaused: Bool, on adapter: ObjectKey) {
        if isPaused { makeSession(of: adapter) }
        run(adapter) { $0.paused(isPaused) }
    }

    /// Stops a scan, and with the adapter's last one its session. The handler is not called any more.
    ///
    /// - Parameter completion: Called on the loop, never before this method returns, once BlueZ has confirmed the session's
    ///   end, or the narrower filter if other scans remain; or once there is no daemon to confirm it.
    package func stop(_ id: ScanID, completion: @escaping @Sendable () -> Void = {}) {
        daemon.requireLoop()
        guard let scan = scans.removeValue(forKey: id), let session = sessions[scan.adapter] else {
            return loop.post(completion)
        }
        session.waiting.append(completion)
        run(scan.adapter) { $0.scanRemoved(id) }
    }

    // MARK: The end of the client

    func stopAll() {
        for id in scans.keys.ordered(by: { $0.rawValue < $1.rawValue }) { stop(id) }
    }

    /// Whether no call and no timer is under way; if not, `completion` is called when one adapter's are done.
    func isSettled(orWhenChanged completion: @escaping @Sendable () -> Void) -> Bool {
        guard let unsettled = sessions.values.first(where: { !$0.machine.isSettled }) else { return true }
        unsettled.waiting.append(completion)
        return false
    }

    /// Stops everything without waiting for BlueZ.
    func close() {
        stopAll()
        for session in sessions.values {
            for timer in session.timers.values { timer.cancel() }
            completeWaiting(session)
        }
        sessions = [:]
    }

    // MARK: Changes

    /// An adapter has received an advertisement.
    func received(on adapter: ObjectKey) {
        if !sessions.isEmpty { sessions[adapter]?.hasReceived = true }
    }

    func adapterAdded(_ adapter: ObjectKey) { adapterChanged(adapter, .isPowered) }

    func adapterChanged(_ adapter: ObjectKey, _ fields: Adapter1.Fields) {
        guard let values = daemon.objects[adapter: adapter] else { return }
        // Power first: a controller that was switched off has stopped discovering, as expected.
        if fields.contains(.isPowered) { run(adapter) { values.isPowered ? $0.poweredOn() : $0.adapterLost() } }
        if fields.contains(.isDiscovering) { run(adapter) { $0.discoveringChanged(values.isDiscovering) } }
    }

    func adapterRemoved(_ adapter: ObjectKey) { run(adapter) { $0.adapterLost() } }

    // MARK: Effects

    private func run(
        _ adapter: ObjectKey, _ event: (inout DiscoveryMachine) -> [DiscoveryMachine.Effect]
    ) {
        guard let session = sessions[adapter] else { return }
        // Not passed to the machine at each report: it matters to the next event only.
        if session.hasReceived { session.machine.received() }
        session.hasReceived = false
        for effect in event(&session.machine) { perform(effect, on: adapter, session) }
        if session.machine.isSettled { completeWaiting(session) }
    }

    private func completeWaiting(_ session: Session) {
        guard !session.waiting.isEmpty else { return }
        let waiting = session.waiting
        session.waiting = []
        loop.post { for completion in waiting { completion() } }
    }

    private func perform(_ effect: DiscoveryMachine.Effect, on adapter: ObjectKey, _ session: Session) {
        switch effect {
        case .call(let request, let call): self.call(call, request, on: adapter)
        case .startTimer(let timer, let seconds):
            session.timers[timer]?.start(after: seconds) { [weak self] in self?.run(adapter) { $0.timerFired(timer) } }
        case .cancelTimer(let timer):
            session.timers[timer]?.cancel()
        case .report(let id, let event):
            // Never inside a call of the scan's owner.
            loop.post { [weak self] in
                guard let self, let scan = scans[id] else { return }
                if case .failed = event { scans[id] = nil }
                scan.handler(event)
            }
        }
    }

    private func call(_ call: DiscoveryMachine.Call, _ request: DiscoveryMachine.RequestID, on adapter: ObjectKey) {
        let number = daemon.connectionNumber
        let acceptsServices = daemon.objects[adapter: adapter]?.capabilities.acceptsServiceFilter ?? false
        let (member, body): (String, (inout MessageWriter) -> Void) =
            switch call {
            case .setFilter(let filter?):
                ("SetDiscoveryFilter", { filter.write(to: &$0, withServices: acceptsServices) })
            case .setFilter(nil): ("SetDiscoveryFilter", { $0.dictionary(key: "s", value: "v") { _ in } })
            case .startDiscovery: ("StartDiscovery", { _ in })
            case .stopDiscovery: ("StopDiscovery", { _ in })
            }
        daemon.call(
            adapter, interface: BlueZName.adapter, member: member, timeout: Self.callTimeout, body: body
        ) { [weak self] result in
            // A reply over an earlier connection concerns a session that ended with it.
            guard let self, daemon.connectionNumber == number else { return }
            run(adapter) { $0.replied(request, error: result.failure) }
        }
    }
}
