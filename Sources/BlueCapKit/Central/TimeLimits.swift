import Reactor

/// The time limits of operations. Most operations end before their limits, so one timer of the loop serves all of them: it
/// fires at the earliest limit that there was when it was set, also if that operation has ended.
struct TimeLimits {
    private var limits: [OperationID: (peripheral: PeripheralKey, instant: Instant)] = [:]
    /// When the timer fires; `nil` if it is not set.
    private var alarm: Instant?

    /// Adds a limit. Returns whether it is the earliest one, so that the timer has to be set to it.
    mutating func add(_ id: OperationID, of peripheral: PeripheralKey, seconds: Double, at now: Instant) -> Bool {
        let instant = now.advanced(by: seconds)
        limits[id] = (peripheral, instant)
        if let alarm, alarm <= instant { return false }
        alarm = instant
        return true
    }

    mutating func remove(_ id: OperationID) { limits[id] = nil }

    /// The timer has fired: removes the limits that are exceeded, and returns them in their order.
    mutating func takeExceeded(at now: Instant) -> [(id: OperationID, peripheral: PeripheralKey)] {
        let exceeded = limits.filter { $0.value.instant <= now }
        for id in exceeded.keys { limits[id] = nil }
        return exceeded.sorted { ($0.value.instant, $0.key.rawValue) < ($1.value.instant, $1.key.rawValue) }
            .map { ($0.key, $0.value.peripheral) }
    }

    /// In how many seconds the timer has to fire next; `nil` without limits.
    mutating func restart(at now: Instant) -> Double? {
        alarm = limits.values.lazy.map(\.instant).min()
        return alarm?.seconds(since: now)
    }
}
