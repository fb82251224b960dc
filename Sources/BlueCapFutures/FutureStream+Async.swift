extension FutureStream where T: Sendable {
    /// The values, one after the other: first the kept values, then the new ones.
    ///
    /// ```swift
    /// for try await peripheral in manager.startScanning().values { print(peripheral.name) }
    /// ```
    ///
    /// The loop ends when the stream is finished, and throws at the first failure among the elements; a loop over
    /// ``outcomes`` continues after failures. Leaving the loop, or cancelling the task that runs it, ends the subscription.
    /// In a cancelled task the loop ends as if the stream were finished.
    ///
    /// While the loop is busy, at most ``watchedCapacity`` elements wait for it; then the oldest is removed first. Each loop
    /// has its own subscription and buffer. ``values(waiting:)`` sets another limit.
    public var values: FutureStreamValues<T> {
        values(waiting: Self.watchedCapacity)
    }

    /// As ``values``, but at most the latest `limit` elements wait for the loop.
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
public struct FutureStreamValues<T: Sendable>: AsyncSequence, Sendable {
    let outcomes: FutureStreamOutcomes<T>

    public struct AsyncIterator: AsyncIteratorProtocol {
        private var outcomes: FutureStreamOutcomes<T>.AsyncIterator?

        init(_ outcomes: FutureStreamOutcomes<T>.AsyncIterator) {
            self.outcomes = outcomes
        }

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
        AsyncIterator(outcomes.makeAsyncIterator())
    }
}

/// The elements of a stream, for `for await`; see ``FutureStream/outcomes``.
public struct FutureStreamOutcomes<T: Sendable>: AsyncSequence, Sendable {
    let stream: FutureStream<T>
    let limit: Int

    public struct AsyncIterator: AsyncIteratorProtocol {
        private var elements: AsyncStream<Try<T>>.Iterator

        init(_ elements: AsyncStream<Try<T>>.Iterator) {
            self.elements = elements
        }

        /// Returns the next element, or `nil` at the end.
        public mutating func next() async -> Try<T>? {
            await elements.next()
        }
    }

    /// Subscribes to the stream, until the iterator is released or its task is cancelled.
    public func makeAsyncIterator() -> AsyncIterator {
        let (elements, continuation) = AsyncStream.makeStream(
            of: Try<T>.self, bufferingPolicy: .bufferingNewest(limit))
        let token = CancelToken()
        continuation.onTermination = { [weak stream] _ in stream?.cancel(token) }
        stream.add(
            StreamHandler(
                .completion { continuation.yield($0) }, token: token, finished: { continuation.finish() }))
        return AsyncIterator(elements.makeAsyncIterator())
    }
}

/// A stream is a sequence of values, of elements or of batches, and the loop says which.
@available(
    *, unavailable, message: "Write `for try await value in stream.values`, or `for await outcome in stream.outcomes`."
)
extension FutureStream: AsyncSequence {
    public struct AsyncIterator: AsyncIteratorProtocol {
        public mutating func next() async throws -> T? { nil }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}
