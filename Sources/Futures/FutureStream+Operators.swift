import Synchronization

extension FutureStream {
    /// A future of the first element: of what is kept, or of what comes.
    ///
    /// If the stream ends without one, it fails with ``FuturesError/noSuchElement``.
    public func first() -> Future<T> {
        let first = Future<T>()
        let token = CancelToken()
        add(
            StreamHandler(
                .completion { [weak self] element in
                    if first.complete(element) { self?.cancel(token) }
                }, token: token, finished: { first.failure(noSuchElement) }))
        return first
    }

    /// A stream of the first `count` elements, which then ends.
    public func take(_ count: Int) -> FutureStream<T> {
        precondition(count >= 0, "take(_:) takes at least 0 elements; it was asked for \(count).")
        let taken = FutureStream<T>(capacity: capacity)
        if count == 0 {
            taken.finish()
            return taken
        }
        let token = CancelToken()
        let countdown = Countdown(count)
        let link = StreamLink(taken)
        add(
            StreamHandler(
                .completion { [weak self] element in
                    guard let left = countdown.countOne() else { return }
                    link.send(element)
                    if left == 0 {
                        link.stream.finish()
                        self?.cancel(token)
                    }
                }, token: token, finished: { link.stream.finish() }))
        return taken
    }

    /// A future of the next `count` values together: of what is kept, then of what comes.
    ///
    /// It fails with the first error among them, and with ``FuturesError/noSuchElement`` if the stream ends before.
    public func collect(_ count: Int) -> Future<[T]> {
        precondition(count >= 0, "collect(_:) collects at least 0 values; it was asked for \(count).")
        return count == 0 ? Future(value: []) : take(count).collected(exactly: count)
    }

    /// A future of all values until the stream ends. It fails with the first error among them.
    public func collect() -> Future<[T]> {
        collected(exactly: nil)
    }

    private func collected(exactly count: Int?) -> Future<[T]> {
        let collected = Future<[T]>()
        let values = Locked<[T]>([])
        let token = CancelToken()
        add(
            StreamHandler(
                .completion { [weak self] element in
                    switch element {
                    case .success(let value):
                        values.withLock { $0.append(value) }
                    case .failure(let error):
                        if collected.failure(error) { self?.cancel(token) }
                    }
                }, token: token,
                finished: {
                    let all = values.withLock { $0 }
                    if let count, all.count < count {
                        collected.failure(noSuchElement)
                    } else {
                        collected.success(all)
                    }
                }))
        return collected
    }

    /// A stream for those who need only the latest: while `context` is busy one element waits for it, and a newer one
    /// takes its place.
    ///
    /// It gets its elements on `context`, and keeps none for handlers that come late.
    public func latest(context: any ExecutionContext = QueueContext.futuresDefault) -> FutureStream<T> {
        let latest = FutureStream<T>(capacity: 0)
        add(StreamHandler<T>.transforming(into: latest) { $0 }.dispatched(on: context, waiting: 1))
        return latest
    }

    /// A stream with at most one element every `seconds`: the first at once, then the latest of each such period in which
    /// something came.
    public func throttle(_ seconds: Double) -> FutureStream<T> {
        throttle(seconds, clock: DispatchClock.shared)
    }

    package func throttle(_ seconds: Double, clock: any DelayClock) -> FutureStream<T> {
        let throttled = FutureStream<T>(capacity: capacity)
        let throttle = Throttle(into: throttled, seconds: seconds, clock: clock)
        add(StreamHandler(.completion { throttle.receive($0) }, finished: { throttle.finish() }))
        return throttled
    }
}

/// How many are still to come.
private final class Countdown: Sendable {
    private let missing: Atomic<Int>

    init(_ count: Int) {
        missing = Atomic(count)
    }

    /// How many are left after one more; `nil` if it was one too many.
    func countOne() -> Int? {
        let left = missing.subtract(1, ordering: .relaxed).newValue
        return left >= 0 ? left : nil
    }
}

/// One element a period: the first at once, then the latest of each period.
private final class Throttle<T> {
    private struct State {
        /// A period is running.
        var isClosed = false
        var latest: Try<T>?
        var isFinished = false
    }

    private let stream: FutureStream<T>
    private let seconds: Double
    private let clock: any DelayClock
    private let state = Locked(State())

    init(into stream: FutureStream<T>, seconds: Double, clock: any DelayClock) {
        self.stream = stream
        self.seconds = seconds
        self.clock = clock
    }

    func receive(_ element: Try<T>) {
        let (isFirst, displaced) = state.withLock { state in
            let isFirst = !state.isClosed
            let displaced = state.latest
            state.isClosed = true
            if !isFirst { state.latest = element }
            return (isFirst, displaced)
        }
        if isFirst { begin(with: element) }
        withExtendedLifetime(displaced) {}  // let go here, outside the lock
    }

    /// The end waits for the period in which something is waiting.
    func finish() {
        let mayFinish = state.withLock { state in
            state.isFinished = true
            return state.latest == nil
        }
        if mayFinish { stream.finish() }
    }

    private func begin(with element: Try<T>) {
        stream.send(element)
        // Captures this object: its state is behind a lock, and the stream locks itself.
        clock.after(seconds, assumeSendable { self.endPeriod() })
    }

    private func endPeriod() {
        let (latest, isFinished) = state.withLock { state in
            let latest = state.latest
            state.latest = nil
            state.isClosed = latest != nil
            return (latest, state.isFinished)
        }
        guard let latest else { return }
        if isFinished {
            stream.send(latest)
            stream.finish()
        } else {
            begin(with: latest)
        }
    }
}
