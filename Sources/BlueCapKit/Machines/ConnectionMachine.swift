import BlueCapBlueZ
import Foundation

/// The arguments of one call of `connect`.
struct ConnectionPolicy: Equatable {
    /// The number of successive time-outs, and of disconnections of one `connect`, that are reported as such. After one
    /// more, the connection is given up.
    var timeoutRetries = UInt.max
    var disconnectRetries = UInt.max
    /// Seconds from the moment at which the radio begins to connect, or cannot begin because it has no power; `nil` for
    /// no limit.
    var timeout: TimeInterval?
    /// Whether the peripheral is connected again after time-outs and disconnections, without a `reconnect`, while the
    /// connection is wanted.
    var reconnects = false
}

/// Connects one peripheral, keeps it connected and disconnects it: behaviours B1 to B8 and F1 to F3 of
/// Documentation/Reliability.md.
///
/// A *try* begins with `connect` or `reconnect` and ends with an event. A try can have several *attempts*: calls of the
/// client's connector with a back-off between them, since most errors of BlueZ are transient.
///
/// The connector confirms the link of an attempt that succeeds, ends one that is cancelled, and reports the end of a link that
/// is ended, each within limits. The machine waits for these reports before it starts anything else: a `Connect` during
/// the end of an attempt or a link would fail, or its link would end with the other (B2).
///
/// The machine has no clock and no bus: time is reported with ``Event/timerFired(_:)``, and calls are made with orders.
struct ConnectionMachine: Equatable {
    /// Identifies one attempt.
    typealias Attempt = UInt32
    /// Identifies one call of `connect`, and its stream; 0 before the first.
    typealias ConnectionNumber = UInt32

    enum Event: Equatable {
        // From the application.
        case connectAsked(ConnectionPolicy)
        case reconnectAsked(delay: TimeInterval)
        case disconnectAsked
        case terminateAsked
        /// Nothing reads the stream of this connection any more, which was to last as long as that. `leavingFor`: what else
        /// needs its link; `application` for callers that wait for it.
        case readersEnded(leavingFor: Purpose?)
        /// The callers that the try was made for no longer wait. `leavingFor`: what else needs its link.
        case connectWithdrawn(Report, leavingFor: Purpose?)
        /// A run needs a link, or a pairing does to find out whether a bond holds.
        case linkNeeded(Purpose)
        /// No run needs the link any more, or the bond is known. A link that is up stays for a pairing.
        case linkNotNeeded(Purpose)
        /// The link is up after a pairing. `isOurs`: the pairing has made it.
        case linkMade(isOurs: Bool)
        /// The link is up, but operations no longer get a response.
        case linkDied
        /// The link was lost because the peripheral no longer has the keys of its bond.
        case keysMissing
        /// The manager has ended.
        case closed(keepingLinks: Bool)

        // From BlueZ.
        /// The turn of the attempt has begun.
        case connectStarted(Attempt)
        /// The attempt has ended, successfully if there is no error. `PairingError`: what the error means.
        case connectReplied(Attempt, BlueZError?, PairingError? = nil)
        /// The link has ended that was to end, or cannot be ended.
        case disconnectReplied
        /// The device has appeared, changed or disappeared. `wasConnected`: whether BlueZ reported a link before.
        case deviceChanged(wasConnected: Bool)
        /// An adapter with power has appeared or disappeared.
        case adapterUsable(Bool)

        case timerFired(Timer)
    }

    enum Timer: Hashable {
        /// The delay of `reconnect(withDelay:)`, the back-off between two attempts, or a search.
        case wait
        /// The user's `connectionTimeout`.
        case timeout
        /// How long a connection lasts before it counts as stable.
        case stability
        /// How long the end of the adapter counts as the cause of the loss that was reported last.
        case loss
    }

    /// An element of the stream of `connect`, in both of its variants.
    struct Report: Equatable {
        /// `nil` for a failure of both variants.
        let event: ConnectionEvent?
        /// The failure of the stream without values; `nil` for success.
        let error: PeripheralError?

        static let connected = Report(event: .connect, error: nil)
        static let timedOut = Report(event: .timeout, error: .connectionTimeout)
        static let disconnected = Report(event: .disconnect, error: .disconnected)
        static let forced = Report(event: .forceDisconnect, error: .forcedDisconnect)
        static func failed(_ error: PeripheralError) -> Report { Report(event: nil, error: error) }
        static func gaveUp(after last: Report) -> Report { Report(event: .giveUp, error: last.error) }
    }

    /// What a link is made for.
    enum Purpose: Equatable { case application, run, pairing }

    enum State: Equatable {
        case disconnected
        case waiting(Wait)
        /// `isUnderWay`: it does not wait behind the attempts of other peripherals.
        case connecting(isUnderWay: Bool)
        case connected
        /// An attempt or a link is being ended. The report, which is `nil` if it was given already, and then the next step
        /// follow the end.
        case ending(Report?, Next)
        /// The manager has ended.
        case closed
    }

    enum Wait: Equatable {
        case delay, backOff, power
        /// BlueZ does not have the device: discovery runs until the device is received.
        case device
    }

    enum Next: Equatable {
        case rest
        case connect(after: TimeInterval)
        case finish
    }

    // MARK: Limits

    /// Seconds of search for a device that BlueZ does not know, before the next back-off.
    static let seekLimit: TimeInterval = 10
    /// Seconds after which a connection counts as a success, whatever follows.
    static let stability: TimeInterval = 3
    /// Seconds after the report of a loss in which the end of the adapter counts as its cause. BlueZ reports the ends
    /// of the links first, and the kernel waits for them up to five seconds when the power is switched off
    /// (HCI_POWER_OFF_TIMEOUT).
    static let lossLimit: TimeInterval = 6
    /// The number of failures from which on a search pauses scans as well.
    static let failuresBeforeSearchPauses = 2
    /// The shortest wait of `reconnect` in seconds if the peripheral no longer has the keys of its bond: it does not get
    /// them back, and each attempt costs radio time and energy on both sides.
    static let missingKeysDelay: TimeInterval = 30
    /// How many errors with an unknown text count as transient.
    static let unknownFailuresAllowed = 3
    /// After this number of successive "already in progress" replies, the connection in progress is ended, whichever
    /// program began it: the daemon continues the attempt of a program that has crashed.
    static let busyRepliesAllowed = 5

    // MARK: State

    private(set) var state = State.disconnected
    /// The newest call of `connect`.
    private(set) var number: ConnectionNumber = 0
    private(set) var policy = ConnectionPolicy()
    /// Why the attempts of the present or last try failed, oldest first; only the newest few.
    private(set) var failures: [BlueZError] = []
    /// Why the last report was not that of a connection, after a run requested a link; `nil` if there was none.
    private(set) var lastError: PeripheralError?
    /// Whether the present link was established by our own attempt.
    private(set) var isOurs = false
    /// Whether the application wants a connection: from `connect` on, through losses and time-outs, until the application
    /// ends it or it is given up.
    private(set) var isWanted = false
    /// What the present link, or the try for one, exists for.
    private(set) var purpose = Purpose.application
    private(set) var lastAttempt: Attempt = 0

    private var backOff: BackOff
    /// The time-outs since the last connection, and the disconnections since `connect`.
    private(set) var timeouts: UInt = 0
    private(set) var disconnections: UInt = 0
    /// Tries in a row without a stable connection.
    private var fruitlessTries = 0
    /// Attempts of this try that failed.
    private var failedAttempts = 0
    /// Whether the link of the present attempt was established and lost again, before the reply.
    private(set) var hasFallen = false
    /// Whether the peripheral no longer has the keys of its bond.
    private var areKeysMissing = false
    /// Whether the stream of `number` is finished.
    private var isFinished = true

    private(set) var isSeeking = false
    private(set) var timers: Set<Timer> = []

    init(backOff: BackOff) { self.backOff = backOff }

    // MARK: Queries

    /// Whether a link of ours exists, or may appear.
    var hasOwnLink: Bool { if case .connecting = state { true } else { isOurs } }

    /// Whether a time-out or a disconnection has been reported after which the peripheral is connected again.
    var isReconnectDue: Bool { state == .disconnected && isWanted && policy.reconnects }

    /// Whether there is a link, or one is being made.
    var isLinkAhead: Bool {
        switch state {
        case .connected, .connecting, .waiting, .ending(_, .connect): true
        case .disconnected, .ending, .closed: false
        }
    }

    /// Whether the peripheral is connected or to be connected, or the end of its connection is still under way.
    var isInUse: Bool { state != .disconnected && state != .closed }

    // MARK: Events

    mutating func event(_ event: Event, into orders: inout Orders) {
        switch event {
        case .connectAsked(let policy): connectAsked(policy, &orders)
        case .reconnectAsked(let delay):
            if !isWanted { policy.reconnects = false }
            isWanted = state != .closed
            purpose = .application
            reconnect(after: delay, &orders)
        case .disconnectAsked: endAsked(isTermination: false, &orders)
        case .terminateAsked: endAsked(isTermination: true, &orders)
        case .readersEnded(let purpose):
            guard !isFinished else { return }
            finish(&orders)
            withdraw(.forced, leavingFor: purpose, endsLink: true, &orders)
        case .connectWithdrawn(let report, let purpose):
            withdraw(report, leavingFor: purpose, endsLink: false, &orders)
        case .linkNeeded(let purpose): linkNeeded(purpose, &orders)
        case .linkNotNeeded(let purpose): linkNotNeeded(purpose, &orders)
        case .linkMade(let isOurs): linkMade(isOurs: isOurs, &orders)
        case .linkDied: end(.disconnected, then: .rest, &orders)
        case .keysMissing: areKeysMissing = true
        case .closed(let keepingLinks): close(keepingLinks: keepingLinks, &orders)
        case .connectStarted(let attempt):
            guard attempt == lastAttempt, state == .connecting(isUnderWay: false) else { return }
            state = .connecting(isUnderWay: true)
            startTimeout(&orders)
        case .connectReplied(let attempt, let error, let meaning): connectReplied(attempt, error, meaning, &orders)
        case .disconnectReplied: if case .ending(let report, let next) = state { settle(report, next, &orders) }
        case .deviceChanged(let wasConnected): deviceChanged(wasUp: wasConnected, &orders)
        case .adapterUsable(let usable): if usable { adapterAppeared(&orders) } else { adapterDisappeared(&orders) }
        case .timerFired(let timer): fired(timer, &orders)
        }
    }

    // MARK: The application

    private mutating func connectAsked(_ new: ConnectionPolicy, _ orders: inout Orders) {
        purpose = .application
        switch state {
        case .disconnected, .waiting(.delay), .waiting(.backOff):
            cancel(.wait, &orders)
            cancel(.timeout, &orders)
            takeOver(new, &orders)
            beginTry(&orders)
        case .connecting(isUnderWay: false):
            takeOver(new, &orders)
        case .waiting(.power), .waiting(.device), .connecting:
            // The present try serves the new call as well; only its time limit begins again.
            cancel(.timeout, &orders)
            takeOver(new, &orders)
            startTimeout(&orders)
        case .connected:
            takeOver(new, &orders)
            report(.connected, &orders)
        case .ending(let report, _):
            state = .ending(nil, .connect(after: 0))
            if let report { count(report, &orders) }
            takeOver(new, &orders)
        case .closed:
            number += 1
            isWanted = false
            report(.failed(.disconnected), &orders)
            orders.append(.finishStream(number))
        }
    }

    /// Finishes the stream of an earlier `connect`, and counts from zero.
    private mutating func takeOver(_ new: ConnectionPolicy, _ orders: inout Orders) {
        finish(&orders)
        cancel(.loss, &orders)
        number += 1
        isFinished = false
        isWanted = true
        policy = new
        timeouts = 0
        disconnections = 0
        areKeysMissing = false
    }

    private mutating func reconnect(after delay: TimeInterval, _ orders: inout Orders) {
        if isFinished {
            timeouts = 0
            disconnections = 0
        }
        switch state {
        case .disconnected, .waiting(.delay):
            // The first try after a failure begins at once; after repeated failures there is a delay.
            let least = areKeysMissing ? Self.missingKeysDelay : 0
            let wait = max(least, delay + backOff.delay(after: fruitlessTries - 1))
            cancel(.wait, &orders)
            guard wait > 0 else { return beginTry(&orders) }
            state = .waiting(.delay)
            start(.wait, wait, &orders)
        case .ending(let report, .finish):
            // The stream finishes now, without waiting for the end.
            state = .ending(nil, .connect(after: delay))
            if let report { count(report, &orders) }
            finish(&orders)
        case .ending(let report, _):
            state = .ending(report, .connect(after: delay))
        case .waiting, .connecting, .connected, .closed:
            break
        }
    }

    private mutating func endAsked(isTermination: Bool, _ orders: inout Orders) {
        isWanted = false
        // The stream of a connection that was to last has ended with it.
        let last = isTermination || policy.reconnects ? Next.finish : .rest
        switch state {
        case .disconnected, .closed:
            if isTermination { finish(&orders) } else { report(.failed(.disconnected), &orders) }
        case .ending(_, let next): state = .ending(.forced, next == .finish ? .finish : last)
        case .waiting, .connecting, .connected: end(.forced, then: last, &orders)
        }
        if isTermination { orders.append(.forget) }
    }

    private mutating func withdraw(
        _ report: Report, leavingFor new: Purpose?, endsLink: Bool, _ orders: inout Orders
    ) {
        policy.reconnects = false
        isWanted = new == .application
        if let new { purpose = new } else { release(report, endsLink: endsLink, pending: report, &orders) }
    }

    /// Ends the present try, and the present link if it is ours: one that another program established before stays.
    /// - Parameter pending: What is reported at the end of an earlier link that a try was to follow.
    private mutating func release(
        _ report: Report, endsLink: Bool, pending: Report? = nil, _ orders: inout Orders
    ) {
        switch state {
        case .waiting, .connecting: end(report, then: .rest, &orders)
        case .connected where endsLink && isOurs: end(report, then: .rest, &orders)
        case .ending(let earlier, .connect): state = .ending(earlier ?? pending, .rest)
        case .disconnected, .connected, .ending, .closed: break
        }
    }

    /// Ends the present try or link: at the request of the application, because nothing needs it, because its time is over,
    /// or because it is of no use.
    private mutating func end(_ report: Report, then next: Next, _ orders: inout Orders) {
        endTry(&orders)
        switch state {
        case .waiting:
            return settle(report, next, &orders)
        case .connecting:
            isOurs = true
            orders.append(.cancelConnect)
        case .connected:
            cancel(.stability, &orders)
            orders.append(.linkWentDown(report == .forced ? .application : .linkLost))
            orders.append(.callDisconnect)
        case .disconnected, .ending, .closed:
            return
        }
        state = .ending(report, next)
    }

    private mutating func close(keepingLinks: Bool, _ orders: inout Orders) {
        if case .connecting = state { orders.append(.cancelConnect) }
        if state == .connected {
            orders.append(.linkWentDown(.application))
            // BlueZ keeps the links of a client that has ended, and no other host could connect to the peripheral (B7).
            if isOurs && !keepingLinks { orders.append(.callDisconnect) }
        }
        endTry(&orders)
        for timer in [Timer.stability, .loss] { cancel(timer, &orders) }
        finish(&orders)
        state = .closed
    }

    // MARK: Runs and bonds

    // A run uses the present link, the present try, or a new one. The stream of the last `connect` reports it as any other.
    // Only a link that exists for runs alone ends with them: after `connect` or `reconnect` it belongs to the application.

    private mutating func linkNeeded(_ new: Purpose, _ orders: inout Orders) {
        lastError = nil
        switch (state, new) {
        case (.disconnected, _):
            purpose = new
            // This link is to show whether they are.
            if new == .pairing { areKeysMissing = false }
        case (.ending(_, .connect), _): return
        case (.ending, .run): purpose = new
        // The application's own try, only earlier.
        case (.waiting(.delay), .run): break
        default: return
        }
        reconnect(after: 0, &orders)
    }

    private mutating func linkNotNeeded(_ old: Purpose, _ orders: inout Orders) {
        guard purpose == old else { return }
        purpose = .application
        guard old == .run || !isWanted else { return }
        release(.forced, endsLink: old == .run, &orders)
    }

    // MARK: A try

    private mutating func beginTry(_ orders: inout Orders) {
        failedAttempts = 0
        failures = []
        attempt(&orders)
    }

    private mutating func attempt(_ orders: inout Orders) {
        guard orders.isUsable else {
            state = .waiting(.power)
            // The time-out also limits the wait for an adapter that rfkill blocks. When the power returns, it begins
            // again.
            endTry(&orders)
            return startTimeout(&orders)
        }
        // A link that another program established, or that remained from an earlier process, is adopted (B5).
        if orders.status.isConnected { return linkUp(isOurs: false, &orders) }
        if orders.status.device != nil { call(&orders) } else { seek(&orders) }
    }

    private mutating func call(_ orders: inout Orders) {
        lastAttempt += 1
        hasFallen = false
        state = .connecting(isUnderWay: false)
        // BlueZ keeps the device only while the search runs, until there is a link.
        let pausesScans = !isSeeking || failedAttempts >= Self.failuresBeforeSearchPauses
        orders.append(.callConnect(lastAttempt, pausesScans: pausesScans))
    }

    /// Searches for a device that BlueZ has removed because it did not receive it for some time (B4).
    private mutating func seek(_ orders: inout Orders) {
        state = .waiting(.device)
        if !isSeeking {
            isSeeking = true
            orders.append(.seek)
        }
        startTimeout(&orders)
        start(.wait, Self.seekLimit, &orders)
    }

    private mutating func connectReplied(
        _ attempt: Attempt, _ error: BlueZError?, _ meaning: PairingError?, _ orders: inout Orders
    ) {
        guard attempt == lastAttempt else { return }
        switch state {
        case .connecting:
            guard error == nil, orders.status.isConnected else {
                return attemptFailed(error ?? .noLink, meaning, &orders)
            }
            linkUp(isOurs: true, &orders)
        case .ending(let report, let next): settle(report, next, &orders)
        case .disconnected, .waiting, .connected, .closed: break
        }
    }

    private mutating func attemptFailed(_ error: BlueZError, _ meaning: PairingError?, _ orders: inout Orders) {
        failures = failures.suffix(15) + [error]
        // From 5.83 on BlueZ reports a peripheral that no longer has the keys of its bond.
        if let meaning = meaning ?? (error.message.hasSuffix("key-missing") ? .keyMissing(isCertain: true) : nil) {
            areKeysMissing = true
            return failTry(.pairing(meaning), &orders)
        }
        switch error.connectCause {
        case .authentication, .outOfSlots:
            failTry(.connectionFailed(BusError(error)), &orders)
        case .other where hasFailedLately(with: .other, times: Self.unknownFailuresAllowed):
            failTry(.connectionFailed(BusError(error)), &orders)
        case .notFound where state != .waiting(.device):
            seek(&orders)
        case .busy where hasFailedLately(with: .busy, times: Self.busyRepliesAllowed):
            orders.append(.callDisconnect)
            waitAndRetry(&orders)
        case .transient, .notFound, .adapterOff, .busy, .cancelled, .other:
            waitAndRetry(&orders)
        }
    }

    private func hasFailedLately(with cause: ConnectCause, times: Int) -> Bool {
        failures.count >= times && failures.suffix(times).allSatisfy { $0.connectCause == cause }
    }

    private mutating func waitAndRetry(_ orders: inout Orders) {
        failedAttempts += 1
        state = .waiting(.backOff)
        start(.wait, backOff.delay(after: failedAttempts), &orders)
    }

    /// Ends the try after an error that another attempt would repeat.
    private mutating func failTry(_ refusal: PeripheralError, _ orders: inout Orders) {
        state = .disconnected
        isWanted = false
        fruitlessTries += 1
        endTry(&orders)
        report(.failed(refusal), &orders)
    }

    private mutating func linkMade(isOurs: Bool, _ orders: inout Orders) {
        areKeysMissing = false
        if state == .connected {
            // A try of the application has adopted it.
            self.isOurs = self.isOurs || isOurs
        } else if state == .disconnected, orders.status.isConnected {
            linkUp(isOurs: isOurs, &orders)
        }
    }

    private mutating func linkUp(isOurs: Bool, _ orders: inout Orders) {
        self.isOurs = isOurs
        state = .connected
        timeouts = 0
        endTry(&orders)
        start(.stability, Self.stability, &orders)
        orders.append(.linkWentUp)
        count(.connected, &orders)
    }

    /// Starts the time-out when the radio begins to connect, so that it does not elapse in the queue behind other
    /// peripherals; or when there is no radio that could connect.
    private mutating func startTimeout(_ orders: inout Orders) {
        guard let timeout = policy.timeout, !timers.contains(.timeout) else { return }
        start(.timeout, timeout, &orders)
    }

    /// Ends everything that belongs to a try and not to the link.
    private mutating func endTry(_ orders: inout Orders) {
        for timer in [Timer.timeout, .wait] { cancel(timer, &orders) }
        stopSeeking(&orders)
    }

    private mutating func stopSeeking(_ orders: inout Orders) {
        guard isSeeking else { return }
        isSeeking = false
        orders.append(.stopSeeking)
    }

    /// Reports that an attempt or a link has ended, and continues with what was requested since.
    private mutating func settle(_ report: Report?, _ next: Next, _ orders: inout Orders) {
        state = .disconnected
        isOurs = false
        let wasFinished = isFinished
        if let report { count(report, &orders) }
        switch next {
        case .rest: break
        case .finish: finish(&orders)
        // If the report has used up the retries, the connection stays given up.
        case .connect(let delay): if isFinished == wasFinished { reconnect(after: delay, &orders) }
        }
    }

    // MARK: BlueZ

    private mutating func deviceChanged(wasUp: Bool, _ orders: inout Orders) {
        let isLinkUp = orders.status.isConnected
        if wasUp, !isLinkUp { hasFallen = true }
        if state == .waiting(.device), orders.status.device != nil, !isLinkUp {
            // The discovery continues until there is a link, because otherwise BlueZ might remove the device again.
            cancel(.wait, &orders)
            return call(&orders)
        }
        guard isLinkUp != wasUp else { return }
        switch state {
        case .connecting(isUnderWay: false):
            guard isLinkUp else { return }
            orders.append(.cancelConnect)
            // The reply to that is of no interest.
            lastAttempt += 1
            linkUp(isOurs: false, &orders)
        case .waiting(.delay), .waiting(.backOff), .waiting(.device):
            if isLinkUp { linkUp(isOurs: false, &orders) }
        case .connected:
            if !isLinkUp { lost(.linkLost, &orders) }
        case .connecting, .ending, .waiting(.power), .disconnected, .closed:
            // The reply decides: before the reply BlueZ has no ATT link, and may still fail.
            break
        }
    }

    private mutating func lost(_ loss: DisconnectReason, _ orders: inout Orders) {
        state = .disconnected
        isOurs = false
        cancel(.stability, &orders)
        orders.append(.linkWentDown(loss))
        count(.disconnected, &orders)
    }

    private mutating func adapterAppeared(_ orders: inout Orders) {
        guard state == .waiting(.power) else { return }
        cancel(.timeout, &orders)
        beginTry(&orders)
    }

    /// Ends what is under way, with one report. A try that only waits continues to wait.
    /// BlueZ reports the ends of the links before that of the adapter. If the program has called `reconnect()` in
    /// between, or a run has begun, the next try is already under way: it waits for the adapter, as if it had begun a
    /// moment later.
    private mutating func adapterDisappeared(_ orders: inout Orders) {
        let isLossReported = timers.contains(.loss)
        cancel(.loss, &orders)
        switch state {
        case .disconnected, .waiting(.delay), .waiting(.power), .closed:
            break
        case .waiting, .connecting:
            if case .connecting = state { orders.append(.cancelConnect) }
            state = isLossReported ? .waiting(.power) : .disconnected
            endTry(&orders)
            if isLossReported { startTimeout(&orders) } else { count(.disconnected, &orders) }
        case .connected:
            lost(.adapterLost, &orders)
        case .ending(let report, let next):
            settle(report, next, &orders)
        }
    }

    // MARK: Reports

    /// Counts and reports an event to the present stream, and gives the connection up if a count is used up.
    private mutating func count(_ new: Report, _ orders: inout Orders) {
        cancel(.loss, &orders)
        var isSpent = false
        if new == .timedOut {
            timeouts += 1
            fruitlessTries += 1
            isSpent = timeouts > policy.timeoutRetries
        } else if new == .disconnected {
            disconnections += 1
            fruitlessTries += 1
            // The end of the adapter may be what ended the link.
            if orders.isUsable { start(.loss, Self.lossLimit, &orders) }
            isSpent = disconnections > policy.disconnectRetries
        }
        guard isSpent else { return report(new, &orders) }
        isWanted = false
        report(.gaveUp(after: new), &orders)
        finish(&orders)
    }

    private mutating func report(_ report: Report, _ orders: inout Orders) {
        lastError = report.error
        orders.append(.report(number, report))
    }

    private mutating func finish(_ orders: inout Orders) {
        guard !isFinished else { return }
        isFinished = true
        orders.append(.finishStream(number))
    }

    // MARK: Timers

    private mutating func start(_ timer: Timer, _ seconds: TimeInterval, _ orders: inout Orders) {
        timers.insert(timer)
        orders.append(.startTimer(.connection(timer), seconds))
    }

    private mutating func cancel(_ timer: Timer, _ orders: inout Orders) {
        if timers.remove(timer) != nil { orders.append(.cancelTimer(.connection(timer))) }
    }

    private mutating func fired(_ timer: Timer, _ orders: inout Orders) {
        // The state that a timer limits may have ended.
        guard timers.remove(timer) != nil else { return }
        switch (timer, state) {
        case (.wait, .waiting(.delay)): beginTry(&orders)
        case (.wait, .waiting(.device)):
            stopSeeking(&orders)
            let message = "bluetoothd does not have the device, and a search did not find it"
            attemptFailed(BlueZError(name: BlueZError.noSuchObject.name, message: message), nil, &orders)
        case (.wait, _): attempt(&orders)
        case (.timeout, _): end(.timedOut, then: .rest, &orders)
        case (.stability, _): (fruitlessTries, areKeysMissing) = (0, false)
        case (.loss, _): break
        }
    }
}

/// The wait before another attempt: 0.1, 0.25, 0.5, 1, 2, then 4 seconds each time. Every wait is up to a quarter
/// shorter or longer at random.
///
/// Most requests that BlueZ refuses succeed when they are repeated a moment later. Those that do not should use little
/// radio time and energy. The random part prevents several programs, or several peripherals, from colliding again and
/// again.
struct BackOff: Equatable {
    /// In seconds.
    static let steps: [TimeInterval] = [0.1, 0.25, 0.5, 1, 2, 4]
    /// The largest difference between a wait and its step, as a fraction of the step.
    static let jitter = 0.25

    private var random: UInt64

    /// Creates a back-off. Equal seeds give equal waits.
    init(seed: UInt64) { random = seed }

    /// Returns the seconds to wait after `failures` failures in a row; 0 after none.
    mutating func delay(after failures: Int) -> TimeInterval {
        guard failures > 0 else { return 0 }
        // Knuth's linear congruential generator (The Art of Computer Programming, 3.3.4), whose high bits are random enough.
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let deviation = Double(random) / Double(UInt64.max) * 2 - 1
        return Self.steps[min(failures, Self.steps.count) - 1] * (1 + Self.jitter * deviation)
    }
}
