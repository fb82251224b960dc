// Operators that select elements by their number or by time.

extension FutureStream {
    /// Returns a future of the first element: the oldest kept one, or the next one.
    ///
    /// If the stream ends without one, it fails with ``FuturesError/noSuchElement``.
    public func first() -> Future<T> {
        let first = Future<T>()
        receive(finished: { first.failure(noSuchElement) }) { element in
            first.complete(element)
            return false
        }
        return first
    }

    /// Returns a stream of the first `count` elements, which then ends.
    public func take(_ count: Int) -> FutureStream<T> {
        precondition(count >= 0, "take(_:) takes at least 0 elements; it was asked for \(count).")
        let taken = FutureStream<T>(capacity: capacity)
        if count == 0 {
            taken.finish()
            return taken
        }
        let link = StreamLink(taken)
        var missing = count
        receive(for: taken, finished: { link.finish() }) { element in
            missing -= 1
            link.send(element)
            if missing == 0 { link.finish() }
            return missing > 0
        }
        return taken
    }

    /// Returns a future of the next `count` values in an array: the kept ones, then the new ones.
    ///
    /// It fails with the first error among them, and with ``FuturesError/noSuchElement`` if the stream ends before.
    public func collect(_ count: Int) -> Future<[T]> {
        precondition(count >= 0, "collect(_:) collects at least 0 values; it was asked for \(count).")
        return count == 0 ? Future(value: []) : take(count).collect(atLeast: count)
    }

    /// Returns a future of all values until the stream ends. It fails with the first error among them.
    public func collect() -> Future<[T]> {
        collect(atLeast: 0)
    }

    private func collect(atLeast count: Int) -> Future<[T]> {
        let collected = Future<[T]>()
        var values: [T] = []
        let finished = {
            collected.complete(values.count < count ? .failure(noSuchElement) : .success(values))
        }
        receive(finished: { _ = finished() }) { element in
            switch element {
            case .success(let value): values.append(value)
            case .failure(let error): collected.failure(error)
            }
            return element.isSuccess()
        }
        return collected
    }

    /// Calls `receive` with each element, on the thread that delivers it, until it returns false.
    private func receive(
        for result: FutureStream<T>? = nil, finished: @escaping () -> Void, _ receive: @escaping (Try<T>) -> Bool
    ) {
        let token = CancelToken()
        let handler = Handler<T>.completion { [weak self] element in
            if !receive(element) { self?.cancel(token) }
        }
        add(StreamHandler(handler, token: token, finished: finished), for: result)
    }

    /// Returns a stream for receivers that need only the latest element: while `context` is busy one element waits for
    /// it, and a newer one replaces that.
    ///
    /// The returned stream receives its elements on `context`, and keeps none for handlers that are added late.
    public func latest(context: any ExecutionContext = QueueContext.futuresDefault) -> FutureStream<T> {
        let latest = FutureStream<T>(capacity: 0)
        add(StreamHandler<T>.transforming(into: latest) { $0 }.dispatched(on: context, waiting: 1), for: latest)
        return latest
    }

    /// Returns a stream with at most one element in every period of `seconds`: the first at once, then at the end of each
    /// period the latest that arrived in it.
    public func throttle(_ seconds: Double) -> FutureStream<T> {
        throttle(seconds, clock: DispatchClock.shared)
    }

    package func throttle(_ seconds: Double, clock: any DelayClock) -> FutureStream<T> {
        let throttled = FutureStream<T>(capacity: capacity)
        let throttle = Throttle(stream: throttled, seconds: seconds, clock: clock)
        add(StreamHandler(.completion { throttle.receive($0) }, finished: { throttle.finish() }), for: throttled)
        return throttled
    }
}

/// Passes on one element in each period: the first at once, then the latest of each period.
// `@unchecked`: the state is behind a lock, and the stream locks itself.
private struct Throttle<T>: @unchecked Sendable {
    private struct State {
        /// Whether a period is running.
        var isClosed = false
        var latest: Try<T>?
        var isFinished = false
    }

    let stream: FutureStream<T>
    let seconds: Double
    let clock: any DelayClock
    private let state = Locked(State())

    func receive(_ element: Try<T>) {
        let (isFirst, displaced) = state.withLock { state in
            let isFirst = !state.isClosed
            let displaced = state.latest
            state.isClosed = true
            if !isFirst { state.latest = element }
            return (isFirst, displaced)
        }
        if isFirst { begin(with: element) }
        withExtendedLifetime(displaced) {}  // released here, outside the lock
    }

    /// Finishes the stream, at the end of the period if an element is waiting for that.
    func finish() {
        let mayFinish = state.withLock { state in
            state.isFinished = true
            return state.latest == nil
        }
        if mayFinish { stream.finish() }
    }

    private func begin(with element: Try<T>) {
        stream.complete(element)
        clock.after(seconds) { endPeriod() }
    }

    private func endPeriod() {
        let (latest, isFinished) = state.withLock { state in
            let latest = state.latest.take()
            state.isClosed = latest != nil
            return (latest, state.isFinished)
        }
        guard let latest else { return }
        if isFinished {
            stream.end(with: latest)
        } else {
            begin(with: latest)
        }
    }
}
