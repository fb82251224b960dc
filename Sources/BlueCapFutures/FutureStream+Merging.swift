import Synchronization

// Operators that merge several streams and futures, one for each element, into one stream.

extension FutureStream {
    /// Returns a stream of the elements of all streams that `mapping` returns.
    @preconcurrency
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> FutureStream<M>
    ) -> FutureStream<M> {
        merged(context, cancelToken) { element, sources in sources.follow(try mapping(try element.get())) }
    }

    /// Returns a stream of the outcomes of the futures that `mapping` returns, as they complete.
    @preconcurrency
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> Future<M>
    ) -> FutureStream<M> {
        merged(context, cancelToken) { element, sources in sources.follow(try mapping(try element.get())) }
    }

    /// Returns a stream of the values, and for each error of the elements of the stream that `recovery` returns.
    @preconcurrency
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> FutureStream<T>
    ) -> FutureStream<T> {
        merged(context, cancelToken) { element, sources in
            guard let error = element.error else { return sources.send(element) }
            sources.follow(try recovery(error))
        }
    }

    /// Returns a stream of the values, and for each error of the outcome of the future that `recovery` returns.
    @preconcurrency
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> Future<T>
    ) -> FutureStream<T> {
        merged(context, cancelToken) { element, sources in
            guard let error = element.error else { return sources.send(element) }
            sources.follow(try recovery(error))
        }
    }

    /// Returns the stream into which `handle` merges a source for each element. An error that it throws is an element.
    private func merged<M>(
        _ context: any ExecutionContext, _ token: CancelToken,
        _ handle: @escaping (Try<T>, MergedSources<M>) throws -> Void
    ) -> FutureStream<M> {
        let target = FutureStream<M>(capacity: capacity)
        let sources = MergedSources(target: target)
        let handler = StreamHandler<T>(
            .completion { element in
                do { try handle(element, sources) } catch { sources.send(.failure(error)) }
            }, token: token, finished: { sources.end() }, stopped: { sources.stop() })
        add(handler, for: target, context: context)
        return target
    }
}

/// The streams and futures that are merged into one stream, which ends when the last of them has ended.
private final class MergedSources<T> {
    private let target: FutureStream<T>
    /// How many sources have not ended: the stream itself, and all that are followed.
    private let open = Atomic<Int>(1)
    private let isStopped = Atomic<Bool>(false)

    init(target: FutureStream<T>) {
        self.target = target
    }

    /// From now on the target receives nothing.
    func stop() {
        isStopped.store(true, ordering: .releasing)
    }

    /// Called when a source has ended.
    func end() {
        if open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { target.finish() }
    }

    func send(_ element: Try<T>) {
        if !isStopped.load(ordering: .acquiring) { target.complete(element) }
    }

    func follow(_ stream: FutureStream<T>) {
        open.add(1, ordering: .relaxed)
        let handler = StreamHandler<T>(
            .completion { self.send($0) },
            batch: { batch in
                if !self.isStopped.load(ordering: .acquiring) { self.target.complete(contentsOf: batch) }
            },
            finished: { self.end() })
        stream.add(handler)
    }

    func follow(_ future: Future<T>) {
        open.add(1, ordering: .relaxed)
        future.add(
            .completion { outcome in
                self.send(outcome)
                self.end()
            })
    }
}
