import DBus
import Futures
import Reactor

/// A scan as its owner sees it.
struct ScanEntry {
    let adapter: ObjectKey
    let handler: @Sendable (ScanEvent) -> Void
}

/// An adapter's machine with its timers.
///
/// Kept as long as the client is in use, also at rest: its numbers for requests go on, so that a late answer never
/// matches a new question.
///
/// On the client's loop, and unchecked because of that.
final class DiscoverySession: @unchecked Sendable {
    var machine = DiscoveryMachine()
    var timers: [DiscoveryMachine.Timer: TimerID] = [:]
    /// Who ended a scan and waits until BlueZ has confirmed it.
    var waiting: [@Sendable () -> Void] = []
}

/// A rest of the scans on an adapter: it ends when this is told so, or released.
package final class DiscoveryPause: Sendable {
    private let loop: any EventLoop
    private let end: Locked<(@Sendable () -> Void)?>

    init(loop: any EventLoop, end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = Locked(end)
    }

    deinit { resume() }

    /// The scans go on unless another pause holds them. Any thread; a second call does nothing.
    package func resume() {
        let end = end.withLock { end in
            defer { end = nil }
            return end
        }
        if let end { loop.perform(end) }
    }
}

extension BlueZClient {
    /// Longer than the kernel takes to start or stop a scan, shorter than people wait.
    private static let discoveryTimeout = 10.0

    // MARK: Scans; on the loop only

    /// Begins to discover, or joins in what is being discovered on the adapter already.
    ///
    /// The adapter need not be there or on: the scan waits for it, and survives its absence.
    /// - Parameters:
    ///   - watchdogSeconds: After how long without any report the session is started anew; `nil` for never.
    ///   - handler: Told on the loop what becomes of the scan, never before this method returns.
    package func startScan(
        on adapter: ObjectKey, filter: DiscoveryFilter, watchdogSeconds: Double? = 90,
        handler: @escaping @Sendable (ScanEvent) -> Void
    ) -> ScanID {
        requireLoop()
        let id = ScanID(makeID())
        scans[id] = ScanEntry(adapter: adapter, handler: handler)
        makeSession(of: adapter)
        run(adapter) { $0.scanAdded(DiscoveryMachine.Scan(id, filter, watchdogSeconds: watchdogSeconds)) }
        return id
    }

    private func makeSession(of adapter: ObjectKey) {
        guard sessions[adapter] == nil else { return }
        sessions[adapter] = DiscoverySession()
        if objects[adapter: adapter]?.isPowered == true { run(adapter) { $0.poweredOn() } }
    }

    /// Lets all scans of the process on an adapter rest, as many controllers need it while they connect. They come back,
    /// without a word, when the last pause has ended.
    ///
    /// - Parameter completion: Runs on the loop, never before this method returns, once BlueZ has stopped discovering for
    ///   us, or there is nothing to stop.
    package func pauseDiscovery(
        on adapter: ObjectKey, completion: @escaping @Sendable () -> Void = {}
    ) -> DiscoveryPause {
        requireLoop()
        makeSession(of: adapter)
        sessions[adapter]?.waiting.append(completion)
        run(adapter) { $0.paused() }
        let session = sessions[adapter]
        return DiscoveryPause(loop: loop) { [weak self, weak session] in
            // Of a session that has ended meanwhile the pause has, too.
            guard let self, let session, sessions[adapter] === session else { return }
            run(adapter) { $0.resumed() }
        }
    }

    /// Goes on with another filter.
    package func changeScan(_ id: ScanID, filter: DiscoveryFilter) {
        requireLoop()
        guard let scan = scans[id] else { return }
        run(scan.adapter) { $0.scanChanged(id, filter) }
    }

    /// Ends a scan, and with the adapter's last one its session. The handler is not called any more.
    ///
    /// - Parameter completion: Runs on the loop, never before this method returns, once BlueZ has confirmed the session's
    ///   end, or the narrower filter when others go on scanning; or once there is nobody left to confirm it.
    package func stopScan(_ id: ScanID, completion: @escaping @Sendable () -> Void = {}) {
        requireLoop()
        guard let scan = scans.removeValue(forKey: id), let session = sessions[scan.adapter] else {
            return loop.post(completion)
        }
        session.waiting.append(completion)
        run(scan.adapter) { $0.scanRemoved(id) }
    }

    func endAllScans() {
        for id in scans.keys.sorted(by: { $0.rawValue < $1.rawValue }) { stopScan(id) }
        for session in sessions.values {
            for timer in session.timers.values { loop.cancel(timer) }
            tellWaiting(session)
        }
        sessions = [:]
        heardAdapters = []
    }

    // MARK: What happens to adapters

    func followDiscovery(_ change: Change) {
        guard !sessions.isEmpty else { return }
        switch change {
        case .deviceAdded(let handle, isHeard: true), .deviceChanged(let handle, _, isHeard: true):
            heardAdapters.insert(objects.adapter(of: handle))
        case .deviceAdded, .deviceChanged, .deviceRemoved, .attributeAdded, .attributeChanged, .attributeRemoved:
            return
        case .adapterAdded(let adapter):
            if objects[adapter: adapter]?.isPowered == true { run(adapter) { $0.poweredOn() } }
        case .adapterChanged(let adapter, let fields):
            guard let values = objects[adapter: adapter] else { return }
            // Power first: a controller that was switched off has stopped discovering, and that is no surprise.
            if fields.contains(.isPowered) { run(adapter) { values.isPowered ? $0.poweredOn() : $0.poweredOff() } }
            if fields.contains(.isDiscovering) { run(adapter) { $0.discoveringChanged(values.isDiscovering) } }
        case .adapterRemoved(let adapter):
            run(adapter) { $0.adapterRemoved() }
        }
    }

    func hearSessions() {
        guard !heardAdapters.isEmpty else { return }
        for adapter in heardAdapters { sessions[adapter]?.machine.heard() }
        heardAdapters.removeAll(keepingCapacity: true)
    }

    // MARK: Effects

    private func run(
        _ adapter: ObjectKey, _ event: (inout DiscoveryMachine) -> [DiscoveryMachine.Effect]
    ) {
        guard let session = sessions[adapter] else { return }
        for effect in event(&session.machine) { perform(effect, on: adapter) }
        if session.machine.isSettled { tellWaiting(session) }
    }

    private func tellWaiting(_ session: DiscoverySession) {
        guard !session.waiting.isEmpty else { return }
        let waiting = session.waiting
        session.waiting = []
        loop.post { for completion in waiting { completion() } }
    }

    private func perform(_ effect: DiscoveryMachine.Effect, on adapter: ObjectKey) {
        switch effect {
        case .setFilter(let request, let filter):
            let acceptsServices = objects[adapter: adapter]?.capabilities.acceptsServiceFilter ?? false
            call(
                adapter, "SetDiscoveryFilter", body: { filter.write(to: &$0, withServices: acceptsServices) },
                replied: { $0.setFilterReplied(request, error: $1) })
        case .clearFilter(let request):
            call(adapter, "SetDiscoveryFilter", body: { $0.dictionary(key: "s", value: "v") { _ in } }) {
                $0.setFilterReplied(request, error: $1)
            }
        case .startDiscovery(let request):
            call(adapter, "StartDiscovery") { $0.startReplied(request, error: $1) }
        case .stopDiscovery(let request):
            call(adapter, "StopDiscovery") { $0.stopReplied(request, error: $1) }
        case .startTimer(let timer, let seconds):
            cancel(timer, of: adapter)
            sessions[adapter]?.timers[timer] = loop.schedule(after: seconds) { [weak self] in
                guard let self else { return }
                sessions[adapter]?.timers[timer] = nil
                run(adapter) { $0.timerFired(timer) }
            }
        case .cancelTimer(let timer):
            cancel(timer, of: adapter)
        case .scanStarted(let id):
            tell(id, .started)
        case .scanRestarted(let id, let reason):
            tell(id, .restarted(reason))
        case .scanFailed(let id, let error):
            tell(id, .failed(error))
        }
    }

    private func cancel(_ timer: DiscoveryMachine.Timer, of adapter: ObjectKey) {
        if let id = sessions[adapter]?.timers.removeValue(forKey: timer) { loop.cancel(id) }
    }

    private func call(
        _ adapter: ObjectKey, _ member: String, body: (inout MessageWriter) -> Void = { _ in },
        replied: @escaping @Sendable (inout DiscoveryMachine, BlueZError?) -> [DiscoveryMachine.Effect]
    ) {
        let number = link?.number
        call(
            adapter, interface: BlueZName.adapter, member: member, timeout: Self.discoveryTimeout, body: body
        ) { [weak self] result in
            // An answer from an earlier connection concerns a session that went with it.
            guard let self, link?.number == number else { return }
            run(adapter) { replied(&$0, result.failure) }
        }
    }

    /// Tells a scan's owner, never inside what the owner is doing.
    private func tell(_ id: ScanID, _ event: ScanEvent) {
        loop.post { [weak self] in
            guard let self, let scan = scans[id] else { return }
            if case .failed = event { scans[id] = nil }
            scan.handler(event)
        }
    }
}
