import Synchronization

// From a stream to the streams and futures that its elements lead to, and from all of those to one stream again.

extension FutureStream {
    /// A stream of what all the streams that `mapping` returns keep and get, as it arrives.
    ///
    /// Errors of this stream pass; what `mapping` throws is an error in the value's place. It ends when this stream and
    /// all the others have ended. After a cancellation nothing more comes, from the others neither.
    @preconcurrency
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> FutureStream<M>
    ) -> FutureStream<M> {
        branched(context, cancelToken) { element, branches in
            switch element {
            case .success(let value):
                do { branches.follow(try mapping(value)) } catch { branches.target.send(.failure(error)) }
            case .failure(let error):
                branches.target.send(.failure(error))
            }
        }
    }

    /// A stream of what the futures that `mapping` returns complete with, as they complete.
    ///
    /// Errors of this stream pass; what `mapping` throws is an error in the value's place. It ends when this stream has
    /// ended and all the futures are complete. After a cancellation nothing more comes, from the futures neither.
    @preconcurrency
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> Future<M>
    ) -> FutureStream<M> {
        branched(context, cancelToken) { element, branches in
            switch element {
            case .success(let value):
                do { branches.follow(try mapping(value)) } catch { branches.target.send(.failure(error)) }
            case .failure(let error):
                branches.target.send(.failure(error))
            }
        }
    }

    /// A stream of the values, and for each error of what the stream that `recovery` returns keeps and gets.
    ///
    /// What `recovery` throws is the error. It ends when this stream and all the others have ended.
    @preconcurrency
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> FutureStream<T>
    ) -> FutureStream<T> {
        branched(context, cancelToken) { element, branches in
            switch element {
            case .success:
                branches.target.send(element)
            case .failure(let error):
                do { branches.follow(try recovery(error)) } catch { branches.target.send(.failure(error)) }
            }
        }
    }

    /// A stream of the values, and for each error of what the future that `recovery` returns completes with.
    ///
    /// What `recovery` throws is the error. It ends when this stream has ended and all the futures are complete.
    @preconcurrency
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> Future<T>
    ) -> FutureStream<T> {
        branched(context, cancelToken) { element, branches in
            switch element {
            case .success:
                branches.target.send(element)
            case .failure(let error):
                do { branches.follow(try recovery(error)) } catch { branches.target.send(.failure(error)) }
            }
        }
    }

    private func branched<M>(
        _ context: any ExecutionContext, _ token: CancelToken,
        _ handle: @escaping (Try<T>, StreamBranches<M>) -> Void
    ) -> FutureStream<M> {
        let branches = StreamBranches(target: FutureStream<M>(capacity: capacity))
        let handler = StreamHandler<T>(
            .completion { handle($0, branches) }, token: token, finished: { branches.end() },
            stopped: { branches.stop() })
        add(handler, context: context)
        return branches.target
    }
}

/// Everything that the elements of a stream led to, on its way into one stream, which ends when the last of it has.
private final class StreamBranches<T> {
    let target: FutureStream<T>
    /// How many are still to end: the stream itself, and everything that is being followed.
    private let open = Atomic<Int>(1)
    private let isStopped = Atomic<Bool>(false)

    init(target: FutureStream<T>) {
        self.target = target
    }

    /// From now on nothing more gets through.
    func stop() {
        isStopped.store(true, ordering: .releasing)
    }

    /// One of those that were open has ended.
    func end() {
        if open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { target.finish() }
    }

    func follow(_ stream: FutureStream<T>) {
        open.add(1, ordering: .relaxed)
        let handler = StreamHandler<T>(
            .completion { element in
                if !self.isStopped.load(ordering: .acquiring) { self.target.send(element) }
            },
            batch: { batch in
                if !self.isStopped.load(ordering: .acquiring) { self.target.send(contentsOf: batch) }
            },
            finished: { self.end() })
        stream.add(handler)
    }

    func follow(_ future: Future<T>) {
        open.add(1, ordering: .relaxed)
        let handler = Handler<T>.completion { outcome in
            if !self.isStopped.load(ordering: .acquiring) { self.target.send(outcome) }
            self.end()
        }
        future.add(handler)
    }
}
