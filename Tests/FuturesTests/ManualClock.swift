import BlueCapFutures

/// A clock that a test advances.
final class ManualClock: DelayClock {
    private struct State {
        var now = 0.0
        var waiting: [(due: Double, work: @Sendable () -> Void)] = []
    }

    private let state = Locked(State())

    var now: Double { state.withLock { $0.now } }

    func after(_ seconds: Double, _ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.waiting.append((due: $0.now + seconds, work: work)) }
    }

    /// Runs what is due, in order, including what is added by it.
    func advance(by seconds: Double) {
        let end = now + seconds
        while let work = takeNext(until: end) { work() }
        state.withLock { $0.now = end }
    }

    private func takeNext(until end: Double) -> (@Sendable () -> Void)? {
        state.withLock { state in
            let due = state.waiting.enumerated().filter { $0.element.due <= end }
            guard let next = due.min(by: { ($0.element.due, $0.offset) < ($1.element.due, $1.offset) }) else {
                return nil
            }
            state.now = next.element.due
            return state.waiting.remove(at: next.offset).work
        }
    }
}
