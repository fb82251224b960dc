extension FutureStream: AsyncSequence {
    public typealias Element = T
    public typealias AsyncIterator = FutureStreamValues<T>.AsyncIterator

    public func makeAsyncIterator() -> AsyncIterator { values.makeAsyncIterator() }

    /// The values as a sequence of its own: a loop over it is a loop over the stream.
    ///
    /// A stream is an `AsyncSequence` of its values, first the kept ones, then the new ones:
    ///
    /// ```swift
    /// for try await peripheral in manager.startScanning() { print(peripheral.name) }
    /// ```
    ///
    /// The loop ends when the stream is finished, and throws at the first failure among the elements; a loop over
    /// ``outcomes`` continues after failures. Leaving the loop, or cancelling the task that runs it, ends the subscription
    /// to the stream. In a cancelled task the loop ends as if the stream were finished.
    ///
    /// While the loop is busy, at most ``watchedCapacity`` elements wait for it; if there are more, the oldest is lost.
    /// Each loop has its own subscription and buffer. ``values(waiting:)`` sets another limit.
    ///
    /// The operators that a stream has itself (`map`, `flatMap`, `first()` and others) precede those of `AsyncSequence`
    /// with the same name. Use those of `AsyncSequence` on this property.
    public var values: FutureStreamValues<T> {
        values(waiting: Self.watchedCapacity)
    }

    /// As ``values``, but at most the latest `limit` elements wait for the loop: 1 for a loop that needs only the newest
    /// value, `.max` for one that must lose none.
    public func values(waiting limit: Int) -> FutureStreamValues<T> {
        FutureStreamValues(outcomes: outcomes(waiting: limit))
    }

    /// As ``values``, but with every element, a value or an error, and without throwing.
    public var outcomes: FutureStreamOutcomes<T> {
        outcomes(waiting: Self.watchedCapacity)
    }

    /// As ``outcomes``, but at most the latest `limit` elements wait for the loop.
    public func outcomes(waiting limit: Int) -> FutureStreamOutcomes<T> {
        FutureStreamOutcomes(stream: self, limit: limit)
    }
}

/// The values of a stream, for `for try await`; see ``FutureStream/values``.
public struct FutureStreamValues<T>: AsyncSequence {
    let outcomes: FutureStreamOutcomes<T>

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var outcomes: FutureStreamOutcomes<T>.AsyncIterator?

        /// Returns the next value, or `nil` at the end. If the next element is an error, throws it and ends.
        public mutating func next() async throws -> T? {
            switch await outcomes?.next() {
            case .success(let value):
                return value
            case .failure(let error):
                outcomes = nil
                throw error
            case nil:
                return nil
            }
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(outcomes: outcomes.makeAsyncIterator())
    }
}

/// The elements of a stream, for `for await`; see ``FutureStream/outcomes``.
public struct FutureStreamOutcomes<T>: AsyncSequence {
    let stream: FutureStream<T>
    let limit: Int

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var elements: AsyncStream<Try<T>>.Iterator

        /// Returns the next element, or `nil` at the end.
        public mutating func next() async -> Try<T>? {
            await elements.next(isolation: #isolation)
        }
    }

    /// Subscribes to the stream, until the iterator is released or its task is cancelled.
    public func makeAsyncIterator() -> AsyncIterator {
        let (elements, continuation) = AsyncStream.makeStream(
            of: Try<T>.self, bufferingPolicy: .bufferingNewest(limit))
        let token = CancelToken()
        // A stream locks itself, and an element is passed on once.
        nonisolated(unsafe) weak let source = stream
        continuation.onTermination = { _ in _ = source?.cancel(token) }
        let handler = Handler<T>.completion { element in
            nonisolated(unsafe) let element = element
            continuation.yield(element)
        }
        stream.add(StreamHandler(handler, token: token, finished: { continuation.finish() }))
        return AsyncIterator(elements: elements.makeAsyncIterator())
    }
}

extension FutureStreamValues: Sendable where T: Sendable {}
extension FutureStreamOutcomes: Sendable where T: Sendable {}
