import BlueCapKit
import Foundation

/// A request: its work with the arguments, and the closure that receives the outcome, once.
// Unchecked, because of the closures: the session calls them on one thread at a time.
final class Request: Hashable, @unchecked Swift.Sendable {
    enum Work {
        case scan(Scan)
        case connect(PeripheralIdentifier, Timeout)
        /// An immediate one begins at once; only its completion waits for its turn.
        case disconnect(isImmediate: Bool)
        case read(CharacteristicIdentifier)
        case write(Data, to: CharacteristicIdentifier, CBCharacteristicWriteType)
        case listen(Listen)
        /// Ends a listen, with the last failure that it receives, if any.
        case endListen(CharacteristicIdentifier, (any Error)?)
        /// Requires the connection when it begins, and may end the link and make it again.
        case pair(Timeout)
        /// Requires no connection, and ends it if there is one.
        case unpair(PeripheralIdentifier)
    }

    let work: Work
    let settle: (BluejayMachine.Outcome) -> Void

    init(_ work: Work, settle: @escaping (BluejayMachine.Outcome) -> Void) { (self.work, self.settle) = (work, settle) }

    var isScan: Bool { if case .scan = work { true } else { false } }
    var isConnect: Bool { if case .connect = work { true } else { false } }
    var isDisconnect: Bool { if case .disconnect = work { true } else { false } }
    /// Whether it begins or ends the connection.
    var isForLink: Bool { isConnect || isDisconnect }
    var isPairing: Bool { if case .pair = work { true } else { false } }

    var requiresConnection: Bool {
        switch work {
        case .read, .write, .listen, .endListen, .pair: true
        case .scan, .connect, .disconnect, .unpair: false
        }
    }

    static func == (left: Request, right: Request) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Decides what Bluejay does next: its queue, its one connection, its background task.
///
/// The queue is strict: one request at a time, in the order of the requests, and none before the state of Bluetooth is known.
/// What can be refused is refused at once, everything else waits for its turn.
struct BluejayMachine {
    /// The origin of a request.
    enum Caller {
        case application
        /// The background task, through its synchronized peripheral.
        case task
        /// The background task, through the outer object.
        case insideTask
    }

    enum Connection: Equatable {
        case none
        case connecting(Request)
        /// Without a request, until it succeeds.
        case reconnecting
        case connected
        /// `wasConnected` if there was more than an attempt; `isRequested` if the application asked for the disconnection,
        /// and not only the attempt ended.
        case disconnecting(wasConnected: Bool, isRequested: Bool)

        /// Whether there is a connection, or an attempt at one that is to succeed.
        var isThereOrTried: Bool {
            switch self {
            case .connecting, .reconnecting, .connected: true
            case .none, .disconnecting: false
            }
        }
    }

    /// The outcome of a request; the data is empty if it brings nothing but success.
    typealias Outcome = Result<Data, any Error>
    private typealias Queue = OperationQueueMachine<Request, Outcome>

    enum Effect {
        case begin(Request)
        case settle(Request, Outcome)
        /// Ends the work of a request that was settled while it ran; ``finished(_:_:)`` follows.
        case stop(Request)
        case endLink
        case reconnect
        /// Attempts to reconnect once more, after an attempt that has failed.
        case tryAgain
        /// Ends all listens, also those that wait for the connection to come back.
        case endListens(any Error)
        case failTask(any Error)
        case reportAvailability(Bool)
        case reportConnected
        /// Calls the observers, then the handler, whose result is the next event.
        case reportDisconnected((any Error)?, willReconnect: Bool)
        /// Runs work of the session in the order of the effects. The machine itself never returns it.
        case call(() -> Void)
    }

    private(set) var isStarted = false
    /// Whether Bluetooth can be used; `nil` until it is known.
    private(set) var isAvailable: Bool?
    private(set) var connection = Connection.none
    /// Counts the attempts to connect, over all starts: events of an earlier attempt are ignored.
    private(set) var attempt = 0
    private(set) var shouldAutoReconnect = true
    private(set) var isTaskRunning = false
    /// The error with which everything fails that the task requests from now on.
    private(set) var taskFailure: (any Error)?
    /// The reports that wait until the task has ended.
    private var deferred: [Effect] = []
    private var queue = Queue()
    /// The scans, connections and disconnections that are not settled, in their order. There are few of them, while there
    /// may be thousands of operations.
    private var milestones: [Request] = []
    /// Why the link is going to be lost, if that was reported first.
    private var lossReason: BluejayError?

    // MARK: State

    var isConnecting: Bool { connection.isThereOrTried && connection != .connected }

    var isDisconnecting: Bool { if case .disconnecting = connection { true } else { false } }

    var isScanning: Bool { queue.running?.isScan == true }

    /// Whether there will be a connection, or an attempt at one, when everything in the queue is done.
    var willBeConnected: Bool {
        lastConnectionRequest.map { !$0.isDisconnect } ?? connection.isThereOrTried
    }

    /// Whether the last request for the connection is its end.
    private var isDisconnectPending: Bool { lastConnectionRequest?.isDisconnect == true }

    /// Whether the scan of this request has not ended.
    func isScanning(for request: Request) -> Bool { milestones.contains(request) }

    /// Whether there is a request for a connection to this peripheral.
    func isConnecting(to peripheral: UUID) -> Bool {
        milestones.contains {
            if case .connect(let identifier, _) = $0.work { identifier.uuid == peripheral } else { false }
        }
    }

    private var lastConnectionRequest: Request? { milestones.last(where: \.isForLink) }

    // MARK: Start and stop

    mutating func started() -> [Effect] {
        let attempts = attempt
        self = BluejayMachine()
        (attempt, isStarted) = (attempts, true)
        return []
    }

    mutating func stopped() -> [Effect] {
        guard isStarted else { return [] }
        let failure = BluejayError.stopped
        var effects = cancelAll(failure) + [.endListens(failure)] + failTask(failure)
        // Nothing follows the attempt from now on.
        if connection == .reconnecting { effects.append(.endLink) }
        (isStarted, connection) = (false, .none)
        attempt += 1
        // The reports do not wait for a task that still runs.
        defer { deferred = [] }
        return effects + deferred
    }

    // MARK: Requests

    mutating func requested(_ request: Request, by caller: Caller) -> [Effect] {
        if let refusal = refusal(by: caller) ?? refusal(of: request) {
            return [.settle(request, .failure(refusal))]
        }
        if request.isScan || request.isForLink { milestones.append(request) }
        var effects: [Effect] = []
        if request.isConnect { effects = scanEnded() }
        if case .disconnect(isImmediate: true) = request.work {
            effects = cancelAll(BluejayError.explicitDisconnect) + endLink()
        }
        return effects + perform(.enqueued(request))
    }

    /// Why no request of this origin is possible.
    func refusal(by caller: Caller) -> (any Error)? {
        guard isStarted else { return BluejayError.stopped }
        return switch caller {
        case .insideTask: BluejayError.calledInsideBackgroundTask
        case .application: isTaskRunning ? BluejayError.backgroundTaskRunning : nil
        case .task: isTaskRunning ? taskFailure : BluejayError.notInBackgroundTask
        }
    }

    private func refusal(of request: Request) -> BluejayError? {
        let refusal: BluejayError? =
            switch request.work {
            case .unpair: nil
            case .scan: scans.isEmpty ? nil : .multipleScanNotSupported
            case .connect: willBeConnected ? .multipleConnectNotSupported : nil
            case .disconnect(isImmediate: true) where connection.isThereOrTried: nil
            case .disconnect where isDisconnectPending: .multipleDisconnectNotSupported
            case .disconnect: willBeConnected ? nil : .notConnected
            case .read, .write, .listen, .endListen, .pair: refusalOfOperations
            }
        // A disconnection does not require Bluetooth: without it, Bluejay would reconnect later.
        if request.isDisconnect, refusal == nil { return nil }
        return isAvailable == false ? .bluetoothUnavailable : refusal
    }

    private var refusalOfOperations: BluejayError? {
        if connection != .connected { .notConnected } else if isDisconnectPending { .disconnectQueued } else { nil }
    }

    private var scans: [Request] { milestones.filter(\.isScan) }

    /// The application ends the scan, or connects, which ends the scan too.
    mutating func scanEnded() -> [Effect] { scans.flatMap { ended($0, .success(Data())) } }

    /// A request that has begun has ended.
    mutating func finished(_ request: Request, _ outcome: Outcome) -> [Effect] { perform(.finished(request, outcome)) }

    /// Ends a request with this outcome.
    mutating func ended(_ request: Request, _ outcome: Outcome) -> [Effect] { perform(.cancelled(request, outcome)) }

    /// Fails everything in the queue, and the background task.
    mutating func cancelEverything(_ error: any Error, shouldDisconnect: Bool) -> [Effect] {
        guard isStarted else { return [] }
        let effects = cancelAll(error) + failTask(error)
        return shouldDisconnect ? effects + endLink() : effects
    }

    private mutating func cancelAll(_ error: any Error) -> [Effect] { perform(.allCancelled(.failure(error))) }

    // MARK: The queue

    private mutating func perform(_ event: Queue.Event) -> [Effect] {
        queue.event(event).flatMap { order -> [Effect] in
            switch order {
            case .begin(let request):
                return begin(request)
            case .settle(let request, let outcome):
                milestones.removeAll { $0 == request }
                return [.settle(request, outcome)]
            case .stop(let request) where !request.isForLink:
                return [.stop(request)]
            case .stop(let request):
                guard connection == .connecting(request) else { return finished(request, .success(Data())) }
                // A connection that follows waits for the end of this link; a link that ends does not block the queue.
                connection = .disconnecting(wasConnected: false, isRequested: false)
                return [.endLink] + finished(request, .success(Data()))
            }
        }
    }

    /// The turn of a request has come, unless the state of Bluetooth is not known yet.
    private mutating func begin(_ request: Request) -> [Effect] {
        guard isAvailable != nil else { return [] }
        _ = queue.event(.began(request))
        switch (request.work, connection) {
        case (.connect, .none):
            connection = .connecting(request)
            attempt += 1
            return [.begin(request)]
        case (.connect, .disconnecting), (.disconnect, .disconnecting):
            return []
        case (.connect, _):
            return finished(request, .failure(BluejayError.multipleConnectNotSupported))
        case (.disconnect, .connected), (.disconnect, .reconnecting):
            return endLink()
        case (.disconnect(let isImmediate), _):
            return finished(request, isImmediate ? .success(Data()) : .failure(BluejayError.notConnected))
        case (_, let connection) where request.requiresConnection && connection != .connected:
            return finished(request, .failure(BluejayError.notConnected))
        default:
            return [.begin(request)]
        }
    }

    // MARK: Bluetooth

    mutating func availabilityChanged(_ isAvailable: Bool) -> [Effect] {
        guard isStarted, self.isAvailable != isAvailable else { return [] }
        self.isAvailable = isAvailable
        if isAvailable {
            // The request that has waited for the state begins.
            let first = queue.running == nil ? queue.current : nil
            return [.reportAvailability(true)] + (first.map { begin($0) } ?? [])
        }
        return [.reportAvailability(false)]
            + cancelEverything(BluejayError.bluetoothUnavailable, shouldDisconnect: false)
    }

    // MARK: The connection

    /// Begins an attempt without a request, unless there is or will be another connection: after a loss, or to the
    /// peripheral of an earlier run or of the previous owner of the manager.
    mutating func reconnect() -> [Effect] {
        guard isStarted, connection == .none, !willBeConnected else { return [] }
        connection = .reconnecting
        attempt += 1
        return [.reconnect]
    }

    private mutating func endLink() -> [Effect] {
        switch connection {
        case .none:
            return []
        case .disconnecting(let wasConnected, _):
            connection = .disconnecting(wasConnected: wasConnected, isRequested: true)
            return []
        case .connected, .connecting, .reconnecting:
            connection = .disconnecting(wasConnected: connection == .connected, isRequested: true)
            return [.endLink]
        }
    }

    mutating func linkWentUp() -> [Effect] {
        lossReason = nil
        guard isConnecting else { return [] }
        let last = connection
        (connection, shouldAutoReconnect) = (.connected, true)
        guard case .connecting(let request) = last else { return [.reportConnected] }
        // The report precedes the next request, which may end the connection.
        return insert([.reportConnected], into: finished(request, .success(Data())))
    }

    /// Returns the effects with a report after what is settled and before what begins next.
    private func insert(_ report: [Effect], into effects: [Effect]) -> [Effect] {
        let settled = effects.prefix { if case .settle = $0 { true } else { false } }
        return settled + report + effects[settled.endIndex...]
    }

    mutating func linkFailed(_ error: any Error) -> [Effect] {
        switch connection {
        case .connecting(let request):
            connection = .none
            return [.endListens(error)] + finished(request, .failure(error))
        case .reconnecting:
            return [.tryAgain]
        case .disconnecting:
            return linkWentDown(isRequested: true)
        case .connected:
            // The peripheral has lost the keys of its bond: the loss of the link follows.
            if let error = error as? BluejayError, case .pairingFailed = error { lossReason = error }
            return []
        case .none:
            return []
        }
    }

    /// - Parameter isRequested: Whether this program ended the link.
    mutating func linkWentDown(isRequested: Bool) -> [Effect] {
        switch connection {
        case .none:
            return []
        case .connecting:
            return linkFailed(isRequested ? BluejayError.explicitDisconnect : BluejayError.notConnected)
        case .reconnecting:
            guard isRequested else { return [.tryAgain] }
            (connection, shouldAutoReconnect) = (.none, false)
            return [.endListens(BluejayError.explicitDisconnect)]
        case .connected:
            let error = isRequested ? BluejayError.explicitDisconnect : lossReason ?? .notConnected
            return linkEnded(wasConnected: true, isRequested: isRequested, error)
        case .disconnecting(let wasConnected, let isRequested):
            return linkEnded(wasConnected: wasConnected, isRequested: isRequested, .explicitDisconnect)
        }
    }

    private mutating func linkEnded(wasConnected: Bool, isRequested: Bool, _ error: BluejayError) -> [Effect] {
        connection = .none
        let ended = wasConnected ? endOperations(error) : []
        // A disconnection has succeeded, also one that waits for its turn, unless it is that of a later connection.
        let disconnections = milestones.prefix { !$0.isConnect }.filter(\.isDisconnect)
        if isRequested || !disconnections.isEmpty { shouldAutoReconnect = false }
        var following = disconnections.flatMap { self.ended($0, .success(Data())) }
        // Its turn came while the link was ending.
        if connection == .none, let current = queue.current, current.isConnect { following += begin(current) }
        if wasConnected {
            let report = failTask(error) + reportDisconnected(isRequested ? nil : error)
            following = insert(report, into: following)
        }
        return ended + [.endListens(error)] + following
    }

    /// Fails the operations that require the connection, except a pairing that has begun: it may make the link again, and
    /// ends otherwise. Other requests stay in the queue.
    private mutating func endOperations(_ error: BluejayError) -> [Effect] {
        let current = queue.current.map { $0.isPairing ? [] : [$0] } ?? []
        return (current + queue.waiting).filter(\.requiresConnection).flatMap { ended($0, .failure(error)) }
    }

    mutating func handlerReturned(_ mode: AutoReconnectMode) -> [Effect] {
        if case .change(let shouldAutoReconnect) = mode { self.shouldAutoReconnect = shouldAutoReconnect }
        return shouldAutoReconnect ? reconnect() : []
    }

    /// A connection of an earlier run did not come back in time; Bluejay gives it up.
    mutating func reconnectionTimedOut() -> [Effect] {
        guard connection == .reconnecting else { return [] }
        connection = .disconnecting(wasConnected: false, isRequested: false)
        let error = isAvailable == false ? BluejayError.bluetoothUnavailable : .connectionTimedOut
        return [.endListens(error), .endLink]
    }

    // MARK: The background task

    /// Begins a task; returns why it is refused, or `nil`.
    mutating func taskRequested(by caller: Caller) -> BluejayError? {
        guard isStarted else { return .stopped }
        if caller == .insideTask { return .calledInsideBackgroundTask }
        if isTaskRunning { return .multipleBackgroundTaskNotSupported }
        guard isAvailable != false else { return .bluetoothUnavailable }
        if let refusal = refusalOfOperations { return refusal }
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

    /// Reports a disconnection; after the task if one is running, since an observer may begin something then.
    private mutating func reportDisconnected(_ error: (any Error)?) -> [Effect] {
        let report = Effect.reportDisconnected(error, willReconnect: shouldAutoReconnect)
        guard isTaskRunning else { return [report] }
        deferred.append(report)
        return []
    }
}
