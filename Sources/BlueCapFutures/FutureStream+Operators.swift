// MARK: Handlers

extension FutureStream {
    /// Calls `completion` with every element, in order, on `context`: first the kept elements, then the new ones.
    @preconcurrency @inlinable
    public func onComplete(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) {
        add(.completion(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with every value, in order, on `context`: first the kept values, then the new ones.
    @preconcurrency @inlinable
    public func onSuccess(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) {
        add(.success(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with every error, in order, on `context`: first the kept errors, then the new ones.
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

extension FutureStream {
    /// Returns a stream of the results of `transform` for each element. Every operator that returns one element for each
    /// is one call of this function.
    @inlinable
    func transformed<M>(
        _ context: any ExecutionContext, _ token: CancelToken, _ transform: @escaping (Try<T>) -> Try<M>
    ) -> FutureStream<M> {
        let target = FutureStream<M>(capacity: capacity)
        add(.transforming(into: target, token: token, transform: transform), for: target, context: context)
        return target
    }

    /// Returns a stream of the mapped values.
    @preconcurrency @inlinable
    public func map<M>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (T) throws -> M
    ) -> FutureStream<M> {
        transformed(context, cancelToken) { $0.map(mapping) }
    }

    /// Returns a stream of the values that `filter` accepts, with ``FuturesError/noSuchElement`` in place of the others.
    @preconcurrency @inlinable
    public func withFilter(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        filter: @escaping @Sendable (T) throws -> Bool
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.filter(filter) }
    }

    /// Returns a stream of the same elements. If one is a value, `completion` is called with it before it is added.
    @preconcurrency @inlinable
    public func andThen(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.after(completion) }
    }

    /// Returns a stream of the same elements. `completion` is called with each, a value or an error, before it is added.
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

    /// Returns a stream in which the value that `recovery` returns replaces each error.
    @preconcurrency @inlinable
    public func recover(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @Sendable (any Error) throws -> T
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.recover(recovery) }
    }

    /// Returns a stream in which the error that `mapping` returns or throws replaces each error.
    @preconcurrency @inlinable
    public func mapError(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @Sendable (any Error) throws -> any Error
    ) -> FutureStream<T> {
        transformed(context, cancelToken) { $0.mapError(mapping) }
    }
}

// MARK: - Adding elements by other means

extension FutureStream {
    /// Adds a value. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        complete(.success(value))
    }

    /// Adds an error. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        complete(.failure(error))
    }

    /// Adds the outcome of `future`, on `context`, when there is one.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>) {
        future.add(.completion { self.complete($0) }, context: context, token: .uncancellable)
    }

    /// Adds the elements of `stream`, on `context`: those that it keeps and those that it receives later. When that stream
    /// finishes, this one does not, since it may have other sources.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        stream.add(
            StreamHandler(.completion { self.complete($0) }, batch: { self.complete(contentsOf: $0) }), context: context
        )
    }

    /// Adds the outcome of the future in `future`, on `context`, or at once the error in its place.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Try<Future<T>>) {
        do { completeWith(context: context, future: try future.get()) } catch { failure(error) }
    }

    /// Adds the elements of the stream in `stream`, on `context`, or at once the error in its place.
    public func completeWith(
        context: any ExecutionContext = QueueContext.futuresDefault, stream: Try<FutureStream<T>>
    ) {
        do { completeWith(context: context, stream: try stream.get()) } catch { failure(error) }
    }

    /// Creates a stream with one value.
    // Disfavoured, so that a trailing closure is a resolver and not a value.
    @_disfavoredOverload
    public convenience init(value: T, capacity: Int = Int.max) {
        self.init(capacity: capacity)
        complete(.success(value))
    }

    /// Creates a stream with one error.
    public convenience init(error: any Error, capacity: Int = Int.max) {
        self.init(capacity: capacity)
        complete(.failure(error))
    }

    /// Creates a stream of the elements of `dependent`, which it receives on `context`. It finishes with that stream.
    public convenience init(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        dependent: FutureStream<T>
    ) {
        self.init(capacity: capacity)
        dependent.add(.transforming(into: self) { $0 }, for: self, context: context)
    }

    /// Creates a stream to which `resolver` adds elements by calling the function that is passed to it, any number of
    /// times. If `resolver` throws, the error is one more element.
    public convenience init(
        capacity: Int = Int.max, resolver: (_ complete: @escaping (Try<T>) -> Void) throws -> Void
    ) {
        self.init(capacity: capacity)
        do { try resolver { self.complete($0) } } catch { failure(error) }
    }
}
