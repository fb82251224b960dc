/// The writing end of a ``Future``: whoever holds it completes the future, once.
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
/// Completing it again is ignored, and the return value says so. A promise given up without being completed leaves its
/// future without an outcome for ever.
public final class Promise<T> {
    /// The future that this promise completes.
    public let future: Future<T>

    /// A promise with a future that is not complete.
    @inlinable
    public init() {
        future = Future()
    }

    // Visible to callers' optimiser, which then need not make a promise that never leaves the function that made it.
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

    /// Completes the future with the first element of `stream`, be it a value or an error, on `context`.
    ///
    /// If the stream ends without an element, the future fails with ``FuturesError/noSuchElement``.
    public func completeWith(context: any ExecutionContext = QueueContext.futuresDefault, stream: FutureStream<T>) {
        future.completeWith(context: context, stream: stream)
    }
}

extension Promise: Sendable where T: Sendable {}
