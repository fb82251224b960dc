/// One attempt of one user to connect a device.
package struct ConnectID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// The links of one adapter: whose turn it is to connect, and which devices are being disconnected.
///
/// A controller can initiate one link at a time, and attempts that overlap make each other fail. An attempt that was
/// cancelled or has timed out keeps its turn until BlueZ has ended it: otherwise BlueZ would refuse the next one with
/// "Operation already in progress". No attempt begins while the same device is being disconnected: BlueZ would report
/// success, and drop the link two seconds after the call of `Disconnect`.
///
/// No clock, no bus: time comes in as ``timerFired()`` and calls go out as ``Effect``s.
struct LinkMachine: Equatable {
    /// The longest that an attempt may take, in seconds. The kernel gives up a link that does not come up after 20 s.
    static let attemptLimit = 60.0
    /// How long an attempt may keep others waiting, in seconds: an absent device must not hold up the present ones.
    static let turnLimit = 10.0
    /// How long BlueZ may take to end an attempt or a link, in seconds; it drops a link after two (DISCONNECT_TIMER).
    static let endLimit = 6.0

    enum Effect: Hashable {
        /// `Device1.Connect`; its reply is passed to ``LinkMachine/connectReplied(_:_:error:)``.
        case connect(ConnectID, ObjectKey)
        /// `Device1.Disconnect`; its reply is passed to ``LinkMachine/disconnectReplied(_:error:isConnected:)``.
        case disconnect(ObjectKey)
        /// Starts the one timer, or starts it again.
        case startTimer(seconds: Double)
        case cancelTimer
        /// The attempt has ended, successfully if there is no error.
        case complete(ConnectID, BlueZError?)
        /// The device has no link any more, or `Disconnect` has failed.
        case disconnected(ObjectKey, BlueZError?)
    }

    struct Attempt: Hashable {
        let id: ConnectID
        let device: ObjectKey
        /// Whether its turn is over, but no other attempt waits.
        var isOvertime = false
        /// Why it was cancelled. It ends when the pending calls have a reply.
        var reason: BlueZError?
        var isReplied = false
    }

    private(set) var attempt: Attempt?
    private var waiting: [Attempt] = []
    /// Devices that this process is disconnecting, with whether `Disconnect` was replied to and `Connected` is still true.
    private var disconnecting: [ObjectKey: Bool] = [:]

    /// Whether `Disconnect` was replied to, and the property does not show the end of the link so far.
    func isFalling(_ device: ObjectKey) -> Bool { disconnecting[device] == true }

    // MARK: Events

    mutating func requested(_ id: ConnectID, _ device: ObjectKey) -> [Effect] {
        waiting.append(Attempt(id: id, device: device))
        return next()
    }

    mutating func cancelled(_ id: ConnectID) -> [Effect] {
        if let index = waiting.firstIndex(where: { $0.id == id }) {
            waiting.remove(at: index)
            return [.complete(id, .connectCancelled)]
        }
        guard attempt?.id == id else { return [] }
        if attempt?.reason == nil { return callOff(.connectCancelled) }
        // The user's cancellation replaces an earlier reason.
        attempt?.reason = .connectCancelled
        return []
    }

    mutating func connectReplied(_ id: ConnectID, _ device: ObjectKey, error: BlueZError?) -> [Effect] {
        guard attempt?.id == id else {
            // An attempt that was given up has succeeded after all.
            return error == nil && attempt?.device != device ? disconnectAsked(device) : []
        }
        guard attempt?.reason != nil else { return finish(error) }
        attempt?.isReplied = true
        return endCancelled()
    }

    mutating func timerFired() -> [Effect] {
        guard let attempt else { return [] }
        if let reason = attempt.reason { return finish(reason) }
        if attempt.isOvertime { return callOff(.connectTimedOut(after: Self.attemptLimit)) }
        self.attempt?.isOvertime = true
        let yielding = next()
        return yielding.isEmpty ? [.startTimer(seconds: Self.attemptLimit - Self.turnLimit)] : yielding
    }

    /// The link of a device is to be ended. Joins the call that is under way, if there is one.
    mutating func disconnectAsked(_ device: ObjectKey) -> [Effect] {
        guard disconnecting[device] == nil else { return [] }
        disconnecting[device] = false
        return [.disconnect(device)]
    }

    /// - Parameter isConnected: Whether the device's property shows a link.
    mutating func disconnectReplied(_ device: ObjectKey, error: BlueZError?, isConnected: Bool) -> [Effect] {
        guard error == nil, isConnected else { return disconnectEnded(device, error) }
        disconnecting[device] = true
        return []
    }

    /// The device's property shows that there is no link, or has not shown it in time.
    mutating func linkEnded(_ device: ObjectKey) -> [Effect] {
        isFalling(device) ? disconnectEnded(device) : []
    }

    // MARK: Steps

    private mutating func disconnectEnded(_ device: ObjectKey, _ error: BlueZError? = nil) -> [Effect] {
        guard disconnecting.removeValue(forKey: device) != nil else { return [] }
        return [.disconnected(device, error)] + endCancelled() + next()
    }

    private mutating func next() -> [Effect] {
        guard let index = waiting.firstIndex(where: { disconnecting[$0.device] == nil }) else { return [] }
        if let attempt { return attempt.isOvertime && attempt.reason == nil ? callOff(.turnEnded) : [] }
        let next = waiting.remove(at: index)
        attempt = next
        return [.connect(next.id, next.device), .startTimer(seconds: Self.turnLimit)]
    }

    private mutating func callOff(_ reason: BlueZError) -> [Effect] {
        guard let device = attempt?.device else { return [] }
        attempt?.reason = reason
        return disconnectAsked(device) + [.startTimer(seconds: Self.endLimit)]
    }

    private mutating func endCancelled() -> [Effect] {
        guard let attempt, let reason = attempt.reason, attempt.isReplied, disconnecting[attempt.device] == nil else {
            return []
        }
        return finish(reason)
    }

    private mutating func finish(_ error: BlueZError?) -> [Effect] {
        guard let ended = attempt.take() else { return [] }
        return [.cancelTimer, .complete(ended.id, error)] + next()
    }
}
