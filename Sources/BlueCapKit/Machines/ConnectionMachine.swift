import BlueZ
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
}

/// Why an attempt to connect failed.
struct ConnectionFailure: Equatable {
    let cause: ConnectCause
    let failure: BusFailure
    /// What it means, if that is not in the error of BlueZ.
    var refusal: PeripheralError?

    /// The reply reported a link that does not exist.
    static let noLink = ConnectionFailure(
        cause: .transient,
        failure: BusFailure(name: "org.bluez.Error.Failed", message: "Connect succeeded without a connection"))
    /// A search did not find the device.
    static let notFound = ConnectionFailure(
        cause: .notFound,
        failure: BusFailure(
            name: "org.freedesktop.DBus.Error.UnknownObject",
            message: "bluetoothd does not have the device, and a search did not find it"))
}

/// Connects one peripheral, keeps it connected and disconnects it: behaviours B1 to B8 and F1 to F3 of
/// Documentation/Reliability.md.
///
/// A *try* begins with `connect` or `reconnect` and ends with an event. A try can have several *attempts*: `Connect` calls
/// with a back-off between them, since most errors of BlueZ are transient.
///
/// An attempt must be cancelled when it is given up: a `Connect` that is not cancelled continues after our time-out,
/// and the next one fails with "Operation already in progress" (B2). A `Connect` within the two seconds that BlueZ
/// needs to end a link succeeds, and then that link ends (B2a). So the machine waits for each end, within limits,
/// before it starts anything else.
///
/// The machine has no clock and no bus: time is reported with ``Event/timerFired(_:)``, and calls are made with orders.
/// A late reply to an attempt that has ended changes nothing.
struct ConnectionMachine: Equatable {
    /// Identifies one `Connect` call.
    typealias Attempt = UInt32
    /// Identifies one call of `connect`, and its stream; 0 before the first.
    typealias ConnectionNumber = UInt32

    enum Event: Equatable {
        // From the application.
        case connectAsked(ConnectionPolicy)
        case reconnectAsked(delay: TimeInterval)
        case disconnectAsked
        case terminateAsked
        /// A run needs a link.
        case linkNeededByRun
        /// No run needs the link any more.
        case linkNotNeededByRuns
        /// A link is needed to find out whether a bond holds.
        case linkNeededByPairing
        /// That is known, or of no interest any more. The link stays if it is up.
        case linkNotNeededByPairing
        /// The link is up after a pairing. `isOurs`: the pairing has made it.
        case linkMade(isOurs: Bool)
        /// The link is up, and of no use.
        case linkDied
        /// The link was lost because the peripheral no longer has the keys of its bond.
        case keysMissing
        /// The manager has ended.
        case closed(keepingLinks: Bool)

        // From BlueZ.
        /// The call has left the queue.
        case connectStarted(Attempt)
        case connectReplied(Attempt, ConnectionFailure?)
        case disconnectReplied
        /// `Device1.Connected`.
        case connectedChanged(Bool)
        case deviceAppeared(isConnected: Bool)
        case deviceDisappeared
        /// Whether there is a daemon, and an adapter with power. Without them there is no link either.
        case adapterUsable(Bool)

        case timerFired(Timer)
    }

    enum Timer: Hashable, CaseIterable {
        /// The delay of `reconnect(withDelay:)`.
        case delay
        /// The back-off between two attempts of one try.
        case retry
        /// The user's `connectionTimeout`.
        case timeout
        /// How long the link may take to appear after a successful reply.
        case confirmation
        case seeking
        /// How long scans are paused.
        case pause
        /// How long a cancelled `Connect` may take to end.
        case cancellation
        /// How long a link may take to end.
        case drop
        /// How long a connection lasts before it counts as stable.
        case stability
        /// How long the end of the adapter counts as the cause of the loss that was reported last.
        case loss
    }

    enum Report: Equatable {
        case connected, timedOut, disconnected, forced
        case gaveUp(after: Spent)

        /// The error of a stream without values; `nil` for success.
        var error: PeripheralError? {
            switch self {
            case .connected: nil
            case .timedOut, .gaveUp(after: .timeouts): .connectionTimeout
            case .disconnected, .gaveUp(after: .disconnections): .disconnected
            case .forced: .forcedDisconnect
            }
        }

        var isTimeout: Bool { self == .timedOut || self == .gaveUp(after: .timeouts) }
    }

    /// The count of retries that has been used up.
    enum Spent: Equatable { case timeouts, disconnections }

    enum LinkLoss: Equatable {
        case disconnected
        /// The application requested it.
        case forced
        /// The daemon, the adapter or its power is gone.
        case adapterLost
    }

    enum State: Equatable {
        case disconnected
        case waiting(Wait)
        /// BlueZ does not have the device: discovery runs until the device is received.
        case seeking
        case connecting(Attempt, Progress)
        /// The application or the time-out has ended the attempt, and BlueZ is cancelling it.
        case cancelling(Attempt, Ending)
        case connected
        case disconnecting(Ending)
        /// The manager has ended.
        case closed
    }

    enum Wait: Equatable { case delay, backOff, power }

    enum Progress: Equatable {
        /// Waits behind the calls of other peripherals.
        case queued
        case underWay
        /// BlueZ has replied success, and `Connected` is still false.
        case confirming
    }

    /// What follows when a link, or an attempt, has ended.
    struct Ending: Equatable {
        /// `nil` if it was reported already.
        var report: Report?
        var next: Next

        enum Next: Equatable {
            case rest
            case connect(after: TimeInterval)
            case finish
        }

        var isFollowedByConnection: Bool { if case .connect = next { true } else { false } }

        /// The same end, now at the request of the application.
        var forced: Ending { Ending(report: .forced, next: next == .finish ? .finish : .rest) }

        /// Returns the same end, followed by a connection. A stream that was to finish does so at once, without this
        /// report.
        func connecting(after delay: TimeInterval) -> Ending {
            Ending(report: next == .finish ? nil : report, next: .connect(after: delay))
        }

        /// The same end, without a connection after it.
        var resting: Ending { isFollowedByConnection ? Ending(report: report, next: .rest) : self }
    }

    // MARK: Limits

    /// Seconds that a successful reply waits for `Connected`, which precedes the reply or is read after it. The reply
    /// to that read can take long: `bluetoothd` does not reply to calls while it discovers services.
    static let confirmationLimit: TimeInterval = 10
    /// Seconds of search for a device that BlueZ does not know, before the next back-off.
    static let seekLimit: TimeInterval = 10
    /// Seconds that BlueZ may take to end a cancelled attempt; the client gives it six.
    static let cancellationLimit: TimeInterval = 8
    /// Seconds that BlueZ may take to end a link; it takes two (DISCONNECT_TIMER).
    static let dropLimit: TimeInterval = 6
    /// Seconds after which a connection counts as a success, whatever follows.
    static let stability: TimeInterval = 3
    /// Seconds after the report of a loss in which the end of the adapter counts as its cause. BlueZ reports the ends
    /// of the links first, and the kernel waits for them up to five seconds when the power is switched off
    /// (HCI_POWER_OFF_TIMEOUT).
    static let lossLimit: TimeInterval = 6
    /// Seconds for which scans pause when an attempt begins. A controller reports an advertiser once per scan, and the
    /// kernel restarts its scan every 10.24 s: during an open discovery BlueZ may receive the peripheral only then
    /// (measured: 10.4 s instead of 0.06). A peripheral that does not connect within these seconds is not near, and the
    /// scans for other peripherals continue.
    static let pauseLimit: TimeInterval = 3
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
    private(set) var failures: [ConnectionFailure] = []
    /// Why the last report was not that of a connection, after a run requested a link; `nil` if there was none.
    private(set) var lastError: PeripheralError?
    /// Whether the present link was established by our own `Connect`.
    private(set) var isOurs = false
    /// Whether the application wants a connection: from `connect` on, through losses and time-outs, until the application
    /// ends it or it is given up.
    private(set) var isWanted = false
    /// Whether the present link, or the try for one, exists only because of runs.
    private(set) var isForRuns = false
    /// Whether the present try was begun to find out whether a bond holds.
    private(set) var isForPairing = false
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
    /// A cancelled attempt that BlueZ has not replied to.
    private var abandoned: Attempt?
    /// Whether the stream of `number` is finished.
    private var isFinished = true

    // What BlueZ reported last.
    private(set) var isUsable: Bool
    private var isPresent: Bool
    private var isLinkUp: Bool

    private(set) var isSeeking = false
    private(set) var isPausing = false
    private(set) var timers: Set<Timer> = []

    init(backOff: BackOff, isUsable: Bool, isPresent: Bool, isLinkUp: Bool) {
        self.backOff = backOff
        self.isUsable = isUsable
        self.isPresent = isPresent
        self.isLinkUp = isLinkUp && isUsable && isPresent
    }

    // MARK: Queries

    /// Whether a link of ours exists, or may appear.
    var hasOwnLink: Bool {
        switch state {
        case .connecting, .cancelling: true
        case .connected, .disconnecting: isOurs
        case .disconnected, .waiting, .seeking, .closed: false
        }
    }

    /// Whether the peripheral is connected or to be connected, or the end of its connection is still under way.
    var isInUse: Bool {
        switch state {
        case .disconnected, .closed: false
        case .waiting, .seeking, .connecting, .cancelling, .connected, .disconnecting: true
        }
    }

    // MARK: Events

    mutating func event(_ event: Event, into orders: inout Orders) {
        switch event {
        case .connectAsked(let policy): connectAsked(policy, &orders)
        case .reconnectAsked(let delay): reconnectAsked(delay, &orders)
        case .disconnectAsked: disconnectAsked(&orders)
        case .terminateAsked: terminateAsked(&orders)
        case .linkNeededByRun: linkNeededByRun(&orders)
        case .linkNotNeededByRuns: linkNotNeededByRuns(&orders)
        case .linkNeededByPairing: linkNeededByPairing(&orders)
        case .linkNotNeededByPairing: linkNotNeededByPairing(&orders)
        case .linkMade(let isOurs): linkMade(isOurs: isOurs, &orders)
        case .linkDied: end(then: .rest, isLoss: true, &orders)
        case .keysMissing: areKeysMissing = true
        case .closed(let keepingLinks): close(keepingLinks: keepingLinks, &orders)
        case .connectStarted(let attempt): connectStarted(attempt, &orders)
        case .connectReplied(let attempt, let failure): connectReplied(attempt, failure, &orders)
        case .disconnectReplied: disconnectReplied(&orders)
        case .connectedChanged(let isUp): connectedChanged(isUp, &orders)
        case .deviceAppeared(let isConnected): deviceAppeared(isConnected: isConnected, &orders)
        case .deviceDisappeared: deviceDisappeared(&orders)
        case .adapterUsable(let usable): if usable { adapterAppeared(&orders) } else { adapterDisappeared(&orders) }
        case .timerFired(let timer): fired(timer, &orders)
        }
    }

    // MARK: The application

    private mutating func connectAsked(_ new: ConnectionPolicy, _ orders: inout Orders) {
        isForRuns = false
        switch state {
        case .disconnected:
            takeOver(new, &orders)
            beginTry(&orders)
        case .waiting(.delay):
            cancel(.delay, &orders)
            takeOver(new, &orders)
            beginTry(&orders)
        case .waiting(.backOff):
            cancel(.retry, &orders)
            cancel(.timeout, &orders)
            takeOver(new, &orders)
            beginTry(&orders)
        case .connecting(_, .queued):
            takeOver(new, &orders)
        case .waiting(.power), .seeking, .connecting:
            // The present try serves the new call as well; only its time limit begins again.
            cancel(.timeout, &orders)
            takeOver(new, &orders)
            startTimeout(&orders)
        case .connected:
            takeOver(new, &orders)
            report(.connected, &orders)
        case .cancelling(_, let ending), .disconnecting(let ending):
            replaceEnding(Ending(report: nil, next: .connect(after: 0)))
            reportEnd(ending, &orders)
            takeOver(new, &orders)
        case .closed:
            number += 1
            isWanted = false
            refuse(.disconnected, &orders)
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

    private mutating func reconnectAsked(_ delay: TimeInterval, _ orders: inout Orders) {
        isWanted = state != .closed
        isForRuns = false
        reconnect(after: delay, &orders)
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
            cancel(.delay, &orders)
            guard wait > 0 else { return beginTry(&orders) }
            state = .waiting(.delay)
            start(.delay, wait, &orders)
        case .cancelling(_, let ending), .disconnecting(let ending):
            replaceEnding(ending.connecting(after: delay))
            guard ending.next == .finish else { return }
            reportEnd(ending, &orders)
            finish(&orders)
        case .waiting(.backOff), .waiting(.power), .seeking, .connecting, .connected, .closed:
            break
        }
    }

    private mutating func disconnectAsked(_ orders: inout Orders) {
        isWanted = false
        switch state {
        case .disconnected, .closed: refuse(.disconnected, &orders)
        case .waiting, .seeking, .connecting, .connected: end(then: .rest, &orders)
        case .cancelling(_, let ending), .disconnecting(let ending): replaceEnding(ending.forced)
        }
    }

    private mutating func terminateAsked(_ orders: inout Orders) {
        isWanted = false
        switch state {
        case .disconnected, .closed: finish(&orders)
        case .waiting, .seeking, .connecting, .connected: end(then: .finish, &orders)
        case .cancelling, .disconnecting: replaceEnding(Ending(report: .forced, next: .finish))
        }
        orders.append(.forget)
    }

    /// Ends the present try or link at the request of the application, or because nothing needs it, or because it is of no
    /// use. The last is reported as a loss.
    private mutating func end(then next: Ending.Next, isLoss: Bool = false, _ orders: inout Orders) {
        let ending = Ending(report: isLoss ? .disconnected : .forced, next: next)
        switch state {
        case .waiting, .seeking:
            endTry(&orders)
            settle(ending, &orders)
        case .connecting(let attempt, let progress):
            endTry(&orders)
            cancelAttempt(attempt, progress, ending, &orders)
        case .connected:
            state = .disconnecting(ending)
            cancel(.stability, &orders)
            orders.append(.linkWentDown(isLoss ? .disconnected : .forced))
            orders.append(.callDisconnect)
            start(.drop, Self.dropLimit, &orders)
        case .disconnected, .cancelling, .disconnecting, .closed:
            break
        }
    }

    /// Changes what follows the end of the attempt or link that is being ended.
    private mutating func replaceEnding(_ ending: Ending) {
        if case .cancelling(let attempt, _) = state {
            state = .cancelling(attempt, ending)
        } else {
            state = .disconnecting(ending)
        }
    }

    private mutating func close(keepingLinks: Bool, _ orders: inout Orders) {
        switch state {
        case .disconnected, .waiting, .seeking, .cancelling, .disconnecting, .closed:
            break
        case .connecting(_, .confirming):
            // BlueZ has replied: only a link that still appears has to be ended.
            if !keepingLinks { orders.append(.callDisconnect) }
        case .connecting:
            orders.append(.cancelConnect)
        case .connected:
            orders.append(.linkWentDown(.forced))
            // BlueZ keeps the links of a client that has ended, and no other host could connect to the peripheral (B7).
            if isOurs && !keepingLinks { orders.append(.callDisconnect) }
        }
        endTry(&orders)
        for timer in [Timer.delay, .cancellation, .drop, .stability, .loss] { cancel(timer, &orders) }
        finish(&orders)
        state = .closed
    }

    // MARK: Runs

    // A run uses the present link, the present try, or a new one. The stream of the last `connect` reports it as any other.
    // Only a link that exists for runs alone ends with them: after `connect` or `reconnect` it belongs to the application.

    private mutating func linkNeededByRun(_ orders: inout Orders) {
        lastError = nil
        switch state {
        case .disconnected:
            isForRuns = true
        case .waiting(.delay):
            // The application's own try, only earlier.
            break
        case .cancelling(_, let ending), .disconnecting(let ending):
            if ending.isFollowedByConnection { return }
            isForRuns = true
        case .waiting(.backOff), .waiting(.power), .seeking, .connecting, .connected, .closed:
            return
        }
        reconnect(after: 0, &orders)
    }

    private mutating func linkNotNeededByRuns(_ orders: inout Orders) {
        guard isForRuns else { return }
        isForRuns = false
        switch state {
        case .waiting, .seeking, .connecting: end(then: .rest, &orders)
        // A link that another program established before stays.
        case .connected: if isOurs { end(then: .rest, &orders) }
        case .cancelling(_, let ending), .disconnecting(let ending): replaceEnding(ending.resting)
        case .disconnected, .closed: break
        }
    }

    // MARK: Bonds

    private mutating func linkNeededByPairing(_ orders: inout Orders) {
        guard state == .disconnected else { return }
        // This link is to show whether they are.
        (lastError, areKeysMissing) = (nil, false)
        isForPairing = true
        reconnect(after: 0, &orders)
    }

    private mutating func linkNotNeededByPairing(_ orders: inout Orders) {
        guard isForPairing else { return }
        isForPairing = false
        guard !isWanted, !isForRuns else { return }
        switch state {
        case .waiting, .seeking, .connecting: end(then: .rest, &orders)
        case .disconnected, .connected, .cancelling, .disconnecting, .closed: break
        }
    }

    // MARK: A try

    private mutating func beginTry(_ orders: inout Orders) {
        failedAttempts = 0
        failures = []
        attempt(&orders)
    }

    private mutating func attempt(_ orders: inout Orders) {
        guard isUsable else {
            state = .waiting(.power)
            // The time-out also limits the wait for an adapter that rfkill blocks. When the power returns, it begins
            // again.
            endTry(&orders)
            return startTimeout(&orders)
        }
        // A link that another program established, or that remained from an earlier process, is adopted (B5).
        if isLinkUp { return linkUp(isOurs: false, &orders) }
        if isPresent { call(&orders) } else { seek(&orders) }
    }

    private mutating func call(_ orders: inout Orders) {
        lastAttempt += 1
        hasFallen = false
        state = .connecting(lastAttempt, .queued)
        orders.append(.callConnect(lastAttempt))
    }

    /// Searches for a device that BlueZ has removed because it did not receive it for some time (B4).
    private mutating func seek(_ orders: inout Orders) {
        state = .seeking
        resumeScan(&orders)
        if !isSeeking {
            isSeeking = true
            orders.append(.seek)
        }
        startTimeout(&orders)
        start(.seeking, Self.seekLimit, &orders)
    }

    private mutating func connectStarted(_ attempt: Attempt, _ orders: inout Orders) {
        guard state == .connecting(attempt, .queued) else { return }
        state = .connecting(attempt, .underWay)
        startTimeout(&orders)
        // BlueZ keeps the device only while the search runs, until there is a link.
        guard !isSeeking || failedAttempts >= Self.failuresBeforeSearchPauses else { return }
        if isPausing {
            cancel(.pause, &orders)
        } else {
            isPausing = true
            orders.append(.pauseScan)
        }
        start(.pause, Self.pauseLimit, &orders)
    }

    private mutating func connectReplied(
        _ attempt: Attempt, _ failure: ConnectionFailure?, _ orders: inout Orders
    ) {
        let isLate = abandoned == attempt
        if isLate { abandoned = nil }
        switch state {
        case .connecting(attempt, _):
            if let failure { return attemptFailed(failure, &orders) }
            if isLinkUp { return linkUp(isOurs: true, &orders) }
            // BlueZ 5.66 may reply success to an attempt that failed (B6).
            if hasFallen { return attemptFailed(.noLink, &orders) }
            state = .connecting(attempt, .confirming)
            start(.confirmation, Self.confirmationLimit, &orders)
        case .cancelling(attempt, let ending):
            cancel(.cancellation, &orders)
            // The link was established before the cancellation, or its report follows the reply.
            let isComing = failure == nil && !hasFallen
            if isLinkUp || isComing { drop(ending, calling: failure == nil, &orders) } else { settle(ending, &orders) }
        case .disconnected where isLate && isLinkUp && failure == nil:
            // An attempt that was given up has succeeded after all.
            orders.append(.callDisconnect)
        case .disconnected, .waiting, .seeking, .connecting, .cancelling, .connected, .disconnecting, .closed:
            break
        }
    }

    private mutating func attemptFailed(_ failure: ConnectionFailure, _ orders: inout Orders) {
        failures = failures.suffix(15) + [failure]
        cancel(.confirmation, &orders)
        switch failure.cause {
        case .authentication, .outOfSlots:
            failTry(failure, &orders)
        case .other where hasFailedLately(with: .other, times: Self.unknownFailuresAllowed):
            failTry(failure, &orders)
        case .notFound where state != .seeking:
            seek(&orders)
        case .busy where hasFailedLately(with: .busy, times: Self.busyRepliesAllowed):
            orders.append(.callDisconnect)
            waitAndRetry(&orders)
        case .transient, .notFound, .adapterOff, .busy, .cancelled, .other:
            waitAndRetry(&orders)
        }
    }

    private func hasFailedLately(with cause: ConnectCause, times: Int) -> Bool {
        failures.count >= times && failures.suffix(times).allSatisfy { $0.cause == cause }
    }

    private mutating func waitAndRetry(_ orders: inout Orders) {
        failedAttempts += 1
        state = .waiting(.backOff)
        start(.retry, backOff.delay(after: failedAttempts), &orders)
    }

    /// Ends the try after an error that another attempt would repeat.
    private mutating func failTry(_ failure: ConnectionFailure, _ orders: inout Orders) {
        state = .disconnected
        isWanted = false
        fruitlessTries += 1
        endTry(&orders)
        // From 5.83 on BlueZ reports a peripheral that no longer has the keys of its bond.
        let isKeyMissing = failure.failure.message.hasSuffix("key-missing")
        let refusal =
            failure.refusal
            ?? (isKeyMissing ? .pairing(.keyMissing(isCertain: true)) : .connectionFailed(failure.failure))
        if case .pairing = refusal { areKeysMissing = true }
        refuse(refusal, &orders)
    }

    private mutating func linkMade(isOurs: Bool, _ orders: inout Orders) {
        areKeysMissing = false
        if state == .connected {
            // A try of the application has adopted it.
            self.isOurs = self.isOurs || isOurs
        } else if state == .disconnected, isLinkUp {
            linkUp(isOurs: isOurs, &orders)
        }
    }

    private mutating func linkUp(isOurs: Bool, _ orders: inout Orders) {
        self.isOurs = isOurs
        state = .connected
        timeouts = 0
        abandoned = nil
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
        for timer in [Timer.timeout, .retry, .confirmation, .seeking] { cancel(timer, &orders) }
        stopSeeking(&orders)
        resumeScan(&orders)
    }

    private mutating func stopSeeking(_ orders: inout Orders) {
        guard isSeeking else { return }
        isSeeking = false
        orders.append(.stopSeeking)
    }

    private mutating func resumeScan(_ orders: inout Orders) {
        guard isPausing else { return }
        isPausing = false
        cancel(.pause, &orders)
        orders.append(.resumeScan)
    }

    /// Cancels an attempt, and waits until BlueZ has ended it (B2).
    private mutating func cancelAttempt(
        _ attempt: Attempt, _ progress: Progress, _ ending: Ending, _ orders: inout Orders
    ) {
        // BlueZ has replied: only a link that still appears has to be ended.
        if progress == .confirming { return drop(ending, calling: true, &orders) }
        state = .cancelling(attempt, ending)
        orders.append(.cancelConnect)
        start(.cancellation, Self.cancellationLimit, &orders)
    }

    /// Waits for the end of a link that is no longer wanted.
    private mutating func drop(_ ending: Ending, calling: Bool, _ orders: inout Orders) {
        state = .disconnecting(ending)
        if calling { orders.append(.callDisconnect) }
        start(.drop, Self.dropLimit, &orders)
    }

    /// Reports that an attempt or a link has ended, and continues with what was requested since.
    private mutating func settle(_ ending: Ending, _ orders: inout Orders) {
        state = .disconnected
        isOurs = false
        let wasFinished = isFinished
        for timer in [Timer.cancellation, .drop, .delay] { cancel(timer, &orders) }
        reportEnd(ending, &orders)
        switch ending.next {
        case .rest: break
        case .finish: finish(&orders)
        // If the report has used up the retries, the connection stays given up.
        case .connect(let delay): if isFinished == wasFinished { reconnect(after: delay, &orders) }
        }
    }

    // MARK: The link

    private mutating func connectedChanged(_ isUp: Bool, _ orders: inout Orders) {
        if isLinkUp && !isUp { hasFallen = true }
        isLinkUp = isUp
        switch state {
        case .connecting(_, .confirming):
            if isUp { linkUp(isOurs: true, &orders) }
        case .connecting(_, .underWay), .cancelling:
            // The reply decides: before the reply BlueZ has no ATT link, and may still fail.
            break
        case .connecting(_, .queued):
            guard isUp else { return }
            orders.append(.cancelConnect)
            linkUp(isOurs: false, &orders)
        case .waiting(.delay):
            guard isUp else { return }
            cancel(.delay, &orders)
            linkUp(isOurs: false, &orders)
        case .waiting(.backOff), .seeking:
            if isUp { linkUp(isOurs: false, &orders) }
        case .connected:
            if !isUp { lost(.disconnected, &orders) }
        case .disconnecting(let ending):
            if !isUp { settle(ending, &orders) }
        case .disconnected:
            guard isUp, abandoned != nil else { return }
            abandoned = nil
            orders.append(.callDisconnect)
        case .waiting(.power), .closed:
            break
        }
    }

    private mutating func lost(_ loss: LinkLoss, _ orders: inout Orders) {
        state = .disconnected
        isOurs = false
        cancel(.stability, &orders)
        orders.append(.linkWentDown(loss))
        count(.disconnected, &orders)
    }

    private mutating func disconnectReplied(_ orders: inout Orders) {
        guard case .disconnecting(let ending) = state, !isLinkUp else { return }
        settle(ending, &orders)
    }

    // MARK: The device

    private mutating func deviceAppeared(isConnected: Bool, _ orders: inout Orders) {
        isPresent = true
        // The property was read because the reply was a success and no link was reported.
        if case .connecting(_, .confirming) = state, !isConnected { return attemptFailed(.noLink, &orders) }
        guard state == .seeking else {
            if isConnected != isLinkUp { connectedChanged(isConnected, &orders) }
            return
        }
        isLinkUp = isConnected
        // The discovery continues until there is a link, because otherwise BlueZ might remove the device again.
        cancel(.seeking, &orders)
        if isLinkUp { linkUp(isOurs: false, &orders) } else { call(&orders) }
    }

    private mutating func deviceDisappeared(_ orders: inout Orders) {
        isPresent = false
        isLinkUp = false
        switch state {
        case .connecting(_, .confirming): attemptFailed(.noLink, &orders)
        case .connected: lost(.disconnected, &orders)
        case .disconnecting(let ending): settle(ending, &orders)
        // A call that is under way is replied to, or exceeds its time.
        case .disconnected, .waiting, .seeking, .connecting, .cancelling, .closed: break
        }
    }

    // MARK: The adapter

    private mutating func adapterAppeared(_ orders: inout Orders) {
        isUsable = true
        guard state == .waiting(.power) else { return }
        cancel(.timeout, &orders)
        beginTry(&orders)
    }

    /// Ends what is under way, with one report. A try that only waits continues to wait.
    /// BlueZ reports the ends of the links before that of the adapter. If the program has called `reconnect()` in
    /// between, or a run has begun, the next try is already under way: it waits for the adapter, as if it had begun a
    /// moment later.
    private mutating func adapterDisappeared(_ orders: inout Orders) {
        guard isUsable else { return }
        let isLossReported = timers.contains(.loss)
        isUsable = false
        isLinkUp = false
        abandoned = nil
        cancel(.loss, &orders)
        switch state {
        case .disconnected, .waiting(.delay), .waiting(.power), .closed:
            break
        case .waiting(.backOff), .seeking:
            interruptTry(isLossReported: isLossReported, &orders)
        case .connecting:
            orders.append(.cancelConnect)
            interruptTry(isLossReported: isLossReported, &orders)
        case .connected:
            lost(.adapterLost, &orders)
        case .cancelling(_, let ending), .disconnecting(let ending):
            settle(ending, &orders)
        }
    }

    private mutating func interruptTry(isLossReported: Bool, _ orders: inout Orders) {
        state = isLossReported ? .waiting(.power) : .disconnected
        endTry(&orders)
        if isLossReported { startTimeout(&orders) } else { count(.disconnected, &orders) }
    }

    // MARK: Reports

    /// Counts and reports an event to the present stream, and gives the connection up if a count is used up.
    private mutating func count(_ event: Report, _ orders: inout Orders) {
        cancel(.loss, &orders)
        switch event {
        case .timedOut:
            timeouts += 1
            fruitlessTries += 1
            guard timeouts <= policy.timeoutRetries else { return giveUp(after: .timeouts, &orders) }
        case .disconnected:
            disconnections += 1
            fruitlessTries += 1
            // The end of the adapter may be what ended the link.
            if isUsable { start(.loss, Self.lossLimit, &orders) }
            guard disconnections <= policy.disconnectRetries else { return giveUp(after: .disconnections, &orders) }
        case .connected, .forced, .gaveUp:
            break
        }
        report(event, &orders)
    }

    private mutating func giveUp(after spent: Spent, _ orders: inout Orders) {
        isWanted = false
        report(.gaveUp(after: spent), &orders)
        finish(&orders)
    }

    private mutating func reportEnd(_ ending: Ending, _ orders: inout Orders) {
        if let report = ending.report { count(report, &orders) }
    }

    private mutating func report(_ report: Report, _ orders: inout Orders) {
        lastError = report.error
        orders.append(.report(number, report))
    }

    private mutating func refuse(_ refusal: PeripheralError, _ orders: inout Orders) {
        lastError = refusal
        orders.append(.reportFailure(number, refusal))
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
        timers.remove(timer)
        switch (timer, state) {
        case (.pause, _):
            resumeScan(&orders)
        case (.delay, .waiting(.delay)):
            beginTry(&orders)
        case (.retry, .waiting(.backOff)):
            attempt(&orders)
        case (.confirmation, .connecting(_, .confirming)):
            attemptFailed(.noLink, &orders)
        case (.seeking, .seeking):
            stopSeeking(&orders)
            attemptFailed(.notFound, &orders)
        case (.timeout, .waiting(.backOff)), (.timeout, .waiting(.power)), (.timeout, .seeking):
            endTry(&orders)
            settle(Ending(report: .timedOut, next: .rest), &orders)
        case (.timeout, .connecting(let attempt, let progress)):
            endTry(&orders)
            cancelAttempt(attempt, progress, Ending(report: .timedOut, next: .rest), &orders)
        case (.cancellation, .cancelling(let attempt, let ending)):
            abandoned = attempt
            if isLinkUp { drop(ending, calling: true, &orders) } else { settle(ending, &orders) }
        case (.drop, .disconnecting(let ending)):
            settle(ending, &orders)
        case (.stability, .connected):
            fruitlessTries = 0
            areKeysMissing = false
        case (.delay, _), (.retry, _), (.confirmation, _), (.seeking, _), (.timeout, _), (.cancellation, _),
            (.drop, _), (.stability, _), (.loss, _):
            // The state that the timer limited has ended. For `.loss` it suffices that the timer no longer runs.
            break
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

    private var generator: SplitMix

    /// Creates a back-off. Equal seeds give equal waits.
    init(seed: UInt64) { generator = SplitMix(state: seed) }

    /// Returns the seconds to wait after `failures` failures in a row; 0 after none.
    mutating func delay(after failures: Int) -> TimeInterval {
        guard failures > 0 else { return 0 }
        let step = Self.steps[min(failures, Self.steps.count) - 1]
        return step * Double.random(in: 1 - Self.jitter...1 + Self.jitter, using: &generator)
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: small, and sufficient for waits.
private struct SplitMix: RandomNumberGenerator, Equatable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
