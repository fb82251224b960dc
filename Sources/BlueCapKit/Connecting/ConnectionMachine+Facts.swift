import Foundation

/// What happens without anybody here having asked for it.
extension ConnectionMachine {
    // MARK: The link

    mutating func connectedChanged(_ isUp: Bool) -> [Effect] {
        if isLinkUp && !isUp { hasFallen = true }
        isLinkUp = isUp
        switch state {
        case .connecting(_, .confirming):
            return isUp ? linkUp(isOurs: true) : []
        case .connecting(_, .underWay), .cancelling:
            // The reply decides: before it BlueZ has no ATT link, and may still fail.
            return []
        case .connecting(_, .queued):
            return isUp ? [.cancelConnect] + linkUp(isOurs: false) : []
        case .waiting(.delay):
            return isUp ? cancel(.delay) + linkUp(isOurs: false) : []
        case .waiting(.backOff), .seeking:
            return isUp ? linkUp(isOurs: false) : []
        case .connected:
            return isUp ? [] : lost(.disconnected)
        case .disconnecting(let ending):
            return isUp ? [] : settle(ending)
        case .disconnected:
            guard isUp, abandoned != nil else { return [] }
            abandoned = nil
            return [.callDisconnect]
        case .waiting(.power), .closed:
            return []
        }
    }

    private mutating func lost(_ loss: LinkLoss) -> [Effect] {
        state = .disconnected
        isOurs = false
        return cancel(.stability) + [.linkWentDown(loss)] + tell(.disconnected)
    }

    mutating func disconnectReplied() -> [Effect] {
        guard case .disconnecting(let ending) = state, !isLinkUp else { return [] }
        return settle(ending)
    }

    // MARK: The device

    mutating func deviceAppeared(isConnected: Bool) -> [Effect] {
        isPresent = true
        // That was asked for, because the reply was good and the link not told of.
        if case .connecting(_, .confirming) = state, !isConnected { return attemptFailed(.noLink) }
        guard state == .seeking else { return isConnected == isLinkUp ? [] : connectedChanged(isConnected) }
        isLinkUp = isConnected
        // The discovery goes on until the link is up, or BlueZ might drop the device once more.
        return cancel(.seeking) + found()
    }

    private mutating func found() -> [Effect] {
        isLinkUp ? linkUp(isOurs: false) : call()
    }

    mutating func deviceDisappeared() -> [Effect] {
        isPresent = false
        isLinkUp = false
        switch state {
        case .connecting(_, .confirming): return attemptFailed(.noLink)
        case .connected: return lost(.disconnected)
        case .disconnecting(let ending): return settle(ending)
        // A call that is under way is answered, or runs out of time.
        case .disconnected, .waiting, .seeking, .connecting, .cancelling, .closed: return []
        }
    }

    // MARK: The adapter

    mutating func adapterCame() -> [Effect] {
        isUsable = true
        guard state == .waiting(.power) else { return [] }
        return cancel(.timeout) + beginTry()
    }

    /// Ends what is under way, with one report. What merely waits goes on waiting.
    ///
    /// BlueZ reports the ends of the links before that of the adapter. If the program has called `reconnect()` in between,
    /// or a run has begun, the next try is under way already: it waits for the adapter, as if it had begun a moment later.
    mutating func adapterWent() -> [Effect] {
        guard isUsable else { return [] }
        let isLossReported = timers.contains(.loss)
        isUsable = false
        isLinkUp = false
        abandoned = nil
        let effects = cancel(.loss)
        switch state {
        case .disconnected, .waiting(.delay), .waiting(.power), .closed:
            return effects
        case .waiting(.backOff), .seeking:
            return effects + interruptTry(isLossReported: isLossReported)
        case .connecting:
            return effects + [.cancelConnect] + interruptTry(isLossReported: isLossReported)
        case .connected:
            return effects + lost(.adapterLost)
        case .cancelling(_, let ending), .disconnecting(let ending):
            return effects + settle(ending)
        }
    }

    private mutating func interruptTry(isLossReported: Bool) -> [Effect] {
        guard isLossReported else {
            state = .disconnected
            return endTry() + tell(.disconnected)
        }
        state = .waiting(.power)
        return endTry() + startTimeout()
    }

    // MARK: Time

    mutating func fired(_ timer: Timer) -> [Effect] {
        timers.remove(timer)
        switch (timer, state) {
        case (.pause, _):
            return resumeScan()
        case (.delay, .waiting(.delay)):
            return beginTry()
        case (.retry, .waiting(.backOff)):
            return attempt()
        case (.confirmation, .connecting(_, .confirming)):
            return attemptFailed(.noLink)
        case (.seeking, .seeking):
            let effects: [Effect] = isSeeking ? [.stopSeeking] : []
            isSeeking = false
            return effects + attemptFailed(.notHeard)
        case (.timeout, .waiting(.backOff)), (.timeout, .waiting(.power)), (.timeout, .seeking):
            return endTry() + settle(Ending(report: .timedOut, next: .rest))
        case (.timeout, .connecting(let attempt, let progress)):
            return endTry() + cancelAttempt(attempt, progress, Ending(report: .timedOut, next: .rest))
        case (.cancellation, .cancelling(let attempt, let ending)):
            abandoned = attempt
            return isLinkUp ? drop(ending, calling: true) : settle(ending)
        case (.drop, .disconnecting(let ending)):
            return settle(ending)
        case (.stability, .connected):
            fruitlessTries = 0
            return []
        case (.delay, _), (.retry, _), (.confirmation, _), (.seeking, _), (.timeout, _), (.cancellation, _),
            (.drop, _), (.stability, _), (.loss, _):
            // It ran out while what it watched over was ending; of `.loss` that it has run out is all.
            return []
        }
    }
}
