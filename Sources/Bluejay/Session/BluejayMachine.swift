import BlueCapKit
import Foundation

/// What Bluejay does next: its queue, its one connection, its background task.
///
/// The queue is strict: one thing at a time, in the order in which it was asked for. What can be refused is refused when
/// it is asked for, everything else waits for its turn. The machine names requests and looks into none of them; who asked and
/// what exactly is the session's business. Fields are changed here and in this type's other files alone.
struct BluejayMachine {
    private(set) var isStarted = false
    /// `nil` until it is known.
    private(set) var isAvailable: Bool?
    var connection = Connection.none
    /// Counts the attempts to connect, over all starts: what is told of an earlier one does not count any more.
    var attempt = 0
    var shouldAutoReconnect = true
    private(set) var isTaskRunning = false
    /// Why nothing that the task asks for can succeed any more.
    private(set) var taskFailure: (any Error)?
    /// What is to be told when the task has ended.
    private var deferred: [Effect] = []
    var queue = OperationQueueMachine<RequestID, Outcome>()
    var kinds: [RequestID: Kind] = [:]
    /// The scans, connections and disconnections that are not settled, in their order: few, where operations may be
    /// thousands.
    private(set) var milestones: [RequestID] = []
    /// The attempt to connect that was cancelled, until its link is down.
    var cancelledAttempt: RequestID?

    // MARK: Looking

    var isConnecting: Bool {
        switch connection {
        case .connecting, .reconnecting: true
        case .none, .connected, .disconnecting: false
        }
    }

    var isDisconnecting: Bool { if case .disconnecting = connection { true } else { false } }

    var isScanning: Bool {
        guard let current = queue.current, case .scan = kinds[current] else { return false }
        return true
    }

    /// Requests that are not settled, in the order of their turns.
    var requests: [RequestID] { (queue.current.map { [$0] } ?? []) + queue.waiting }

    // MARK: Beginning and end

    mutating func started() -> [Effect] {
        let attempts = attempt
        self = BluejayMachine()
        attempt = attempts
        isStarted = true
        kinds[.firstWord] = .firstWord
        return queueEvent(.enqueued(.firstWord))
    }

    mutating func stopped() -> [Effect] {
        guard isStarted else { return [] }
        let failure = BluejayError.stopped
        var effects = cancelAll(failure) + [.endListens(failure)] + failTask(failure)
        // Nobody would be left to look after the attempt.
        if connection == .reconnecting { effects.append(.endLink) }
        isStarted = false
        connection = .none
        attempt += 1
        // The task goes on in vain, and nobody waits for it.
        defer { deferred = [] }
        return effects + deferred
    }

    // MARK: Requests

    mutating func requested(_ id: RequestID, _ kind: Kind, by caller: Caller) -> [Effect] {
        if let refusal = refusal(of: kind, by: caller) { return [.settle(id, .failure(refusal))] }
        kinds[id] = kind
        if case .operation = kind {} else { milestones.append(id) }
        switch kind {
        case .firstWord, .scan, .operation, .disconnect(isImmediate: false):
            return queueEvent(.enqueued(id))
        case .connect:
            return endScans() + queueEvent(.enqueued(id))
        case .disconnect(isImmediate: true):
            return cancelAll(BluejayError.explicitDisconnect) + beginEndOfLink() + queueEvent(.enqueued(id))
        }
    }

    private func refusal(of kind: Kind, by caller: Caller) -> (any Error)? {
        guard isStarted else { return BluejayError.stopped }
        switch caller {
        case .insideTask: return BluejayError.calledInsideBackgroundTask
        case .application where isTaskRunning: return BluejayError.backgroundTaskRunning
        case .task where !isTaskRunning: return BluejayError.notInBackgroundTask
        case .task where taskFailure != nil: return taskFailure
        case .application, .task: break
        }
        let refusal = refusal(of: kind)
        // Who wants no connection any more can have that without Bluetooth: else Bluejay would come back to it.
        if case .disconnect = kind, refusal == nil { return nil }
        return isAvailable == false ? BluejayError.bluetoothUnavailable : refusal
    }

    private func refusal(of kind: Kind) -> BluejayError? {
        switch kind {
        case .firstWord:
            return nil
        case .scan:
            return milestones.contains { if case .scan = kinds[$0] { true } else { false } }
                ? .multipleScanNotSupported : nil
        case .connect:
            return willBeConnected ? .multipleConnectNotSupported : nil
        case .disconnect(isImmediate: true) where connection.isThereOrTried:
            return nil
        case .disconnect:
            if isDisconnectAwaited { return .multipleDisconnectNotSupported }
            return willBeConnected ? nil : .notConnected
        case .operation:
            guard connection == .connected else { return .notConnected }
            return isDisconnectAwaited ? .disconnectQueued : nil
        }
    }

    /// Whether there is to be a connection, or an attempt at one, when all that is queued is done.
    var willBeConnected: Bool {
        for id in milestones.reversed() {
            switch kinds[id] {
            case .connect: return true
            case .disconnect: return false
            case .scan, .operation, .firstWord, nil: break
            }
        }
        return connection.isThereOrTried
    }

    /// Whether the last that is asked for of the connection is its end.
    private var isDisconnectAwaited: Bool {
        for id in milestones.reversed() {
            switch kinds[id] {
            case .connect: return false
            case .disconnect: return true
            case .scan, .operation, .firstWord, nil: break
            }
        }
        return false
    }

    /// The application has had enough of it.
    mutating func scanEnded() -> [Effect] { endScans() }

    /// A request to connect ends the scan.
    private mutating func endScans() -> [Effect] {
        milestones.flatMap { id -> [Effect] in
            guard case .scan = kinds[id] else { return [] }
            return queueEvent(.cancelled(id, .success(Data())))
        }
    }

    /// It has come to its end.
    mutating func finished(_ id: RequestID, _ outcome: Outcome) -> [Effect] {
        // Where it was cancelled before, it is forgotten now.
        if queue.position(of: id) == nil { kinds[id] = nil }
        return queueEvent(.finished(id, outcome))
    }

    /// It is to end with this.
    mutating func ended(_ id: RequestID, _ outcome: Outcome) -> [Effect] { queueEvent(.cancelled(id, outcome)) }

    /// Everything in the queue fails; the background task, too.
    mutating func cancelEverything(_ error: any Error, shouldDisconnect: Bool) -> [Effect] {
        guard isStarted else { return [] }
        let effects = cancelAll(error) + failTask(error)
        return shouldDisconnect ? effects + beginEndOfLink() : effects
    }

    private mutating func cancelAll(_ error: any Error) -> [Effect] {
        let isFirstWordAwaited = queue.current == .firstWord && isAvailable == nil
        let effects = queueEvent(.allCancelled(.failure(error)))
        guard isFirstWordAwaited else { return effects }
        // That wait is nobody's request: what is asked for next waits, too.
        kinds[.firstWord] = .firstWord
        return effects + queueEvent(.enqueued(.firstWord))
    }

    // MARK: The queue

    mutating func queueEvent(_ event: OperationQueueMachine<RequestID, Outcome>.Event) -> [Effect] {
        let said = queue.event(event)
        return said.indices.flatMap { index -> [Effect] in
            switch said[index] {
            case .begin(let id):
                return begin(id)
            case .stop(let id):
                return stop(id)
            case .settle(let id, let outcome):
                // What is to be stopped is needed until it has ended.
                var isStopped = false
                if index + 1 < said.endIndex, case .stop(id) = said[index + 1] { isStopped = true }
                if !isStopped { kinds[id] = nil }
                milestones.removeAll { $0 == id }
                return id == .firstWord ? [] : [.settle(id, outcome)]
            }
        }
    }

    /// Its turn has come.
    private mutating func begin(_ id: RequestID) -> [Effect] {
        _ = queue.event(.began(id))
        switch kinds[id] {
        case .firstWord, nil:
            return []
        case .scan:
            return [.begin(id)]
        case .operation:
            guard connection == .connected else { return finished(id, .failure(BluejayError.notConnected)) }
            return [.begin(id)]
        case .connect:
            switch connection {
            case .none: return connect(id)
            case .disconnecting: return []
            case .connecting, .reconnecting, .connected:
                return finished(id, .failure(BluejayError.multipleConnectNotSupported))
            }
        case .disconnect(let isImmediate):
            switch connection {
            case .connected, .reconnecting: return beginEndOfLink()
            case .disconnecting: return []
            case .none, .connecting:
                return finished(id, isImmediate ? .success(Data()) : .failure(BluejayError.notConnected))
            }
        }
    }

    /// It was cancelled while it ran.
    private mutating func stop(_ id: RequestID) -> [Effect] {
        switch kinds[id] {
        case .connect:
            // It may have waited for the end of the link before it.
            guard connection == .connecting(id) else { return finished(id, .success(Data())) }
            cancelledAttempt = id
            connection = .disconnecting(wasConnected: false, isAsked: false)
            return [.endLink]
        case .disconnect, .firstWord, nil:
            // The link goes on to end; the queue need not wait for it.
            return finished(id, .success(Data()))
        case .scan, .operation:
            return [.stop(id)]
        }
    }

    // MARK: Bluetooth

    mutating func availabilityChanged(_ isAvailable: Bool) -> [Effect] {
        guard isStarted, self.isAvailable != isAvailable else { return [] }
        self.isAvailable = isAvailable
        if isAvailable { return [.tellAvailability(true)] + finished(.firstWord, .success(Data())) }
        let failure = BluejayError.bluetoothUnavailable
        return [.tellAvailability(false)] + cancelAll(failure) + failTask(failure)
    }

    // MARK: The background task

    /// Why it cannot be run; `nil` where it is running now.
    mutating func taskRequested(by caller: Caller) -> BluejayError? {
        guard isStarted else { return .stopped }
        if caller == .insideTask { return .calledInsideBackgroundTask }
        if isTaskRunning { return .multipleBackgroundTaskNotSupported }
        guard isAvailable != false else { return .bluetoothUnavailable }
        if let refusal = refusal(of: .operation) { return refusal }
        (isTaskRunning, taskFailure) = (true, nil)
        return nil
    }

    mutating func taskEnded() -> [Effect] {
        (isTaskRunning, taskFailure) = (false, nil)
        defer { deferred = [] }
        return deferred
    }

    mutating func failTask(_ error: any Error) -> [Effect] {
        guard isTaskRunning, taskFailure == nil else { return [] }
        taskFailure = error
        return [.failTask(error)]
    }

    /// Who hears of a disconnection may begin something then, so he hears of it when the task is over.
    mutating func afterTask(_ effects: [Effect]) -> [Effect] {
        guard isTaskRunning else { return effects }
        return effects.filter { effect in
            guard case .tellDisconnected = effect else { return true }
            deferred.append(effect)
            return false
        }
    }
}
