// swift-format-ignore-file: AmbiguousTrailingClosureOverload
// Futures out of closures, and out of functions that take a completion block.
//
// The overloads are the documents'; a trailing closure says what it takes, so in use they are not ambiguous.

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
/// For work that is to run elsewhere use ``future(context:_:)`` with a closure.
@inlinable
public func future<T>(_ task: @autoclosure () -> T) -> Future<T> {
    Future(result: .success(task()))
}

/// A future of what `task` returns or throws, on `context`.
@preconcurrency
public func future<T>(
    context: any ExecutionContext = QueueContext.futuresDefault, _ task: @escaping @Sendable () throws -> T
) -> Future<T> {
    let future = Future<T>()
    // Captures a `@Sendable` closure and a future, which locks itself. The value is made on the context.
    context.execute(assumeSendable { future.complete(Try(task)) })
    return future
}

/// A future of what `method` hands to its completion block: the error if there is one, else the value.
///
/// If `T` is an optional type, a block called with neither is a success with `nil`. Calls after the first are ignored.
public func future<T>(method: (@escaping (T, (any Error)?) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value, error in complete(Try(value, error)) } }
}

/// The same for a block that takes an optional value, where the future is to be of the value itself.
///
/// A block called with neither a value nor an error fails the future with ``FuturesError/invalidValue``.
@_disfavoredOverload
public func future<T>(method: (@escaping (T?, (any Error)?) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value, error in complete(Try(optional: value, error)) } }
}

/// A future that fails with the error that `method` hands to its completion block, and succeeds if there is none.
public func future(method: (@escaping ((any Error)?) -> Void) -> Void) -> Future<Void> {
    Future { complete in method { error in complete(Try(optional: (), error)) } }
}

/// A future of the value that `method` hands to its completion block.
public func future<T>(method: (@escaping (T) -> Void) -> Void) -> Future<T> {
    Future { complete in method { value in complete(.success(value)) } }
}

// MARK: - Streams

/// A stream with what `task` returns or throws, on `context`.
@preconcurrency
public func futureStream<T>(
    context: any ExecutionContext = QueueContext.futuresDefault, _ task: @escaping @Sendable () throws -> T
) -> FutureStream<T> {
    let stream = FutureStream<T>()
    // Captures a `@Sendable` closure and a stream, which locks itself. The value is made on the context.
    context.execute(assumeSendable { stream.send(Try(task)) })
    return stream
}

/// A stream of what `method` hands to its completion block, each time: the error if there is one, else the value.
///
/// If `T` is an optional type, a block called with neither adds `nil`.
public func futureStream<T>(method: (@escaping (T, (any Error)?) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value, error in complete(Try(value, error)) } }
}

/// The same for a block that takes an optional value, where the stream is to be of the values themselves.
///
/// A block called with neither a value nor an error adds ``FuturesError/invalidValue``.
@_disfavoredOverload
public func futureStream<T>(method: (@escaping (T?, (any Error)?) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value, error in complete(Try(optional: value, error)) } }
}

/// A stream with an error each time `method` hands one to its completion block, and `()` each time it hands none.
public func futureStream(method: (@escaping ((any Error)?) -> Void) -> Void) -> FutureStream<Void> {
    FutureStream { complete in method { error in complete(Try(optional: (), error)) } }
}

/// A stream of the values that `method` hands to its completion block.
public func futureStream<T>(method: (@escaping (T) -> Void) -> Void) -> FutureStream<T> {
    FutureStream { complete in method { value in complete(.success(value)) } }
}

// MARK: -

extension Try {
    fileprivate init(optional value: T?, _ error: (any Error)?) {
        if let error {
            self = .failure(error)
        } else if let value {
            self = .success(value)
        } else {
            self = .failure(FuturesError.invalidValue)
        }
    }

    /// There is always a value. Where `T` is an optional type, `nil` is one.
    fileprivate init(_ value: T, _ error: (any Error)?) {
        if let error { self = .failure(error) } else { self = .success(value) }
    }
}
