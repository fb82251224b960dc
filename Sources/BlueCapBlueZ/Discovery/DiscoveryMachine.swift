/// Decides what one adapter's discovery session needs next, so that every scan of this process gets its reports.
///
/// BlueZ keeps one session and one filter per client and adapter: this machine shares them among any number of scans.
/// At most one call is under way at any time: BlueZ refuses `StopDiscovery` during a pending `StartDiscovery`, and calls in
/// an unknown order leave a session in an unknown state. After each reply the machine compares the session with the scans
/// and takes the next step.
///
/// No clock, no bus: time comes in as ``timerFired(_:)`` and calls go out as ``Effect``s.
struct DiscoveryMachine {
    typealias RequestID = UInt32

    /// How long to wait before each further attempt, in seconds; then the scans fail. Behaviour A3. A stop that is refused
    /// is tried again until it is not: the last of these is its interval.
    static let retryDelays: [Double] = [0.1, 0.25, 0.5, 1]
    /// The same after the adapter was lost during a session, or during the start of one. The kernel continues the discovery
    /// of a daemon that died, for the 10.24 s of its LE scan, and refuses the next daemon's until then (seen with 5.66 and
    /// 5.82 on 6.1).
    static let resumptionDelays: [Double] = [0.1, 0.25, 0.5, 1, 2, 3, 5]
    /// The watchdog looks this often within its time, so that silence is noticed at most a third late and no report
    /// ever has to touch a timer.
    private static let watchdogTicks = 3
    /// The largest factor by which restarts without a report extend the watchdog's time: there may be no devices in range.
    private static let longestWatchdogStretch = 8

    private(set) var session: Session = .unavailable
    /// In the order in which they were added.
    private(set) var scans: [Scan] = []

    private var isPaused = false

    /// The last call's number. The reply to an earlier one, which the loss of the adapter has overtaken, is ignored.
    private var lastRequest: RequestID = 0
    /// Whether BlueZ may hold a session for us: from a start on until a stop that was not refused.
    private var mayBeUp = false
    /// Whether the kernel may continue a discovery that we have started through a daemon that is gone, and a scan that ran
    /// then waits for it; false without scans.
    private var kernelMayDiscover = false
    /// Whether BlueZ keeps a filter of ours.
    private var hasFilter = false
    private var attempts = 0
    private var hasCleared = false
    /// Set from the moment a running session was lost until it is up again.
    private var restartReason: ScanRestartReason?
    private var silentTicks = 0
    private var watchdogStretch = 1
    private var fruitlessRestarts = 0
    /// Whether the daemon has refused a filter with `Pathloss`: the next ones have none.
    private var isPathlossRefused = false

    /// Whether no call is under way and no timer runs: the session suits the scans, or the adapter is not available.
    var isSettled: Bool {
        switch session {
        case .unavailable, .idle, .running: true
        case .settingFilter, .starting, .updatingFilter, .stopping, .clearingFilter, .waiting: false
        }
    }

    private var delays: [Double] { kernelMayDiscover ? Self.resumptionDelays : Self.retryDelays }

    /// Whether no discovery is needed: there are no scans, or they are paused.
    private var isRestWanted: Bool { scans.isEmpty || isPaused }

    private var wanted: DiscoveryFilter? {
        guard !isRestWanted else { return nil }
        var filter = DiscoveryFilter.union(scans.lazy.map(\.filter))
        if isPathlossRefused { filter.hasPathloss = false }
        return filter
    }

    // MARK: Scans

    mutating func scanAdded(_ scan: Scan) -> [Effect] {
        let watchdog = watchdogSeconds
        scans.append(scan)
        let effects = reconcile()
        guard case .running = session, watchdogSeconds != watchdog else { return effects }
        return effects + startWatchdog()
    }

    mutating func scanRemoved(_ id: ScanID) -> [Effect] {
        guard let index = scans.firstIndex(where: { $0.id == id }) else { return [] }
        scans.remove(at: index)
        if scans.isEmpty { kernelMayDiscover = false }
        return reconcile()
    }

    /// All scans rest, or go on as if nothing had happened.
    mutating func paused(_ isPaused: Bool) -> [Effect] {
        guard isPaused != self.isPaused else { return [] }
        self.isPaused = isPaused
        return reconcile()
    }

    // MARK: The adapter

    mutating func poweredOn() -> [Effect] {
        guard session == .unavailable else { return [] }
        session = .idle
        resetAttempts()
        return reconcile()
    }

    /// The adapter is off, or it, the daemon or the bus is gone. `bluetoothd` has dropped session and filter, and may never
    /// answer the call that was pending.
    mutating func adapterLost() -> [Effect] {
        if scans.contains(where: \.isAnnounced) { restartReason = .adapterReturned }
        session = .unavailable
        if mayBeUp, !scans.isEmpty { kernelMayDiscover = true }
        mayBeUp = false
        hasFilter = false
        isPathlossRefused = false
        resetAttempts()
        fruitlessRestarts = 0
        watchdogStretch = 1
        return [.cancelTimer(.retry), .cancelTimer(.watchdog)]
    }

    /// `Discovering` changed. BlueZ has one for all its clients; false while we hold a session means that ours is dead.
    mutating func discoveringChanged(_ discovering: Bool) -> [Effect] {
        switch session {
        case .running, .updatingFilter:
            guard !discovering else { return [] }
            return restart(.discoveringEnded)
        case .unavailable, .idle, .settingFilter, .starting, .stopping, .clearingFilter, .waiting:
            // During a start or a stop, false belongs to the last session and true to the next one.
            return []
        }
    }

    /// A report arrived; resets the watchdog. Cheap enough for every batch of reports.
    mutating func received() {
        silentTicks = 0
        watchdogStretch = 1
        fruitlessRestarts = 0
    }

    // MARK: Replies

    mutating func replied(_ request: RequestID, error: BlueZError?) -> [Effect] {
        guard request == lastRequest else { return [] }
        switch session {
        case .settingFilter(let filter):
            if let error, !hasNoFilters(error) {
                return dropPathloss(after: error, of: filter) ? setFilter() : startFailed(error)
            }
            hasFilter = true
            session = .idle
            guard wanted == filter else { return reconcile() }
            mayBeUp = true
            return call(.startDiscovery, .starting(filter))
        case .updatingFilter(let filter):
            if let error, !hasNoFilters(error) {
                guard dropPathloss(after: error, of: filter) else { return restart(.filterRefused) }
                session = .running(filter)
                return reconcile()
            }
            session = .running(filter)
            return announce() + reconcile()
        case .clearingFilter:
            hasFilter = false
            session = .idle
            return reconcile()
        case .starting(let filter):
            if let error { return startFailed(error) }
            session = .running(filter)
            kernelMayDiscover = false
            resetAttempts()
            silentTicks = 0
            return startWatchdog() + announce() + reconcile()
        case .stopping(let purpose): return stopped(error, purpose)
        case .unavailable, .idle, .running, .waiting: return []
        }
    }

    /// Without SetDiscoveryFilter (an old kernel, a small fake) everything is reported, and filtered by the scans.
    private func hasNoFilters(_ error: BlueZError) -> Bool {
        error.cause == .unknownMethod || error.cause == .notSupported
    }

    private mutating func stopped(_ error: BlueZError?, _ purpose: Purpose) -> [Effect] {
        // A start that timed out may still be pending over there; until it is done, stopping is refused.
        let isRefused = error?.cause == .inProgress || error?.cause == .noReply
        if !isRefused { mayBeUp = false }
        guard !(isRefused && isRestWanted) else { return waitAndRetry(.stop) }
        switch purpose {
        case .unwanted:
            resetAttempts()
            session = .idle
            return reconcile()
        case .restart:
            session = .idle
            guard fruitlessRestarts > 1, !isRestWanted else { return reconcile() }
            // The last restart did not bring a single report. Do not spin.
            session = .waiting(.start)
            let seconds = min(Double(1 << min(fruitlessRestarts - 2, 5)), 30)
            return [.startTimer(.retry, seconds: seconds)]
        case .clearing:
            return waitAndRetry(.start)
        }
    }

    mutating func timerFired(_ timer: Timer) -> [Effect] {
        switch (timer, session) {
        case (.retry, .waiting):
            session = .idle
            return reconcile()
        case (.watchdog, .running), (.watchdog, .updatingFilter):
            guard watchdogSeconds != nil else { return [] }
            silentTicks += 1
            guard silentTicks >= Self.watchdogTicks * watchdogStretch else { return startWatchdog() }
            watchdogStretch = min(watchdogStretch * 2, Self.longestWatchdogStretch)
            return restart(.silence)
        // A timer that fired while it was being cancelled ends nothing.
        case (.retry, _), (.watchdog, _): return []
        }
    }
}

// MARK: - Steps

extension DiscoveryMachine {
    /// Takes the next step from a session at rest to the one that the scans need; none while a call is under way.
    private mutating func reconcile() -> [Effect] {
        switch session {
        case .idle:
            guard isRestWanted else { return setFilter() }
            if mayBeUp { return stop(.unwanted) }
            // A filter that is left after the last scan and the session have ended.
            return hasFilter && scans.isEmpty ? call(.setFilter(nil), .clearingFilter) : []
        case .running(let filter):
            guard let wanted else { return stop(.unwanted) }
            guard wanted != filter else { return announce() }
            return call(.setFilter(wanted), .updatingFilter(wanted))
        case .waiting(.start) where isRestWanted:
            session = .idle
            resetAttempts()
            return [.cancelTimer(.retry)] + reconcile()
        case .unavailable, .settingFilter, .starting, .updatingFilter, .stopping, .clearingFilter, .waiting:
            return []
        }
    }

    /// Leaves `Pathloss` out of the next filters if the daemon may have refused this one because of it; false if not.
    private mutating func dropPathloss(after error: BlueZError, of filter: DiscoveryFilter) -> Bool {
        guard error.cause == .invalidArguments, filter.hasPathloss, filter.rssi == nil, !isRestWanted else {
            return false
        }
        isPathlossRefused = true
        return true
    }

    private mutating func setFilter() -> [Effect] {
        wanted.map { call(.setFilter($0), .settingFilter($0)) } ?? []
    }

    /// Makes a call, whose reply ends the state that the session has until then.
    private mutating func call(_ call: Call, _ next: Session) -> [Effect] {
        session = next
        lastRequest &+= 1
        return [.call(lastRequest, call)]
    }

    private mutating func stop(_ purpose: Purpose) -> [Effect] {
        [.cancelTimer(.watchdog)] + call(.stopDiscovery, .stopping(purpose))
    }

    private mutating func restart(_ reason: ScanRestartReason) -> [Effect] {
        restartReason = reason
        fruitlessRestarts += 1
        return stop(.restart)
    }

    private mutating func startFailed(_ error: BlueZError) -> [Effect] {
        // After these two the session may be up nevertheless, or come up later.
        if error.cause != .inProgress, error.cause != .noReply { mayBeUp = false }
        guard !isRestWanted else {
            session = .idle
            return reconcile()
        }
        switch error.cause {
        case .inProgress, .noReply:
            guard attempts < delays.count else { return fail(error) }
            guard hasCleared else {
                hasCleared = true
                return stop(.clearing)
            }
            return waitAndRetry(.start)
        case .notReady:
            // Powered on according to its property, not yet according to the daemon.
            guard attempts < delays.count else { return fail(error) }
            return waitAndRetry(.start)
        case .serviceGone, .disconnected, .unknownObject:
            // The removal that follows on the bus says what becomes of the adapter.
            session = .unavailable
            return []
        default: return fail(error)
        }
    }

    private mutating func waitAndRetry(_ step: Step) -> [Effect] {
        session = .waiting(step)
        guard !(step == .start && isRestWanted) else { return reconcile() }
        let seconds = delays[min(attempts, delays.count - 1)]
        attempts += 1
        return [.startTimer(.retry, seconds: seconds)]
    }

    private mutating func fail(_ error: BlueZError) -> [Effect] {
        let failed = scans.map { Effect.report($0.id, .failed(error)) }
        scans = []
        restartReason = nil
        kernelMayDiscover = false
        session = .idle
        resetAttempts()
        return failed + reconcile()
    }

    /// Reports to each scan, once, that it runs, or that it runs again.
    private mutating func announce() -> [Effect] {
        let reason = restartReason
        restartReason = nil
        return scans.indices.compactMap { index in
            defer { scans[index].isAnnounced = true }
            guard scans[index].isAnnounced else { return .report(scans[index].id, .started) }
            return reason.map { .report(scans[index].id, .restarted($0)) }
        }
    }

    private var watchdogSeconds: Double? { scans.compactMap(\.watchdogSeconds).min() }

    private func startWatchdog() -> [Effect] {
        guard let watchdogSeconds else { return [] }
        return [.startTimer(.watchdog, seconds: watchdogSeconds / Double(Self.watchdogTicks))]
    }

    private mutating func resetAttempts() {
        attempts = 0
        hasCleared = false
    }
}

/// One scan of one user on an adapter; several share the adapter's one discovery session.
package struct ScanID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// An event of a scan. Sent on the loop.
package enum ScanEvent: Hashable, Sendable {
    /// `bluetoothd` discovers for this scan; reports arrive from now on.
    case started
    /// There was a gap, and the scan continues.
    case restarted(ScanRestartReason)
    /// The scan has ended; nothing follows.
    case failed(BlueZError)
}

/// Why a session that was up had to be started again.
package enum ScanRestartReason: Hashable, Sendable {
    /// No device was discovered for the watchdog's time.
    case silence
    /// `Discovering` became false although this process did not stop it.
    case discoveringEnded
    /// The adapter was off or away and is back.
    case adapterReturned
    /// `bluetoothd` refused to change the filter of the running session.
    case filterRefused
}

// MARK: - Effects and states

extension DiscoveryMachine {
    enum Timer: Hashable, Sendable, CaseIterable {
        /// Until a refused start or stop is tried again.
        case retry
        /// Until silence becomes suspicious.
        case watchdog
    }

    enum Effect: Hashable, Sendable {
        /// The reply is passed to ``DiscoveryMachine/replied(_:error:)`` with the number.
        case call(RequestID, Call)
        /// Starts the timer, or starts it again.
        case startTimer(Timer, seconds: Double)
        case cancelTimer(Timer)
        case report(ScanID, ScanEvent)
    }

    enum Call: Hashable, Sendable {
        /// `SetDiscoveryFilter`; `nil` for one with nothing in it, which clears the filter.
        case setFilter(DiscoveryFilter?)
        case startDiscovery
        case stopDiscovery
    }

    /// The state of the session that BlueZ keeps for this process.
    enum Session: Hashable, Sendable {
        /// No adapter, or it is off: BlueZ has dropped filter and session.
        case unavailable
        /// The adapter is on, no session.
        case idle
        case settingFilter(DiscoveryFilter)
        case starting(DiscoveryFilter)
        case running(DiscoveryFilter)
        /// `SetDiscoveryFilter` under way in a running session. `bluetoothd` restarts the scan if necessary,
        /// without a signal (`update_discovery_filter` in its adapter.c).
        case updatingFilter(DiscoveryFilter)
        case stopping(Purpose)
        /// The session has ended, and its filter, which BlueZ keeps beyond that, is being cleared. If a client leaves the
        /// bus with a filter and without a session, BlueZ ends another client's scan (`discovery_disconnect` at 5.66).
        case clearingFilter
        /// A start or stop was refused; the retry timer runs.
        case waiting(Step)
    }

    enum Purpose: Hashable, Sendable {
        /// No scan is left.
        case unwanted
        /// To start again at once.
        case restart
        /// A start was refused as being in progress: end whatever is left of it.
        case clearing
    }

    enum Step: Hashable, Sendable {
        case start
        case stop
    }

    struct Scan: Hashable, Sendable {
        let id: ScanID
        let filter: DiscoveryFilter
        /// The seconds without any report after which the session is started again; `nil` for never. The shortest counts.
        var watchdogSeconds: Double? = 90
        /// Whether it was reported as running; if not, ``ScanEvent/started`` comes first.
        fileprivate(set) var isAnnounced = false
    }
}
