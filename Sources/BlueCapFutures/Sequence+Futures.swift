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
        let folded = Future<R>()
        combineRest(of: Array(self)[...], initial, into: folded, context, combine)
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
        let first = Future<Element.T>()
        var isEmpty = true
        for future in self {
            isEmpty = false
            future.onComplete(context: ImmediateContext(), cancelToken: .uncancellable, completion: first.completion)
        }
        if isEmpty { first.failure(FuturesError.noSuchElement) }
        return first
    }

    /// Returns a future of the first value among them. It fails when all have failed, with the last error.
    ///
    /// If the sequence is empty, it fails with ``FuturesError/noSuchElement``.
    public func firstSucceeded() -> Future<Element.T> {
        let first = Future<Element.T>()
        let futures = Array(self)
        let open = Locked(futures.count)
        if futures.isEmpty { first.failure(FuturesError.noSuchElement) }
        let complete = first.completion
        for future in futures {
            future.onComplete(context: ImmediateContext(), cancelToken: .uncancellable) { outcome in
                let isLast = open.withLock { open in
                    open -= 1
                    return open == 0
                }
                if outcome.isSuccess() || isLast { complete(outcome) }
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
        let traversed = Future<[U]>()
        let elements = Array(self)
        // Captures a future, which locks itself, a `@Sendable` closure, and the elements, which only this task reads.
        // The caller chose the context, and so decided that they may go to its thread.
        context.execute(
            assumeSendable {
                do {
                    traversed.follow(try elements.map(mapping).sequence(context: context))
                } catch {
                    traversed.failure(error)
                }
            })
        return traversed
    }
}

extension Future {
    /// `complete` as a function.
    fileprivate var completion: @Sendable (Try<T>) -> Void {
        // Captures a future, which locks itself.
        assumeSendable { self.complete($0) }
    }
}

/// Combines `value` with the values of `futures`, each when the one before is complete.
private func combineRest<F: Futurable, R>(
    of futures: ArraySlice<F>, _ value: R, into folded: Future<R>, _ context: any ExecutionContext,
    _ combine: @escaping @Sendable (R, F.T) throws -> R
) {
    guard let next = futures.first else {
        folded.success(value)
        return
    }
    // Captures futures, which lock themselves, a `@Sendable` closure, and `value`, the combination so far: only one step at
    // a time has it, and the next step receives it through the future for which that step waits.
    let handle = assumeSendable { (outcome: Try<F.T>) in
        switch outcome.map({ try combine(value, $0) }) {
        case .success(let value): combineRest(of: futures.dropFirst(), value, into: folded, context, combine)
        case .failure(let error): folded.failure(error)
        }
    }
    next.onComplete(context: context, cancelToken: .uncancellable, completion: handle)
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
        guard case .success(let value) = outcome else {
            if case .failure(let error) = outcome { gathered.failure(error) }
            return
        }
        let isLast = state.withLock { _ in
            values[index] = value
            missing -= 1
            return missing == 0
        }
        if isLast { gathered.success(values.compactMap { $0 }) }
    }
}
