import Futures
import Reactor

/// Reads signal strengths of connected peripherals at intervals, one stream for each peripheral.
final class RSSIPolls: Sendable {
    private struct Poll {
        let number: UInt64
        let promise: StreamPromise<Int>
        var timer: TimerID?
    }

    private struct State {
        var polls: [PeripheralKey: Poll] = [:]
        var lastNumber: UInt64 = 0
    }

    private let loop: any EventLoop
    private let state = Locked(State())

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Calls `poll` on the loop, at once and each `period` seconds, until the polling is stopped. Returns the promise of an
    /// earlier polling of this peripheral, which has ended.
    func start(
        _ key: PeripheralKey, period: Double, _ promise: StreamPromise<Int>, _ poll: @escaping @Sendable () -> Void
    ) -> StreamPromise<Int>? {
        let (number, old) = state.withLock { state in
            state.lastNumber += 1
            let poll = Poll(number: state.lastNumber, promise: promise)
            return (state.lastNumber, state.polls.updateValue(poll, forKey: key))
        }
        loop.post { [weak self] in self?.poll(key, number, period, poll) }
        return old.map(end)
    }

    func stop(_ key: PeripheralKey) -> StreamPromise<Int>? {
        state.withLock { $0.polls.removeValue(forKey: key) }.map(end)
    }

    func stopAll() -> [StreamPromise<Int>] {
        let polls = state.withLock { state in
            defer { state.polls = [:] }
            return state.polls
        }
        return polls.sorted { $0.key < $1.key }.map { end($0.value) }
    }

    private func end(_ poll: Poll) -> StreamPromise<Int> {
        if let timer = poll.timer { loop.cancel(timer) }
        return poll.promise
    }

    private func poll(
        _ key: PeripheralKey, _ number: UInt64, _ period: Double, _ poll: @escaping @Sendable () -> Void
    ) {
        guard state.withLock({ $0.polls[key]?.number == number }) else { return }
        poll()
        let timer = loop.schedule(after: period) { [weak self] in self?.poll(key, number, period, poll) }
        let isCurrent = state.withLock { state in
            guard state.polls[key]?.number == number else { return false }
            state.polls[key]?.timer = timer
            return true
        }
        if !isCurrent { loop.cancel(timer) }
    }
}
