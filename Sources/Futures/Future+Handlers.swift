extension Future {
    /// Calls `completion` with the outcome, once, on `context`; also if the future is complete already.
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

    /// The same as ``onSuccess(context:cancelToken:completion:)``, under the name sequences have for it.
    @preconcurrency @inlinable
    public func forEach(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        apply: @escaping @Sendable (T) -> Void
    ) {
        add(.success(apply), context: context, token: cancelToken)
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

    /// Completes with the first element of `stream`, be it a value or an error, on `context`.
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
        switch future {
        case .success(let future): completeWith(context: context, future: future)
        case .failure(let error): failure(error)
        }
    }

    /// A future that gets the outcome of `dependent`, on `context`, when there is one.
    public convenience init(
        context: any ExecutionContext = QueueContext.futuresDefault, dependent: Future<T>
    ) {
        self.init()
        completeWith(context: context, future: dependent)
    }

    /// A future that `resolver` completes, by calling the function it is given. What `resolver` throws is the failure.
    public convenience init(resolver: (_ complete: @escaping (Try<T>) -> Void) throws -> Void) {
        self.init()
        do {
            try resolver { self.complete($0) }
        } catch {
            failure(error)
        }
    }

    /// Completes with what `source` has or gets, on the thread that completes it.
    @inlinable
    func follow(_ source: Future<T>) {
        if let outcome = source.result {
            complete(outcome)
        } else {
            source.add(.follower(self))
        }
    }
}
