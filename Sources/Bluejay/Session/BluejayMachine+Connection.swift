import Foundation

/// The one connection: what becomes of it, and what follows from that.
extension BluejayMachine {
    /// The attempt of a request begins.
    mutating func connect(_ id: RequestID) -> [Effect] {
        connection = .connecting(id)
        attempt += 1
        return [.begin(id)]
    }

    /// One without a request.
    private mutating func reconnect() -> [Effect] {
        connection = .reconnecting
        attempt += 1
        return [.reconnect]
    }

    mutating func beginEndOfLink() -> [Effect] {
        switch connection {
        case .none:
            return []
        case .disconnecting(let wasConnected, _):
            connection = .disconnecting(wasConnected: wasConnected, isAsked: true)
            return []
        case .connected:
            connection = .disconnecting(wasConnected: true, isAsked: true)
        case .connecting, .reconnecting:
            connection = .disconnecting(wasConnected: false, isAsked: true)
        }
        return [.endLink]
    }

    mutating func linkWentUp() -> [Effect] {
        switch connection {
        case .connecting(let id):
            (connection, shouldAutoReconnect) = (.connected, true)
            // Before the next one begins, which may end it again.
            return inOrder(finished(id, .success(Data())), then: [.tellConnected])
        case .reconnecting:
            (connection, shouldAutoReconnect) = (.connected, true)
            return [.tellConnected]
        case .none, .connected, .disconnecting:
            return []
        }
    }

    /// What is told comes before what begins next.
    private func inOrder(_ effects: [Effect], then told: [Effect]) -> [Effect] {
        let first = effects.firstIndex { if case .settle = $0 { false } else { true } } ?? effects.endIndex
        var ordered = effects
        ordered.insert(contentsOf: told, at: first)
        return ordered
    }

    /// An attempt has failed.
    mutating func linkFailed(_ error: any Error) -> [Effect] {
        switch connection {
        case .connecting(let id):
            connection = .none
            return [.endListens(error)] + finished(id, .failure(error))
        case .reconnecting:
            return [.tryAgain]
        case .disconnecting:
            return linkWentDown(isWished: true)
        case .none, .connected:
            return []
        }
    }

    /// - Parameter isWished: Whether somebody in this program asked for it.
    mutating func linkWentDown(isWished: Bool) -> [Effect] {
        switch connection {
        case .none:
            return []
        case .connecting:
            return linkFailed(isWished ? BluejayError.explicitDisconnect : BluejayError.notConnected)
        case .reconnecting:
            guard isWished else { return [.tryAgain] }
            (connection, shouldAutoReconnect) = (.none, false)
            return [.endListens(BluejayError.explicitDisconnect)]
        case .connected:
            return linkWasLost(isWished: isWished)
        case .disconnecting(let wasConnected, let isAsked):
            connection = .none
            if isAsked { shouldAutoReconnect = false }
            return linkHasEnded(wasConnected: wasConnected)
        }
    }

    /// As it was to.
    private mutating func linkHasEnded(wasConnected: Bool) -> [Effect] {
        let ended = wasConnected ? endOperations(.explicitDisconnect) : []
        var following: [Effect] = []
        if let attempt = cancelledAttempt {
            cancelledAttempt = nil
            following += finished(attempt, .success(Data()))
        }
        if let current = queue.current, case .disconnect = kinds[current] {
            following += finished(current, .success(Data()))
        }
        if connection == .none, let current = queue.current, case .connect = kinds[current] {
            // Its turn came while the link was ending.
            following += connect(current)
        }
        if wasConnected {
            following = inOrder(following, then: [.tellDisconnected(nil, willReconnect: shouldAutoReconnect)])
        }
        return afterTask(ended + [.endListens(BluejayError.explicitDisconnect)] + following)
    }

    /// Nobody had asked Bluejay to end it.
    private mutating func linkWasLost(isWished: Bool) -> [Effect] {
        connection = .none
        let error = isWished ? BluejayError.explicitDisconnect : BluejayError.notConnected
        if isWished { shouldAutoReconnect = false }
        var effects = endOperations(error) + [.endListens(error)]
        // Who waits to disconnect has what he wants.
        for id in milestones {
            guard case .disconnect = kinds[id] else { continue }
            shouldAutoReconnect = false
            effects += queueEvent(.cancelled(id, .success(Data())))
        }
        effects += failTask(error)
        effects.append(.tellDisconnected(isWished ? nil : error, willReconnect: shouldAutoReconnect))
        return afterTask(effects)
    }

    /// What takes the connection fails with it. What stands in the queue for another reason stays.
    private mutating func endOperations(_ error: BluejayError) -> [Effect] {
        requests.flatMap { id -> [Effect] in
            guard case .operation = kinds[id] else { return [] }
            return queueEvent(.cancelled(id, .failure(error)))
        }
    }

    /// The disconnect handler has spoken.
    mutating func handlerAnswered(_ mode: AutoReconnectMode) -> [Effect] {
        if case .change(let shouldAutoReconnect) = mode { self.shouldAutoReconnect = shouldAutoReconnect }
        guard isStarted, shouldAutoReconnect, connection == .none, !willBeConnected else { return [] }
        return reconnect()
    }

    /// A connection of an earlier run did not come back in time, and is not tried any more.
    mutating func reconnectionTimedOut() -> [Effect] {
        guard connection == .reconnecting else { return [] }
        connection = .disconnecting(wasConnected: false, isAsked: false)
        let error = isAvailable == false ? BluejayError.bluetoothUnavailable : .connectionTimedOut
        return [.endListens(error), .endLink]
    }

    /// A connection of an earlier run, or of whoever had the manager before.
    mutating func tookOver() -> [Effect] {
        guard isStarted, connection == .none, !willBeConnected else { return [] }
        return reconnect()
    }
}
