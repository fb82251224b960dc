// MARK: Handlers

extension Future {
    /// Calls `completion` with the outcome, once, on `context`; also if the future is already complete.
    @preconcurrency @inlinable
    public func onComplete(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) {
        add(.completion(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with the value, once, on `context`; never if the future fails.
    @preconcurrency @inlinable
    public func onSuccess(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) {
        add(.success(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with the error, once, on `context`; never if the future succeeds.
    @preconcurrency @inlinable
    public func onFailure(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (any Error) -> Void
    ) {
        add(.failure(completion), context: context, token: cancelToken)
    }

    /// The same as ``onSuccess(context:cancelToken:completion:)``, under the name that sequences use.
    @preconcurrency @inlinable
    public func forEach(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        apply: @escaping @Sendable (T) -> Void
    ) {
        add(.success(apply), context: context, token: cancelToken)
    }
}

// MARK: - Operators

extension Future {
    /// Returns a future of the mapped value.
    @preconcurrency @inlinable
    public func map<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> M
    ) -> Future<M> {
        derive(context, cancelToken) { $0.complete($1.map(mapping)) }
    }

    /// Returns a future that completes with the outcome of the future that `mapping` returns: one request after the other.
    @preconcurrency @inlinable
    public func flatMap<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> Future<M>
    ) -> Future<M> {
        derive(context, cancelToken) { mapped, outcome in
            switch outcome {
            case .success(let value): mapped.follow { try mapping(value) }
            case .failure(let error): mapped.failure(error)
            }
        }
    }

    /// Returns a future of the same value if `filter` accepts it. If not, it fails with ``FuturesError/noSuchElement``.
    @preconcurrency @inlinable
    public func withFilter(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        filter: @escaping @Sendable (T) throws -> Bool
    ) -> Future<T> {
        derive(context, cancelToken) { $0.complete($1.filter(filter)) }
    }

    /// Returns a future of the same outcome. If it is a value, `completion` is called with it before the returned future
    /// is completed.
    @preconcurrency @inlinable
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) -> Future<T> {
        derive(context, cancelToken) { $0.complete($1.after(completion)) }
    }

    /// Returns a future of the same outcome. `completion` is called with the outcome, a value or an error, before the
    /// returned future is completed.
    @preconcurrency @inlinable @_disfavoredOverload
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) -> Future<T> {
        derive(context, cancelToken) { passed, outcome in
            completion(outcome)
            passed.complete(outcome)
        }
    }

    /// Returns a future of the same value, or of the value that `recovery` returns for the error.
    @preconcurrency @inlinable
    public func recover(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> T
    ) -> Future<T> {
        derive(context, cancelToken) { $0.complete($1.recover(recovery)) }
    }

    /// Returns a future of the same value, or of the outcome of the future that `recovery` returns for the error.
    @preconcurrency @inlinable
    public func recoverWith(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> Future<T>
    ) -> Future<T> {
        derive(context, cancelToken) { recovered, outcome in
            switch outcome {
            case .success: recovered.complete(outcome)
            case .failure(let error): recovered.follow { try recovery(error) }
            }
        }
    }

    /// Returns a future of the same value, or of the failure with the error that `mapping` returns or throws.
    @preconcurrency @inlinable
    public func mapError(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (any Error) throws -> any Error
    ) -> Future<T> {
        derive(context, cancelToken) { $0.complete($1.mapError(mapping)) }
    }

    /// Returns a future of the left future's value, or of the value on the right if the left fails.
    ///
    /// The right side is evaluated at once, on the calling thread, before the operator returns, so that it may read state
    /// of the caller's actor (`reading ?? self.cached`). It is not evaluated if the left future has already succeeded.
    /// If the left fails, the error is the one that the right side throws. To compute a value only after a failure, use
    /// ``recover(context:cancelToken:recovery:)``.
    public static func ?? (left: Future<T>, right: @autoclosure () throws -> T) -> Future<T> {
        if left.result?.isSuccess() == true { return left }
        let fallback: Try<T> = Try(right)
        return left.derive(ImmediateContext(), .uncancellable) { $0.complete($1.isSuccess() ? $1 : fallback) }
    }

    /// Returns a future of the left future's value, or of the right future's outcome if the left fails.
    ///
    /// The right side, usually another request, is evaluated only if the left fails: on the thread that completes the
    /// left, or at once if it has already failed. If it throws, that is the error. It is therefore a `@Sendable` closure;
    /// for one that needs the main actor use ``recoverWith(on:cancelToken:recovery:)``.
    @preconcurrency
    public static func ?? (
        left: Future<T>, right: @autoclosure @escaping @Sendable () throws -> Future<T>
    ) -> Future<T> {
        left.recoverWith(context: ImmediateContext()) { _ in try right() }
    }

    /// Returns a future of both values. It fails when the first of the two fails.
    public func zip<U>(_ other: Future<U>) -> Future<(T, U)> {
        let zipped: Future<(T, U)> = derive(ImmediateContext(), .uncancellable) { zipped, mine in
            switch mine {
            case .success(let value): other.add(.completion { zipped.complete($0.map { (value, $0) }) })
            case .failure(let error): zipped.failure(error)
            }
        }
        other.add(.failure { zipped.failure($0) })
        return zipped
    }
}

/// Returns a future of both values. It fails when the first of the two fails.
public func zip<A, B>(_ first: Future<A>, _ second: Future<B>) -> Future<(A, B)> {
    first.zip(second)
}

/// Returns a future of all three values. It fails when the first of the three fails.
public func zip<A, B, C>(_ first: Future<A>, _ second: Future<B>, _ third: Future<C>) -> Future<(A, B, C)> {
    first.zip(second.zip(third)).map(context: ImmediateContext()) { ($0.0, $0.1.0, $0.1.1) }
}

// MARK: - From a future to a stream

extension Future {
    /// Returns a stream of the elements of the stream that `mapping` returns for the value: those that it keeps and those
    /// that it receives later. The returned stream ends when that one does, and keeps `capacity` elements.
    ///
    /// If this future fails, or `mapping` throws, the error is the only element.
    @preconcurrency @inlinable
    public func flatMap<M>(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> FutureStream<M>
    ) -> FutureStream<M> {
        deriveStream(capacity, context, cancelToken) { mapped, outcome in
            switch outcome {
            case .success(let value): mapped.follow { try mapping(value) }
            case .failure(let error): mapped.end(with: .failure(error))
            }
        }
    }

    /// Returns a stream of the elements of the stream that `recovery` returns for the error: those that it keeps and those
    /// that it receives later. The returned stream ends when that one does, and keeps `capacity` elements.
    ///
    /// If this future succeeds, the value is the only element; if `recovery` throws, that error is.
    @preconcurrency @inlinable
    public func recoverWith(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> FutureStream<T>
    ) -> FutureStream<T> {
        deriveStream(capacity, context, cancelToken) { recovered, outcome in
            switch outcome {
            case .success: recovered.end(with: outcome)
            case .failure(let error): recovered.follow { try recovery(error) }
            }
        }
    }

    @usableFromInline
    func deriveStream<M>(
        _ capacity: Int, _ context: any ExecutionContext, _ token: CancelToken,
        _ complete: @escaping (_ derived: FutureStream<M>, _ outcome: Try<T>) -> Void
    ) -> FutureStream<M> {
        let derived = FutureStream<M>(capacity: capacity)
        add(.completion { complete(derived, $0) }, context: context, token: token)
        return derived
    }
}

extension FutureStream {
    /// Receives the elements of the stream that `next` returns, and ends when that one does; or receives the error that
    /// `next` throws, and ends.
    @usableFromInline
    func follow(_ next: () throws -> FutureStream<T>) {
        do { try next().add(.transforming(into: self) { $0 }) } catch { end(with: .failure(error)) }
    }

    /// Adds one more element, the last.
    @usableFromInline
    func end(with element: Try<T>) {
        complete(element)
        finish()
    }
}

// MARK: - Completing by other means

extension Future {
    /// Completes with a value. Returns false, and does nothing, if the future was complete.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        complete(.success(value))
    }

    /// Completes with an error. Returns false, and does nothing, if the future was complete.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        complete(.failure(error))
    }

    /// Completes with the outcome of `future`, on `context`, when there is one.
    public func completeWith(
        context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>
    ) {
        future.add(.follower(self), context: context, token: .uncancellable)
    }

    /// Completes with the first element of `stream`, a value or an error, on `context`.
    ///
    /// That is the oldest element that the stream keeps, or the next one; later elements are ignored. If the stream ends
    /// without an element, the future fails with ``FuturesError/noSuchElement``.
    public func completeWith(
        context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>
    ) {
        completeWith(context: context, future: stream.first())
    }

    /// Completes with the outcome of the future in `future`, on `context`, or at once with the error in its place.
    public func completeWith(
        context: any ExecutionContext = QueueContext.futuresDefault, future: Try<Future<T>>
    ) {
        do { completeWith(context: context, future: try future.get()) } catch { failure(error) }
    }

    /// Creates a future that completes with the outcome of `dependent`, on `context`, when there is one.
    public convenience init(
        context: any ExecutionContext = QueueContext.futuresDefault, dependent: Future<T>
    ) {
        self.init()
        completeWith(context: context, future: dependent)
    }

    /// Creates a future that `resolver` completes by calling the function that is passed to it. If `resolver` throws, the
    /// future fails with that error.
    public convenience init(resolver: (_ complete: @escaping (Try<T>) -> Void) throws -> Void) {
        self.init()
        do { try resolver { self.complete($0) } } catch { failure(error) }
    }
}
