import Foundation

/// The runs of one peripheral: those who want it to themselves, one after the other, each with a link.
struct PeripheralRuns {
    var queue = OperationQueueMachine<OperationID, PeripheralFailure?>()
    /// In seconds, of those that have one and have not been settled.
    fileprivate var timeouts: [OperationID: TimeInterval] = [:]
    /// Why the last try at a link came to nothing.
    fileprivate var tryFailure: PeripheralError?

    /// Remembers what the connection tells of its tries.
    mutating func note(_ effect: ConnectionMachine.Effect) {
        switch effect {
        case .report(_, let report): tryFailure = report.error
        case .reportFailure(_, let refusal): tryFailure = PeripheralError(refusal)
        default: break
        }
    }
}

/// A run waits for its turn, then for a link, and is at work then. It begins once, is settled once, and the next one
/// begins when what it does has ended. A link that was made for runs alone is handed on from one to the next.
extension PeripheralState {
    // MARK: What users ask for

    /// - Parameter timeout: From the run's turn on, in seconds.
    mutating func runAsked(_ id: OperationID, timeout: TimeInterval) -> [Effect] {
        if timeout.isFinite { runs.timeouts[id] = timeout }
        return tellRuns(.enqueued(id))
    }

    mutating func cancelRun(_ id: OperationID) -> [Effect] { tellRuns(.cancelled(id, .cancelled)) }

    mutating func cancelRuns(_ failure: PeripheralFailure) -> [Effect] { tellRuns(.allCancelled(failure)) }

    /// What a run does has ended, however.
    mutating func runEnded(_ id: OperationID) -> [Effect] { tellRuns(.finished(id, nil)) }

    // MARK: What happens

    mutating func runLinkWentDown(_ loss: ConnectionMachine.LinkLoss) -> [Effect] {
        guard let id = runs.queue.running else { return [] }
        return tellRuns(.cancelled(id, .peripheral(loss == .forced ? .forcedDisconnect : .disconnected)))
    }

    mutating func runTimedOut(_ id: OperationID) -> [Effect] {
        runs.timeouts[id] = nil
        let isAtWork = runs.queue.running == id
        return tellRuns(.cancelled(id, .peripheral(isAtWork ? .runTimeout : .connectionTimeout)))
    }

    /// Begins the run whose turn it is, once there is a link; or fails it when there will be none.
    mutating func followRuns() -> [Effect] {
        var effects: [Effect] = []
        while let id = runs.queue.current, runs.queue.running == nil {
            switch connection.state {
            case .connected:
                effects += tellRuns(.began(id)) + [.beginRun(id)]
            case .disconnected, .closed:
                effects += tellRuns(.finished(id, .peripheral(runs.tryFailure ?? .disconnected)))
            case .waiting, .seeking, .connecting, .cancelling, .disconnecting:
                return effects
            }
        }
        return effects
    }

    private mutating func tellRuns(_ event: OperationQueueMachine<OperationID, PeripheralFailure?>.Event) -> [Effect] {
        let wasIdle = runs.queue.isIdle
        var effects: [Effect] = []
        for effect in runs.queue.event(event) {
            switch effect {
            case .begin(let id):
                if let timeout = runs.timeouts[id] { effects.append(.startTimer(.run(id), timeout)) }
                runs.tryFailure = nil
                effects += connect(.linkBorrowed)
            case .stop(let id):
                effects.append(.stopRun(id))
            case .settle(let id, let failure):
                if runs.timeouts.removeValue(forKey: id) != nil { effects.append(.cancelTimer(.run(id))) }
                effects.append(.settle(id, failure))
            }
        }
        if !wasIdle, runs.queue.isIdle { effects += connect(.linkReturned) }
        return effects
    }
}
