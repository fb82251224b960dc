import BlueZ
import Foundation

/// From the wish to the link.
extension ConnectionMachine {
    mutating func beginTry() -> [Effect] {
        failedAttempts = 0
        failures = []
        return attempt()
    }

    mutating func attempt() -> [Effect] {
        guard isUsable else {
            state = .waiting(.power)
            // Nobody waits for ever because of an rfkill switch. When the power comes, the radio has its full time.
            return endTry() + startTimeout()
        }
        // Somebody else's link, or one that outlived its program: it is adopted (B5).
        guard !isLinkUp else { return linkUp(isOurs: false) }
        guard isPresent else { return seek() }
        return call()
    }

    mutating func call() -> [Effect] {
        lastAttempt += 1
        hasFallen = false
        state = .connecting(lastAttempt, .queued)
        return [.callConnect(lastAttempt)]
    }

    /// BlueZ drops a device that it has not heard for a while, and then knows nothing of it (B4).
    private mutating func seek() -> [Effect] {
        state = .seeking
        var effects = resumeScan()
        if !isSeeking {
            isSeeking = true
            effects.append(.seek)
        }
        return effects + startTimeout() + start(.seeking, Self.seekLimit)
    }

    mutating func connectStarted(_ attempt: Attempt) -> [Effect] {
        guard state == .connecting(attempt, .queued) else { return [] }
        state = .connecting(attempt, .underWay)
        return startTimeout() + pauseScan()
    }

    private mutating func pauseScan() -> [Effect] {
        // A device that had to be sought is kept by the search, until BlueZ has a link to it.
        guard !isSeeking || failedAttempts >= Self.failuresBeforeSearchRests else { return [] }
        guard !isPausing else { return cancel(.pause) + start(.pause, Self.pauseLimit) }
        isPausing = true
        return [.pauseScan] + start(.pause, Self.pauseLimit)
    }

    mutating func connectReplied(_ attempt: Attempt, _ failure: ConnectionFailure?) -> [Effect] {
        let isLate = abandoned == attempt
        if isLate { abandoned = nil }
        switch state {
        case .connecting(attempt, _):
            if let failure { return attemptFailed(failure) }
            // BlueZ 5.66 may reply success to an attempt that came to nothing (B6).
            guard !hasFallen || isLinkUp else { return attemptFailed(.noLink) }
            guard isLinkUp else {
                state = .connecting(attempt, .confirming)
                return start(.confirmation, Self.confirmationLimit)
            }
            return linkUp(isOurs: true)
        case .cancelling(attempt, let ending):
            let effects = cancel(.cancellation)
            // It came too late to be taken back.
            guard !isLinkUp else { return effects + drop(ending, calling: failure == nil) }
            return effects + settle(ending)
        case .disconnected where isLate && isLinkUp && failure == nil:
            // An attempt that was given up long ago has got through after all.
            return [.callDisconnect]
        case .disconnected, .waiting, .seeking, .connecting, .cancelling, .connected, .disconnecting, .closed:
            return []
        }
    }

    mutating func attemptFailed(_ failure: ConnectionFailure) -> [Effect] {
        failures = failures.suffix(15) + [failure]
        let effects = cancel(.confirmation)
        switch failure.cause {
        case .authentication, .outOfSlots:
            return effects + refuse(failure)
        case .other where hasFailedLately(with: .other, times: Self.unknownFailuresAllowed):
            return effects + refuse(failure)
        case .notFound where state != .seeking:
            return effects + seek()
        case .busy where hasFailedLately(with: .busy, times: Self.busyRepliesAllowed):
            return effects + [.callDisconnect] + waitAndRetry()
        case .transient, .notFound, .adapterOff, .busy, .cancelled, .other:
            return effects + waitAndRetry()
        }
    }

    private func hasFailedLately(with cause: ConnectCause, times: Int) -> Bool {
        failures.count >= times && failures.suffix(times).allSatisfy { $0.cause == cause }
    }

    private mutating func waitAndRetry() -> [Effect] {
        failedAttempts += 1
        state = .waiting(.backOff)
        return start(.retry, backOff.delay(after: failedAttempts))
    }

    /// No further attempt would help.
    private mutating func refuse(_ failure: ConnectionFailure) -> [Effect] {
        state = .disconnected
        isWanted = false
        fruitlessTries += 1
        return endTry() + [.reportFailure(number, .refused(failure.failure))]
    }

    mutating func linkUp(isOurs: Bool) -> [Effect] {
        self.isOurs = isOurs
        state = .connected
        timeouts = 0
        abandoned = nil
        return endTry() + start(.stability, Self.stability) + [.linkWentUp] + tell(.connected)
    }

    /// The user's patience is counted from the moment at which the radio begins to try, so that nobody's time runs out
    /// behind others; and from the moment at which there is no radio that could.
    mutating func startTimeout() -> [Effect] {
        guard let timeout = policy.timeout, !timers.contains(.timeout) else { return [] }
        return start(.timeout, timeout)
    }

    // MARK: The end of a try

    /// Ends all that belongs to a try and not to the link.
    mutating func endTry() -> [Effect] {
        var effects = cancel(.timeout) + cancel(.retry) + cancel(.confirmation) + cancel(.seeking)
        if isSeeking {
            isSeeking = false
            effects.append(.stopSeeking)
        }
        return effects + resumeScan()
    }

    mutating func resumeScan() -> [Effect] {
        guard isPausing else { return [] }
        isPausing = false
        return cancel(.pause) + [.resumeScan]
    }

    /// Takes an attempt back, and waits until BlueZ has let go of it (B2).
    mutating func cancelAttempt(_ attempt: Attempt, _ progress: Progress, _ ending: Ending) -> [Effect] {
        // It is answered already: nothing is left to take back but the link, should it come up yet.
        guard progress != .confirming else { return drop(ending, calling: true) }
        state = .cancelling(attempt, ending)
        return [.cancelConnect] + start(.cancellation, Self.cancellationLimit)
    }

    /// Waits for the end of a link that nobody wants any more.
    mutating func drop(_ ending: Ending, calling: Bool) -> [Effect] {
        state = .disconnecting(ending)
        return (calling ? [.callDisconnect] : []) + start(.drop, Self.dropLimit)
    }

    /// An attempt or a link has ended: says so, and goes on with what was asked for meanwhile.
    mutating func settle(_ ending: Ending) -> [Effect] {
        state = .disconnected
        isOurs = false
        let wasFinished = isFinished
        var effects = cancel(.cancellation) + cancel(.drop) + cancel(.delay)
        if let report = ending.report { effects += tell(report) }
        switch ending.next {
        case .rest:
            return effects
        case .finish:
            return effects + finish()
        case .connect(let delay):
            // What was given up in this very moment stays so.
            guard isFinished == wasFinished else { return effects }
            return effects + reconnect(after: delay)
        }
    }

    // MARK: Telling

    /// Reports to the present stream, and gives up where a count is spent.
    mutating func tell(_ report: Report) -> [Effect] {
        var effects = cancel(.loss)
        switch report {
        case .timedOut:
            timeouts += 1
            fruitlessTries += 1
            guard timeouts <= policy.timeoutRetries else { return effects + giveUp(after: .timeouts) }
        case .disconnected:
            disconnections += 1
            fruitlessTries += 1
            // The adapter may be what took the link along.
            if isUsable { effects += start(.loss, Self.lossLimit) }
            guard disconnections <= policy.disconnectRetries else { return effects + giveUp(after: .disconnections) }
        case .connected, .forced, .gaveUp:
            break
        }
        return effects + [.report(number, report)]
    }

    private mutating func giveUp(after spent: Spent) -> [Effect] {
        isWanted = false
        return [.report(number, .gaveUp(after: spent))] + finish()
    }

    mutating func finish() -> [Effect] {
        guard !isFinished else { return [] }
        isFinished = true
        return [.finishStream(number)]
    }

    // MARK: Timers

    mutating func start(_ timer: Timer, _ seconds: TimeInterval) -> [Effect] {
        timers.insert(timer)
        return [.startTimer(timer, seconds)]
    }

    mutating func cancel(_ timer: Timer) -> [Effect] { timers.remove(timer) == nil ? [] : [.cancelTimer(timer)] }
}
