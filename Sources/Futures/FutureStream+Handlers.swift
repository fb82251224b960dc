extension FutureStream {
    /// Calls `completion` with every element, in order, on `context`: first what is kept, then what comes.
    @preconcurrency @inlinable
    public func onComplete(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (Try<T>) -> Void
    ) {
        add(.completion(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with every value, in order, on `context`: first what is kept, then what comes.
    @preconcurrency @inlinable
    public func onSuccess(
        context: any ExecutionContext = QueueContext.futuresDefault,
        cancelToken: CancelToken = .uncancellable,
        completion: @escaping @Sendable (T) -> Void
    ) {
        add(.success(completion), context: context, token: cancelToken)
    }

    /// Calls `completion` with every error, in order, on `context`: first what is kept, then what comes.
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

// MARK: - Filling by other means

extension FutureStream {
    /// Adds a value. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        send(.success(value))
    }

    /// Adds an error. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        send(.failure(error))
    }

    /// Adds the outcome of `future`, on `context`, when there is one.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>) {
        future.add(.completion { self.send($0) }, context: context, token: .uncancellable)
    }

    /// Adds what `stream` keeps and gets, on `context`. When it finishes, this one does not: others may go on filling it.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        stream.add(
            StreamHandler(.completion { self.send($0) }, batch: { self.send(contentsOf: $0) }), context: context)
    }

    /// Adds the outcome of the future in `future`, on `context`, or at once the error in its place.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Try<Future<T>>) {
        switch future {
        case .success(let future): completeWith(context: context, future: future)
        case .failure(let error): failure(error)
        }
    }

    /// Adds what the stream in `stream` keeps and gets, on `context`, or at once the error in its place.
    public func completeWith(
        context: any ExecutionContext = QueueContext.futuresDefault, stream: Try<FutureStream<T>>
    ) {
        switch stream {
        case .success(let stream): completeWith(context: context, stream: stream)
        case .failure(let error): failure(error)
        }
    }

    /// A stream with one value.
    // Disfavoured, so that a trailing closure is a resolver and not a value.
    @_disfavoredOverload
    public convenience init(value: T, capacity: Int = Int.max) {
        self.init(capacity: capacity)
        send(.success(value))
    }

    /// A stream with one error.
    public convenience init(error: any Error, capacity: Int = Int.max) {
        self.init(capacity: capacity)
        send(.failure(error))
    }

    /// A stream that gets what `dependent` keeps and gets, on `context`, and finishes with it.
    public convenience init(
        capacity: Int = Int.max,
        context: any ExecutionContext = QueueContext.futuresDefault,
        dependent: FutureStream<T>
    ) {
        self.init(capacity: capacity)
        dependent.add(.transforming(into: self) { $0 }, context: context)
    }

    /// A stream that `resolver` fills, by calling the function it is given any number of times. What `resolver` throws
    /// is one more element.
    public convenience init(
        capacity: Int = Int.max, resolver: (_ complete: @escaping (Try<T>) -> Void) throws -> Void
    ) {
        self.init(capacity: capacity)
        do {
            try resolver { self.send($0) }
        } catch {
            send(.failure(error))
        }
    }
}
