extension Sequence where Element: Futurable {
    /// Returns a future of `initial` combined with one value after the other, in the order of the sequence, on `context`.
    ///
    /// It fails with the error of the first future in the sequence that fails, or with the error that `combine` throws.
    @preconcurrency
    public func fold<R>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        initial: R,
        combine: @escaping @Sendable (R, Element.T) throws -> R
    ) -> Future<R> {
        // A future locks itself.
        nonisolated(unsafe) let folded = Future<R>()
        /// Combines `value` with the values of `futures`, each when the one before is complete.
        func combineRest(of futures: ArraySlice<Element>, _ value: R) {
            guard let next = futures.first else {
                folded.success(value)
                return
            }
            // Only one step at a time has the combination so far.
            nonisolated(unsafe) let value = value
            nonisolated(unsafe) let combineOthers = { combineRest(of: futures.dropFirst(), $0) }
            next.onComplete(context: context, cancelToken: .uncancellable) { outcome in
                switch outcome.map({ try combine(value, $0) }) {
                case .success(let value): combineOthers(value)
                case .failure(let error): folded.failure(error)
                }
            }
        }
        combineRest(of: Array(self)[...], initial)
        return folded
    }

    /// Returns a future of all values, in the order of the sequence, whatever the order in which they arrive.
    ///
    /// It fails as soon as one of the futures does, with its error. The values are gathered on `context`.
    @inlinable
    public func sequence(
        context: any ExecutionContext = QueueContext.futuresDefault
    ) -> Future<[Element.T]> {
        let futures = Array(self)
        let gathering = Gathering<Element.T>(count: futures.count)
        for (index, future) in futures.enumerated() {
            future.onComplete(context: context, cancelToken: .uncancellable) { gathering.take($0, at: index) }
        }
        return gathering.gathered
    }

    /// Returns a future of the first outcome among them, a value or an error; the others are ignored.
    ///
    /// If the sequence is empty, it fails with ``FuturesError/noSuchElement``.
    public func firstCompleted() -> Future<Element.T> {
        first { _ in true }
    }

    /// Returns a future of the first value among them. It fails when all have failed, with the last error.
    ///
    /// If the sequence is empty, it fails with ``FuturesError/noSuchElement``.
    public func firstSucceeded() -> Future<Element.T> {
        first { $0.isSuccess() }
    }

    /// Returns a future of the first outcome that `isWanted` accepts, or of the last one.
    private func first(_ isWanted: @escaping @Sendable (Try<Element.T>) -> Bool) -> Future<Element.T> {
        let futures = Array(self)
        if futures.isEmpty { return Future(error: FuturesError.noSuchElement) }
        // A future locks itself.
        nonisolated(unsafe) let first = Future<Element.T>()
        let open = Locked(futures.count)
        for future in futures {
            future.onComplete(context: ImmediateContext(), cancelToken: .uncancellable) { outcome in
                let isLast = open.withLock { open in
                    open -= 1
                    return open == 0
                }
                if isWanted(outcome) || isLast { first.complete(outcome) }
            }
        }
        return first
    }
}

extension Sequence {
    /// Returns a future of the values of the futures that `mapping` returns for the elements, in the order of the sequence.
    ///
    /// `mapping` is called with every element, in order, on `context`, without waiting for the futures. The result fails
    /// when the first of them fails, or with the error that `mapping` throws.
    @preconcurrency
    public func traverse<U>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        mapping: @escaping @Sendable (Element) throws -> Future<U>
    ) -> Future<[U]> {
        // The elements are read one after another, and a future locks itself.
        nonisolated(unsafe) let (elements, traversed) = (Array(self), Future<[U]>())
        context.execute { traversed.follow { try elements.map(mapping).sequence(context: context) } }
        return traversed
    }
}

/// Collects values that arrive in any order, and completes a future with all of them in their own order.
// `@unchecked`: `values` and `missing` are accessed under the lock of `state` only.
@usableFromInline
final class Gathering<T>: @unchecked Sendable {
    @usableFromInline let gathered = Future<[T]>()
    @usableFromInline let state = StateWord()
    @usableFromInline var values: [T?]
    @usableFromInline var missing: Int

    @inlinable
    init(count: Int) {
        values = Array(repeating: nil, count: count)
        missing = count
        if count == 0 { gathered.success([]) }
    }

    @inlinable
    func take(_ outcome: Try<T>, at index: Int) {
        switch outcome {
        case .failure(let error):
            gathered.failure(error)
        case .success(let value):
            let isLast = state.withLock {
                values[index] = value
                missing -= 1
                return missing == 0
            }
            if isLast { gathered.success(values.compactMap { $0 }) }
        }
    }
}
