extension Sequence where Element: Futurable {
    /// A future of `initial` combined with one value after the other, in the order of the sequence, on `context`.
    ///
    /// It fails with the error of the first future in the sequence that fails, or with what `combine` throws.
    @preconcurrency
    public func fold<R>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        initial: R,
        combine: @escaping @Sendable (R, Element.T) throws -> R
    ) -> Future<R> {
        let folding = Folding(futures: Array(self), context: context, combine: combine)
        folding.combineRest(from: 0, initial)
        return folding.folded
    }

    /// A future of all values, in the order of the sequence, whatever the order in which they arrive.
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

    /// A future of the first outcome among them, be it a value or an error; the others are ignored.
    ///
    /// Of no futures there is no first: it fails with ``FuturesError/noSuchElement``.
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

    /// A future of the first value among them. It fails when all have failed, with the error that came last.
    ///
    /// Of no futures there is no first: it fails with ``FuturesError/noSuchElement``.
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
    /// A future of what the futures that `mapping` returns for the elements complete with, in the order of the sequence.
    ///
    /// `mapping` is called with every element, in order, on `context`, without waiting for the futures. The result fails
    /// as soon as one of them does, or with what `mapping` throws.
    @preconcurrency
    public func traverse<U>(
        context: any ExecutionContext = QueueContext.futuresDefault,
        mapping: @escaping @Sendable (Element) throws -> Future<U>
    ) -> Future<[U]> {
        let traversed = Future<[U]>()
        let elements = Array(self)
        // Captures a future, which locks itself, a `@Sendable` closure, and the elements, which only this task reads.
        // Whether they may go to the context's thread is decided by the caller, who chose the context.
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

/// One step of a fold after the other. Each waits for the one before, so nothing here is touched by two threads at once.
// `@unchecked`: all is constant, and `combine` and the futures are called as their own contracts allow.
private final class Folding<F: Futurable, R>: @unchecked Sendable {
    let folded = Future<R>()
    private let futures: [F]
    private let context: any ExecutionContext
    private let combine: @Sendable (R, F.T) throws -> R

    init(futures: [F], context: any ExecutionContext, combine: @escaping @Sendable (R, F.T) throws -> R) {
        self.futures = futures
        self.context = context
        self.combine = combine
    }

    func combineRest(from index: Int, _ value: R) {
        guard index < futures.count else {
            folded.success(value)
            return
        }
        // Captures this object, which is constant, and `value`, the combination so far: one step at a time has it, the
        // next step gets it through the future that the step waits for.
        let handle = assumeSendable { (outcome: Try<F.T>) in
            switch outcome.map({ try self.combine(value, $0) }) {
            case .success(let next): self.combineRest(from: index + 1, next)
            case .failure(let error): self.folded.failure(error)
            }
        }
        futures[index].onComplete(context: context, cancelToken: .uncancellable, completion: handle)
    }
}

/// Values that arrive in any order, and go on together in their own.
// `@unchecked`: `values` and `missing` are touched under the lock of `state` only.
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
