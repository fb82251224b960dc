extension FutureStream {
    /// A stream of what `transform` makes of each element.
    @inlinable
    func transformed<M>(
        _ context: any ExecutionContext, _ token: CancelToken, _ transform: @escaping (Try<T>) -> Try<M>
    ) -> FutureStream<M> {
        let target = FutureStream<M>(capacity: capacity)
        add(.transforming(into: target, token: token, transform: transform), context: context)
        return target
    }

    /// A stream of the values mapped. Errors pass; what `mapping` throws is an error in the value's place.
    @preconcurrency @inlinable
    public func map<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> M
    ) -> FutureStream<M> {
        transformed(context, cancelToken) { $0.map(mapping) }
    }

    /// A stream of the values that `filter` accepts, with ``FuturesError/noSuchElement`` in place of the others.
    ///
    /// Errors pass; what `filter` throws is an error in the value's place.
    @preconcurrency @inlinable
    public func withFilter(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        filter: @escaping @Sendable (T) throws -> Bool
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.filter(filter) }
    }

    /// A stream of the same elements, each added after `completion` was called with its value.
    @preconcurrency @inlinable
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { element in
            element.forEach(completion)
            return element
        }
    }

    /// A stream of the same elements, each added after `completion` was called with it, be it a value or an error.
    @preconcurrency @inlinable @_disfavoredOverload
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { element in
            completion(element)
            return element
        }
    }

    /// A stream with what `recovery` makes of each error in its place. Values pass; what `recovery` throws is the error.
    @preconcurrency @inlinable
    public func recover(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> T
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.recover(recovery) }
    }

    /// A stream with what `mapping` makes of each error, or throws, in its place. Values pass.
    @preconcurrency @inlinable
    public func mapError(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (any Error) throws -> any Error
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.mapError(mapping) }
    }
}
