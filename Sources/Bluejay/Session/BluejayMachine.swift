import BlueCapKit
import Foundation

/// What Bluejay does next: its queue, its one connection, its background task.
///
/// The queue is strict: one thing at a time, in the order in which it was asked for. What can be refused is refused when
/// it is asked for, everything else waits for its turn. The machine names requests and looks into none of them; who asked and
/// what exactly is the session's business.
struct BluejayMachine {
    struct RequestID: Hashable, Swift.Sendable {
        let rawValue: UInt64
        /// The wait for Bluetooth's first word, which stands before everything else in the queue.
        static let firstWord = RequestID(rawValue: 0)
    }

    enum Kind {
        case firstWord
        case scan
        case connect
        /// One that was begun when it was asked for does not wait for its turn; its end does.
        case disconnect(isImmediate: Bool)
        /// Something that takes the connection.
        case operation
    }

    /// Who asks.
    enum Caller {
        case application
        /// The background task, by its synchronized peripheral.
        case task
        /// The background task, by the outer object.
        case insideTask
    }

    enum Connection: Equatable {
        case none
        case connecting(RequestID)
        /// By itself, until it has succeeded.
        case reconnecting
        case connected
        /// `wasConnected` where there was more than an attempt; `isAsked` where the application wants to be
        /// disconnected, and not only the attempt ended.
        case disconnecting(wasConnected: Bool, isAsked: Bool)
    }

    /// What a request has brought; empty where it brings nothing but success.
    typealias Outcome = Result<Data, any Error>

    enum Effect {
        case begin(RequestID)
        /// Have it end; it has been settled.
        case stop(RequestID)
        case settle(RequestID, Outcome)
        case endLink
        case reconnect
        /// An attempt to reconnect has come to nothing: another one.
        case tryAgain
        case endListens(any Error)
        case failTask(any Error)
        case tellAvailability(Bool)
        case tellConnected
        /// The observers, then the handler, whose answer is the next event.
        case tellDisconnected((any Error)?, willReconnect: Bool)
    }

    private(set) var isStarted = false
    /// `nil` until it is known.
    private(set) var isAvailable: Bool?
    private(set) var connection = Connection.none
    private(set) var shouldAutoReconnect = true
    private(set) var isTaskRunning = false
    /// Why nothing that the task asks for can succeed any more.
    private var taskFailure: (any Error)?
    /// What is to be told when the task has ended.
    private var deferred: [Effect] = []
    private var queue = OperationQueueMachine<RequestID, Outcome>()
    private var kinds: [RequestID: Kind] = [:]
    /// The attempt to connect that was cancelled, until its link is down.
    private var cancelledAttempt: RequestID?

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
    private var requests: [RequestID] { (queue.current.map { [$0] } ?? []) + queue.waiting }

    // MARK: Beginning and end

    mutating func started() -> [Effect] {
        self = BluejayMachine()
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
        deferred = []
        return effects
    }

    // MARK: Requests

    mutating func requested(_ id: RequestID, _ kind: Kind, by caller: Caller) -> [Effect] {
        if let refusal = refusal(of: kind, by: caller) { return [.settle(id, .failure(refusal))] }
        kinds[id] = kind
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
        guard isAvailable != false else { return BluejayError.bluetoothUnavailable }
        return refusal(of: kind)
    }

    private func refusal(of kind: Kind) -> BluejayError? {
        switch kind {
        case .firstWord:
            return nil
        case .scan:
            return requests.contains { if case .scan = kinds[$0] { true } else { false } }
                ? .multipleScanNotSupported : nil
        case .connect:
            return willBeConnected ? .multipleConnectNotSupported : nil
        case .disconnect:
            if isDisconnectAwaited { return .multipleDisconnectNotSupported }
            return willBeConnected ? nil : .notConnected
        case .operation:
            guard connection == .connected else { return .notConnected }
            return isDisconnectAwaited ? .disconnectQueued : nil
        }
    }

    /// Whether there is to be a connection, or an attempt at one, when all that is queued is done.
    private var willBeConnected: Bool {
        for id in requests.reversed() {
            switch kinds[id] {
            case .connect: return true
            case .disconnect: return false
            case .scan, .operation, .firstWord, nil: break
            }
        }
        switch connection {
        case .connecting, .reconnecting, .connected: return true
        case .none, .disconnecting: return false
        }
    }

    /// Whether the last that is asked for of the connection is its end.
    private var isDisconnectAwaited: Bool {
        for id in requests.reversed() {
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
        requests.flatMap { id -> [Effect] in
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
        queueEvent(.allCancelled(.failure(error)))
    }

    // MARK: The queue

    private mutating func queueEvent(_ event: OperationQueueMachine<RequestID, Outcome>.Event) -> [Effect] {
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
            guard connection == .none else { return finished(id, .failure(BluejayError.multipleConnectNotSupported)) }
            connection = .connecting(id)
            return [.begin(id)]
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

    // MARK: The connection

    private mutating func beginEndOfLink() -> [Effect] {
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
        return effects[..<first] + told + effects[first...]
    }

    /// An attempt has failed.
    mutating func linkFailed(_ error: any Error) -> [Effect] {
        switch connection {
        case .connecting(let id):
            connection = .none
            return finished(id, .failure(error))
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
        case .connecting(let id):
            connection = .none
            return finished(id, .failure(isWished ? BluejayError.explicitDisconnect : BluejayError.notConnected))
        case .reconnecting:
            guard isWished else { return [.tryAgain] }
            (connection, shouldAutoReconnect) = (.none, false)
            return []
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
        var effects: [Effect] = []
        if wasConnected {
            effects = endOperations(.explicitDisconnect) + [.endListens(BluejayError.explicitDisconnect)]
        }
        var following: [Effect] = []
        if let attempt = cancelledAttempt {
            cancelledAttempt = nil
            following += finished(attempt, .success(Data()))
        }
        if let current = queue.current, case .disconnect = kinds[current] {
            following += finished(current, .success(Data()))
        }
        if wasConnected {
            following = inOrder(following, then: [.tellDisconnected(nil, willReconnect: shouldAutoReconnect)])
        }
        return afterTask(effects + following)
    }

    /// Nobody had asked Bluejay to end it.
    private mutating func linkWasLost(isWished: Bool) -> [Effect] {
        connection = .none
        let error = isWished ? BluejayError.explicitDisconnect : BluejayError.notConnected
        if isWished { shouldAutoReconnect = false }
        var effects = endOperations(error) + [.endListens(error)]
        // Who waits to disconnect has what he wants.
        for id in requests {
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
        connection = .reconnecting
        return [.reconnect]
    }

    /// A connection of an earlier run, or of whoever had the manager before.
    mutating func tookOver() -> [Effect] {
        guard isStarted, connection == .none, !willBeConnected else { return [] }
        connection = .reconnecting
        return [.reconnect]
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

    private mutating func failTask(_ error: any Error) -> [Effect] {
        guard isTaskRunning, taskFailure == nil else { return [] }
        taskFailure = error
        return [.failTask(error)]
    }

    /// Who hears of a disconnection may begin something then, so he hears of it when the task is over.
    private mutating func afterTask(_ effects: [Effect]) -> [Effect] {
        guard isTaskRunning else { return effects }
        return effects.filter { effect in
            guard case .tellDisconnected = effect else { return true }
            deferred.append(effect)
            return false
        }
    }
}
