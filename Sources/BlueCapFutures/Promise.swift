/// Creates a ``Future`` and completes it, once.
///
/// ```swift
/// func temperature() -> Future<Double> {
///     let promise = Promise<Double>()
///     sensor.read { value, error in
///         if let error { promise.failure(error) } else { promise.success(value) }
///     }
///     return promise.future
/// }
/// ```
///
/// Completing it again has no effect, and returns false. If a promise is released before it is completed, its future is
/// never completed.
public final class Promise<T> {
    /// The future that this promise completes.
    public let future: Future<T>

    /// Creates a promise with a future that is not complete.
    @inlinable
    public init() {
        future = Future()
    }

    // Inlinable, so that the optimiser can remove a promise that never leaves the function that created it.
    @inlinable
    deinit {}

    /// Whether the future is complete.
    @inlinable
    public var completed: Bool { future.completed }

    /// Completes the future. Returns false, and does nothing, if it was complete.
    @inlinable @discardableResult
    public func complete(_ result: Try<T>) -> Bool {
        future.complete(result)
    }

    /// Completes the future with a value. Returns false, and does nothing, if it was complete.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        future.complete(.success(value))
    }

    /// Completes the future with an error. Returns false, and does nothing, if it was complete.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        future.complete(.failure(error))
    }

    /// Completes the future with the outcome of `future`, on `context`, when there is one.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>) {
        self.future.completeWith(context: context, future: future)
    }

    /// Completes the future with the first element of `stream`, as ``Future/completeWith(context:stream:)``.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        future.completeWith(context: context, stream: stream)
    }
}

extension Promise: Sendable where T: Sendable {}

/// Creates a ``FutureStream``, adds its elements, and can finish it.
///
/// ```swift
/// let readings = StreamPromise<Double>(capacity: 10)
/// readings.stream.onSuccess { print($0) }
/// sensor.onReading { value in readings.success(value) }
/// ```
public final class StreamPromise<T> {
    /// The stream to which this promise adds elements.
    public let stream: FutureStream<T>

    /// Creates a promise with an empty stream that keeps its latest `capacity` elements; see ``FutureStream`` for what
    /// `Int.max` and 0 mean.
    public init(capacity: Int = Int.max) {
        stream = FutureStream(capacity: capacity)
    }

    /// Adds an element. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func complete(_ result: Try<T>) -> Bool {
        stream.complete(result)
    }

    /// Adds a value. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        stream.complete(.success(value))
    }

    /// Adds an error. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        stream.complete(.failure(error))
    }

    /// Adds values together: one lock, and at most one task on each handler's context for all of them.
    @inlinable @discardableResult
    package func success(contentsOf values: [T]) -> Bool {
        stream.complete(values: values)
    }

    /// Adds the outcome of `future`, on `context`, when there is one.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>) {
        stream.completeWith(context: context, future: future)
    }

    /// Adds the elements of `stream`, on `context`: those that it keeps and those that it receives later.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        self.stream.completeWith(context: context, stream: stream)
    }

    /// Finishes the stream, as ``FutureStream/finish()``. Returns false if it was already finished.
    @discardableResult
    public func finish() -> Bool {
        stream.finish()
    }
}

extension StreamPromise: Sendable where T: Sendable {}
