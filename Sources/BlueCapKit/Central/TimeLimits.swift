import BlueCapFutures
import BlueCapReactor

/// The time limits of operations. Used on the loop only, and unchecked because of that.
///
/// Most operations end before their limits, so all of them share one timer of the loop. The timer is set for the
/// earliest limit, and fires at that time even if that operation has ended.
final class TimeLimits: @unchecked Sendable {
    typealias Operations = [(id: OperationID, peripheral: PeripheralKey)]

    private let loop: any EventLoop
    private let exceeded: @Sendable (Operations) -> Void
    private var limits = KeyedTable<OperationID, (peripheral: PeripheralKey, instant: Instant)>()
    /// The timer, and when it fires; `nil` if it is not set.
    private var alarm: (timer: TimerID, instant: Instant)?

    /// - Parameter exceeded: Receives the operations whose limits are exceeded, in the order of the limits.
    init(_ loop: any EventLoop, exceeded: @escaping @Sendable (Operations) -> Void) {
        (self.loop, self.exceeded) = (loop, exceeded)
    }

    func add(_ id: OperationID, of peripheral: PeripheralKey, seconds: Double) {
        let instant = loop.now.advanced(by: seconds)
        limits[id] = (peripheral, instant)
        setTimer(to: instant, after: seconds)
    }

    func remove(_ id: OperationID) { limits[id] = nil }

    /// Sets the timer, unless it fires earlier anyway.
    private func setTimer(to instant: Instant, after seconds: Double) {
        if let alarm {
            guard instant < alarm.instant else { return }
            loop.cancel(alarm.timer)
        }
        alarm = (loop.schedule(after: seconds) { [weak self] in self?.fired() }, instant)
    }

    private func fired() {
        let now = loop.now
        alarm = nil
        let past = limits.compactMap { id, limit in
            limit.instant <= now ? (id: id, peripheral: limit.peripheral, instant: limit.instant) : nil
        }
        for limit in past { limits[limit.id] = nil }
        exceeded(
            past.ordered { ($0.instant, $0.id.rawValue) < ($1.instant, $1.id.rawValue) }
                .map { ($0.id, $0.peripheral) })
        guard let earliest = limits.compactMap({ _, limit in limit.instant }).min() else { return }
        setTimer(to: earliest, after: max(0, earliest.seconds(since: now)))
    }
}
