/// One attempt of one user to connect a device.
package struct ConnectID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Orders the attempts to connect of one adapter: a controller can initiate one link at a time, and attempts that
/// overlap make each other fail.
///
/// An attempt that was cancelled or has timed out keeps its turn until BlueZ has ended it: otherwise BlueZ would refuse the
/// next one with "Operation already in progress". No attempt begins while the same device is being disconnected: BlueZ
/// would report success, and drop the link two seconds after the call of `Disconnect`.
///
/// No clock, no bus: time comes in as ``timerFired()`` and calls go out as ``Effect``s.
package struct ConnectQueue {
    /// How long BlueZ may take to end an attempt, in seconds, including the two seconds before it drops a link.
    package static let cancelLimit = 6.0
    /// How long an attempt may keep others waiting, in seconds: an absent device must not hold up the present ones.
    package static let turnLimit = 10.0

    package enum Effect: Hashable, Sendable {
        /// `Device1.Connect`; its reply is passed to ``ConnectQueue/connectReplied(_:error:)``.
        case connect(ConnectID, ObjectKey)
        /// `Device1.Disconnect`, which ends an attempt; its reply is passed to ``ConnectQueue/disconnectReplied(_:)``.
        case disconnect(ConnectID, ObjectKey)
        /// Starts the one timer, or starts it again.
        case startTimer(seconds: Double)
        case cancelTimer
        /// The attempt has ended, successfully if there is no error.
        case complete(ConnectID, BlueZError?)
    }

    package struct Request: Hashable, Sendable {
        package let id: ConnectID
        package let device: ObjectKey
        package let timeout: Double
    }

    package enum State: Hashable, Sendable {
        case idle
        case connecting(Request)
        /// Its turn is over, but no other attempt waits.
        case overtime(Request)
        /// Cancelled with this error; ends when the pending calls have a reply.
        case cancelling(Request, BlueZError, isConnectPending: Bool, isDisconnectPending: Bool)
    }

    package private(set) var state: State = .idle
    package private(set) var waiting: [Request] = []
    /// Devices that this process is disconnecting, with the number of calls.
    private var disconnecting: [ObjectKey: Int] = [:]

    package init() {}

    package var isAtRest: Bool { state == .idle && waiting.isEmpty && disconnecting.isEmpty }

    /// Whether this attempt has its turn, and was not cancelled.
    package func isConnecting(_ id: ConnectID) -> Bool {
        switch state {
        case .connecting(let request), .overtime(let request): request.id == id
        case .idle, .cancelling: false
        }
    }

    // MARK: Events

    package mutating func requested(_ id: ConnectID, _ device: ObjectKey, timeout: Double) -> [Effect] {
        waiting.append(Request(id: id, device: device, timeout: timeout))
        if case .overtime(let request) = state, hasNext { return callOff(request, .turnEnded) }
        return next()
    }

    package mutating func cancelled(_ id: ConnectID) -> [Effect] {
        if let index = waiting.firstIndex(where: { $0.id == id }) {
            waiting.remove(at: index)
            return [.complete(id, .connectCancelled)]
        }
        switch state {
        case .connecting(let request) where request.id == id, .overtime(let request) where request.id == id:
            return callOff(request, .connectCancelled)
        case .cancelling(let request, _, let isConnectPending, let isDisconnectPending) where request.id == id:
            // The user's cancellation replaces an earlier reason.
            state = .cancelling(
                request, .connectCancelled, isConnectPending: isConnectPending,
                isDisconnectPending: isDisconnectPending)
            return []
        case .idle, .connecting, .overtime, .cancelling:
            return []
        }
    }

    package mutating func connectReplied(_ id: ConnectID, error: BlueZError?) -> [Effect] {
        switch state {
        case .connecting(let request) where request.id == id, .overtime(let request) where request.id == id:
            return finish(request, error)
        case .cancelling(let request, let reason, true, let isDisconnectPending) where request.id == id:
            return cancelling(request, reason, isConnectPending: false, isDisconnectPending: isDisconnectPending)
        case .idle, .connecting, .overtime, .cancelling:
            return []
        }
    }

    package mutating func disconnectReplied(_ id: ConnectID) -> [Effect] {
        guard case .cancelling(let request, let reason, let isConnectPending, true) = state, request.id == id else {
            return []
        }
        return cancelling(request, reason, isConnectPending: isConnectPending, isDisconnectPending: false)
    }

    package mutating func timerFired() -> [Effect] {
        switch state {
        case .idle: return []
        case .connecting(let request) where request.timeout > ConnectQueue.turnLimit:
            guard !hasNext else { return callOff(request, .turnEnded) }
            state = .overtime(request)
            return [.startTimer(seconds: request.timeout - ConnectQueue.turnLimit)]
        case .connecting(let request), .overtime(let request):
            return callOff(request, .connectTimedOut(after: request.timeout))
        case .cancelling(let request, let reason, _, _): return finish(request, reason)
        }
    }

    /// `Device1.Disconnect` was sent for a user.
    package mutating func disconnectStarted(_ device: ObjectKey) { disconnecting[device, default: 0] += 1 }

    /// `Device1.Disconnect` has succeeded, after which the link is down, or has failed.
    package mutating func disconnectEnded(_ device: ObjectKey) -> [Effect] {
        guard let count = disconnecting[device] else { return [] }
        disconnecting[device] = count > 1 ? count - 1 : nil
        if case .overtime(let request) = state, hasNext { return callOff(request, .turnEnded) }
        return next()
    }

    // MARK: Steps

    private var nextIndex: Int? { waiting.firstIndex { disconnecting[$0.device] == nil } }
    private var hasNext: Bool { nextIndex != nil }

    private mutating func next() -> [Effect] {
        guard state == .idle, let index = nextIndex else { return [] }
        let request = waiting.remove(at: index)
        state = .connecting(request)
        return [
            .connect(request.id, request.device), .startTimer(seconds: min(request.timeout, ConnectQueue.turnLimit)),
        ]
    }

    private mutating func callOff(_ request: Request, _ reason: BlueZError) -> [Effect] {
        state = .cancelling(request, reason, isConnectPending: true, isDisconnectPending: true)
        return [.disconnect(request.id, request.device), .startTimer(seconds: ConnectQueue.cancelLimit)]
    }

    private mutating func cancelling(
        _ request: Request, _ reason: BlueZError, isConnectPending: Bool, isDisconnectPending: Bool
    ) -> [Effect] {
        guard isConnectPending || isDisconnectPending else { return finish(request, reason) }
        state = .cancelling(
            request, reason, isConnectPending: isConnectPending, isDisconnectPending: isDisconnectPending)
        return []
    }

    private mutating func finish(_ request: Request, _ error: BlueZError?) -> [Effect] {
        state = .idle
        return [.cancelTimer, .complete(request.id, error)] + next()
    }
}
