extension Future {
    /// A future of the value mapped. It fails with the error of this one, or with what `mapping` throws.
    @preconcurrency @inlinable
    public func map<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> M
    ) -> Future<M> {
        let mapped = Future<M>()
        add(.completion { mapped.complete($0.map(mapping)) }, context: context, token: cancelToken)
        return mapped
    }

    /// A future of what the future that `mapping` returns completes with: one request after the other.
    ///
    /// It fails with the error of this one, or with what `mapping` throws.
    @preconcurrency @inlinable
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> Future<M>
    ) -> Future<M> {
        let mapped = Future<M>()
        let handler = Handler<T>.completion { outcome in
            switch outcome {
            case .success(let value):
                do { mapped.follow(try mapping(value)) } catch { mapped.failure(error) }
            case .failure(let error):
                mapped.failure(error)
            }
        }
        add(handler, context: context, token: cancelToken)
        return mapped
    }

    /// A future of the same value if `filter` accepts it; it fails with ``FuturesError/noSuchElement`` if not.
    ///
    /// It fails with the error of this one, or with what `filter` throws.
    @preconcurrency @inlinable
    public func withFilter(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        filter: @escaping @Sendable (T) throws -> Bool
    ) -> Future<T> {
        let filtered = Future<T>()
        add(.completion { filtered.complete($0.filter(filter)) }, context: context, token: cancelToken)
        return filtered
    }

    /// A future of the same outcome, completed after `completion` was called with the value. A failure passes through.
    @preconcurrency @inlinable
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) -> Future<T> {
        let passed = Future<T>()
        let handler = Handler<T>.completion { outcome in
            outcome.forEach(completion)
            passed.complete(outcome)
        }
        add(handler, context: context, token: cancelToken)
        return passed
    }

    /// A future of the same outcome, completed after `completion` was called with it, be it a value or an error.
    @preconcurrency @inlinable @_disfavoredOverload
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) -> Future<T> {
        let passed = Future<T>()
        let handler = Handler<T>.completion { outcome in
            completion(outcome)
            passed.complete(outcome)
        }
        add(handler, context: context, token: cancelToken)
        return passed
    }

    /// A future that succeeds with what `recovery` makes of the error. A value passes through.
    ///
    /// It fails with what `recovery` throws.
    @preconcurrency @inlinable
    public func recover(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> T
    ) -> Future<T> {
        let recovered = Future<T>()
        add(.completion { recovered.complete($0.recover(recovery)) }, context: context, token: cancelToken)
        return recovered
    }

    /// A future of what the future that `recovery` returns for the error completes with. A value passes through.
    ///
    /// It fails with what `recovery` throws.
    @preconcurrency @inlinable
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> Future<T>
    ) -> Future<T> {
        let recovered = Future<T>()
        let handler = Handler<T>.completion { outcome in
            switch outcome {
            case .success:
                recovered.complete(outcome)
            case .failure(let error):
                do { recovered.follow(try recovery(error)) } catch { recovered.failure(error) }
            }
        }
        add(handler, context: context, token: cancelToken)
        return recovered
    }

    /// A future that fails with what `mapping` makes of the error, or throws. A value passes through.
    @preconcurrency @inlinable
    public func mapError(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (any Error) throws -> any Error
    ) -> Future<T> {
        let mapped = Future<T>()
        add(.completion { mapped.complete($0.mapError(mapping)) }, context: context, token: cancelToken)
        return mapped
    }
}
