/// The writing end of a ``FutureStream``: whoever holds it adds the elements, and may say that there are no more.
///
/// ```swift
/// let readings = StreamPromise<Double>(capacity: 10)
/// readings.stream.onSuccess { print($0) }
/// sensor.onReading { value in readings.success(value) }
/// ```
public final class StreamPromise<T> {
    /// The stream that this promise fills.
    public let stream: FutureStream<T>

    /// A promise with an empty stream that keeps its latest `capacity` elements; see ``FutureStream`` for what
    /// `Int.max` and 0 mean.
    public init(capacity: Int = Int.max) {
        stream = FutureStream(capacity: capacity)
    }

    /// Adds an element. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func complete(_ result: Try<T>) -> Bool {
        stream.send(result)
    }

    /// Adds a value. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func success(_ value: T) -> Bool {
        stream.send(.success(value))
    }

    /// Adds an error. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func failure(_ error: any Error) -> Bool {
        stream.send(.failure(error))
    }

    /// Adds values together: one lock, and at most one task on each handler's context for all of them.
    @inlinable @discardableResult
    package func success(contentsOf values: [T]) -> Bool {
        stream.send(contentsOf: values.map { .success($0) })
    }

    /// Adds the outcome of `future`, on `context`, when there is one.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, future: Future<T>) {
        stream.completeWith(context: context, future: future)
    }

    /// Adds what `stream` keeps and gets, on `context`.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        self.stream.completeWith(context: context, stream: stream)
    }

    /// Says that no element comes any more: `for try await` over the stream ends. Elements added afterwards are ignored.
    ///
    /// Returns false if the stream was finished already.
    @discardableResult
    public func finish() -> Bool {
        stream.finish()
    }
}

extension StreamPromise: Sendable where T: Sendable {}
