import Foundation

/// How one peripheral gets connected, stays so, and ends: behaviours B1 to B8 and F1 to F3 of
/// Documentation/Reliability.md.
///
/// A *try* is what `connect` or `reconnect` begins and an event ends. Within a try there may be several *attempts*:
/// `Connect` calls, with a back-off between them, since most of BlueZ's refusals mean only that the radio had bad luck.
///
/// BlueZ cannot be left alone with an attempt: a `Connect` that is not taken back goes on after our time-out and makes
/// the next one fail with "Operation already in progress" (B2). And a `Connect` within the two seconds that BlueZ takes
/// to end a link succeeds, and then the link ends (B2a). So each end is waited for, within limits, before anything
/// else begins.
///
/// No clock, no bus: time comes in as ``Event/timerFired(_:)``, calls go out as ``Effect``s. A late reply to an attempt
/// that is over changes nothing. Fields are changed here and in this type's other files alone.
struct ConnectionMachine: Equatable {
    /// Seconds that a good reply waits for `Connected`, which comes before it, or is asked for. The answer takes its time:
    /// `bluetoothd` answers nobody while it discovers services.
    static let confirmationLimit: TimeInterval = 10
    /// Seconds of search for a device that BlueZ does not know, before the next back-off.
    static let seekLimit: TimeInterval = 10
    /// Seconds that BlueZ may take to end an attempt that was taken back; the client gives it six.
    static let cancellationLimit: TimeInterval = 8
    /// Seconds that BlueZ may take to end a link; it takes two (DISCONNECT_TIMER).
    static let dropLimit: TimeInterval = 6
    /// Seconds after which a connection was no failure, whatever comes.
    static let stability: TimeInterval = 3
    /// Seconds after the report of a loss in which the end of the adapter belongs to that loss. BlueZ reports the ends of
    /// the links first, and the kernel waits for them up to five seconds when the power goes (HCI_POWER_OFF_TIMEOUT).
    static let lossLimit: TimeInterval = 6
    /// Seconds for which scans rest when an attempt begins. A controller reports an advertiser once per scan, and the
    /// kernel restarts its scan every 10.24 s: beside an open discovery BlueZ may hear the peripheral only then (seen:
    /// 10.4 s instead of 0.06). Who does not come within these seconds is not near, and others are to be heard meanwhile.
    static let pauseLimit: TimeInterval = 3
    /// From this failure on a search rests as well.
    static let failuresBeforeSearchRests = 2
    /// How many refusals with an unknown text are taken for bad luck.
    static let unknownFailuresAllowed = 3
    /// After so many "already in progress" in a row what is in progress is taken back, whoever began it: the daemon goes
    /// on with the attempt of a program that died.
    static let busyRepliesAllowed = 5

    var state = State.disconnected
    /// The newest call of `connect`.
    var number: ConnectionNumber = 0
    var policy = ConnectionPolicy()
    /// Why the attempts of the present or last try failed, oldest first; the newest few.
    var failures: [ConnectionFailure] = []
    /// Whether the present link is the work of our own `Connect`.
    var isOurs = false

    var backOff: BackOff
    /// Time-outs since the last connection, disconnections since `connect`.
    var timeouts: UInt = 0
    var disconnections: UInt = 0
    /// Tries in a row that led to no connection that held.
    var fruitlessTries = 0
    /// Attempts of this try that failed.
    var failedAttempts = 0
    var lastAttempt: Attempt = 0
    /// Whether the link of the present attempt came up and is gone again, before the reply.
    var hasFallen = false
    /// An attempt that was taken back and has still not been answered.
    var abandoned: Attempt?
    /// Whether the stream of `number` is over.
    var isFinished = true
    /// Whether the user wants a connection: from `connect` on, through losses and time-outs, until they end it or it is
    /// given up.
    var isWanted = false
    /// Whether the present link, or the try at one, is there for those alone who have borrowed it.
    var isBorrowed = false

    // What BlueZ told last.
    var isUsable: Bool
    var isPresent: Bool
    var isLinkUp: Bool

    var isSeeking = false
    var isPausing = false
    var timers: Set<Timer> = []

    init(backOff: BackOff, isUsable: Bool, isPresent: Bool, isLinkUp: Bool) {
        self.backOff = backOff
        self.isUsable = isUsable
        self.isPresent = isPresent
        self.isLinkUp = isLinkUp && isUsable && isPresent
    }

    mutating func event(_ event: Event) -> [Effect] {
        switch event {
        case .connectAsked(let policy): connectAsked(policy)
        case .reconnectAsked(let delay): reconnectAsked(delay)
        case .disconnectAsked: disconnectAsked()
        case .terminateAsked: terminateAsked()
        case .linkBorrowed: linkBorrowed()
        case .linkReturned: linkReturned()
        case .closed(let keepingLinks): close(keepingLinks: keepingLinks)
        case .connectStarted(let attempt): connectStarted(attempt)
        case .connectReplied(let attempt, let failure): connectReplied(attempt, failure)
        case .disconnectReplied: disconnectReplied()
        case .connectedChanged(let isUp): connectedChanged(isUp)
        case .deviceAppeared(let isConnected): deviceAppeared(isConnected: isConnected)
        case .deviceDisappeared: deviceDisappeared()
        case .adapterUsable(let usable): usable ? adapterCame() : adapterWent()
        case .timerFired(let timer): fired(timer)
        }
    }

    // MARK: What the user wants

    private mutating func connectAsked(_ new: ConnectionPolicy) -> [Effect] {
        isBorrowed = false
        switch state {
        case .disconnected:
            return takeOver(new) + beginTry()
        case .waiting(.delay):
            return cancel(.delay) + takeOver(new) + beginTry()
        case .waiting(.backOff):
            return cancel(.retry) + cancel(.timeout) + takeOver(new) + beginTry()
        case .waiting(.power):
            return cancel(.timeout) + takeOver(new) + startTimeout()
        case .connecting(_, .queued):
            return takeOver(new)
        case .seeking, .connecting:
            // What is under way serves the new wish as well; only its time begins again.
            return cancel(.timeout) + takeOver(new) + startTimeout()
        case .cancelling(let attempt, let ending):
            state = .cancelling(attempt, Ending(report: nil, next: .connect(after: 0)))
            return (ending.report.map { tell($0) } ?? []) + takeOver(new)
        case .connected:
            return takeOver(new) + [.report(number, .connected)]
        case .disconnecting(let ending):
            state = .disconnecting(Ending(report: nil, next: .connect(after: 0)))
            return (ending.report.map { tell($0) } ?? []) + takeOver(new)
        case .closed:
            number += 1
            isWanted = false
            return [.reportFailure(number, .notConnected), .finishStream(number)]
        }
    }

    /// Ends the stream of an earlier `connect`, and counts from zero.
    private mutating func takeOver(_ new: ConnectionPolicy) -> [Effect] {
        let effects = finish() + cancel(.loss)
        number += 1
        isFinished = false
        isWanted = true
        policy = new
        timeouts = 0
        disconnections = 0
        return effects
    }

    private mutating func reconnectAsked(_ delay: TimeInterval) -> [Effect] {
        isWanted = state != .closed
        isBorrowed = false
        return reconnect(after: delay)
    }

    /// Tries again, whoever wants it.
    mutating func reconnect(after delay: TimeInterval) -> [Effect] {
        if isFinished {
            timeouts = 0
            disconnections = 0
        }
        switch state {
        case .disconnected, .waiting(.delay):
            // The first try after a failure is not held up; whoever fails again and again is.
            let wait = delay + backOff.delay(after: fruitlessTries - 1)
            guard wait > 0 else { return cancel(.delay) + beginTry() }
            let effects = cancel(.delay)
            state = .waiting(.delay)
            return effects + start(.delay, wait)
        case .cancelling(let attempt, let ending):
            state = .cancelling(attempt, ending.connecting(after: delay))
            return ending.next == .finish ? (ending.report.map { tell($0) } ?? []) + finish() : []
        case .disconnecting(let ending):
            state = .disconnecting(ending.connecting(after: delay))
            return ending.next == .finish ? (ending.report.map { tell($0) } ?? []) + finish() : []
        case .waiting(.backOff), .waiting(.power), .seeking, .connecting, .connected, .closed:
            return []
        }
    }

    private mutating func disconnectAsked() -> [Effect] {
        isWanted = false
        switch state {
        case .disconnected, .closed:
            return [.reportFailure(number, .notConnected)]
        case .waiting, .seeking, .connecting, .connected:
            return end(then: .rest)
        case .cancelling(let attempt, let ending):
            state = .cancelling(attempt, ending.forced)
            return []
        case .disconnecting(let ending):
            state = .disconnecting(ending.forced)
            return []
        }
    }

    private mutating func terminateAsked() -> [Effect] {
        isWanted = false
        switch state {
        case .disconnected, .closed:
            return finish() + [.forget]
        case .waiting, .seeking, .connecting, .connected:
            return end(then: .finish) + [.forget]
        case .cancelling(let attempt, _):
            state = .cancelling(attempt, Ending(report: .forced, next: .finish))
            return [.forget]
        case .disconnecting:
            state = .disconnecting(Ending(report: .forced, next: .finish))
            return [.forget]
        }
    }

    /// Ends whatever is, because the user says so, or because nobody wants it.
    mutating func end(then next: Ending.Next) -> [Effect] {
        let ending = Ending(report: .forced, next: next)
        switch state {
        case .waiting, .seeking:
            return endTry() + settle(ending)
        case .connecting(let attempt, let progress):
            return endTry() + cancelAttempt(attempt, progress, ending)
        case .connected:
            state = .disconnecting(ending)
            return cancel(.stability) + [.linkWentDown(.forced), .callDisconnect] + start(.drop, Self.dropLimit)
        case .disconnected, .cancelling, .disconnecting, .closed:
            return []
        }
    }

    private mutating func close(keepingLinks: Bool) -> [Effect] {
        var effects: [Effect] = []
        switch state {
        case .disconnected, .waiting, .seeking, .cancelling, .disconnecting, .closed:
            break
        case .connecting(_, .confirming):
            // It is answered already: nothing is left to take back but the link, should it come up yet.
            if !keepingLinks { effects.append(.callDisconnect) }
        case .connecting:
            effects.append(.cancelConnect)
        case .connected:
            effects.append(.linkWentDown(.forced))
            // BlueZ keeps the links of a client that is gone, and the peripheral stays mute for everybody else (B7).
            if isOurs && !keepingLinks { effects.append(.callDisconnect) }
        }
        effects += endTry() + cancel(.delay) + cancel(.cancellation) + cancel(.drop) + cancel(.stability)
        effects += cancel(.loss) + finish()
        state = .closed
        return effects
    }
}
