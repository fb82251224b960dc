// swift-format-ignore-file: AmbiguousTrailingClosureOverload
// Functions that create futures and streams from closures, and from methods that take a completion block.
//
// The overloads are documented. A trailing closure names its parameters, so calls are not ambiguous.

/// Returns a future that has already succeeded with the value of an expression.
///
/// The expression is evaluated at once, on the calling thread, before the function returns. It may therefore read state
/// of the caller's actor, and what changes afterwards does not change the future:
///
/// ```swift
/// let level = future(battery.level)
/// battery.level = 0
/// // level still has the earlier value
/// ```
///
/// To run a closure on a context use ``future(context:_:)``.
@inlinable
public func future<T>(_ task: @autoclosure () -> T) -> Future<T> {
    Future(result: .success(task()))
}

/// Returns a future of the value or error of `task`, which runs on `context`.
@preconcurrency
public func future<T>(
    context: any ExecutionContext = QueueContext.futuresDefault, _ task: @escaping @Sendable () throws -> T
) -> Future<T> {
    // A future locks itself.
    nonisolated(unsafe) let future = Future<T>()
    context.execute { future.complete(Try(task)) }
    return future
}

/// Returns a future that completes when `method` calls its completion block: with the error if there is one, else with the
/// value.
///
/// If `T` is an optional type and the block is called with neither, the future succeeds with `nil`. Calls after the first
/// are ignored.
public func future<T>(method: (@escaping (T, (any Error)?) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value, error in complete(Try(value, error)) } }
}

/// The same for a block that takes an optional value and a future of the unwrapped value.
///
/// If the block is called with neither a value nor an error, the future fails with ``FuturesError/invalidValue``.
@_disfavoredOverload
public func future<T>(method: (@escaping (T?, (any Error)?) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value, error in complete(Try(optional: value, error)) } }
}

/// Returns a future that completes when `method` calls its completion block: it fails with the error if there is one.
public func future(method: (@escaping ((any Error)?) -> Void) -> Void) -> Future<Void> {
    Future { complete in method { error in complete(Try(optional: (), error)) } }
}

/// Returns a future of the value with which `method` calls its completion block.
public func future<T>(method: (@escaping (T) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value in complete(.success(value)) } }
}

// MARK: - Streams

/// Returns a stream with the value or error of `task`, which runs on `context`.
@preconcurrency
public func futureStream<T>(
    context: any ExecutionContext = QueueContext.futuresDefault, _ task: @escaping @Sendable () throws -> T
) -> FutureStream<T> {
    // A stream locks itself.
    nonisolated(unsafe) let stream = FutureStream<T>()
    context.execute { stream.complete(Try(task)) }
    return stream
}

/// Returns a stream with an element for each call of the completion block by `method`; otherwise as the function `future`
/// with the same block.
public func futureStream<T>(method: (@escaping (T, (any Error)?) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value, error in complete(Try(value, error)) } }
}

/// The same for a block that takes an optional value and a stream of the unwrapped values.
@_disfavoredOverload
public func futureStream<T>(method: (@escaping (T?, (any Error)?) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value, error in complete(Try(optional: value, error)) } }
}

/// The same for a block that takes an error only.
public func futureStream(method: (@escaping ((any Error)?) -> Void) -> Void) -> FutureStream<Void> {
    FutureStream { complete in method { error in complete(Try(optional: (), error)) } }
}

/// Returns a stream of the values with which `method` calls its completion block.
public func futureStream<T>(method: (@escaping (T) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value in complete(.success(value)) } }
}

// MARK: -

extension Try {
    fileprivate init(optional value: T?, _ error: (any Error)?) {
        self = error.map { .failure($0) } ?? value.map { .success($0) } ?? .failure(FuturesError.invalidValue)
    }

    /// There is always a value. If `T` is an optional type, it may be `nil`.
    fileprivate init(_ value: T, _ error: (any Error)?) {
        self = error.map { .failure($0) } ?? .success(value)
    }
}
