// Handlers and operators whose closures are isolated to the main actor.
//
// They run on the main queue, which is serial, so it preserves the order. `T` is `Sendable`, because the thread that
// completes the future passes the value to the main actor.

extension Future where T: Sendable {
    /// Calls `completion` with the outcome, once, on the main actor.
    ///
    /// The closure, as that of each method with this parameter, may use and change the state of the main actor. It runs after the
    /// call returns, even if the future is already complete and the caller is on the main actor. If the program never drains its
    /// main queue, the closure never runs; see ``QueueContext/main``.
    public func onComplete(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (Try<T>) -> Void
    ) {
        onComplete(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Calls `completion` with the value, once, on the main actor; never if the future fails.
    ///
    /// ```swift
    /// @MainActor final class Model {
    ///     var level = 0
    ///     func show(_ reading: Future<Int>) {
    ///         reading.onSuccess(on: MainActor.self) { self.level = $0 }
    ///     }
    /// }
    /// ```
    public func onSuccess(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (T) -> Void
    ) {
        onSuccess(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Calls `completion` with the error, once, on the main actor; never if the future succeeds.
    public func onFailure(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (any Error) -> Void
    ) {
        onFailure(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Returns a future of the value mapped on the main actor.
    public func map<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> M
    ) -> Future<M> {
        map(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a future that completes with the outcome of the future that `mapping` returns on the main actor.
    public func flatMap<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> Future<M>
    ) -> Future<M> {
        flatMap(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a future of the same value, or of the outcome of the future that `recovery` returns for the error on the
    /// main actor.
    public func recoverWith(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @MainActor (any Error) throws -> Future<T>
    ) -> Future<T> {
        recoverWith(context: QueueContext.main, cancelToken: cancelToken, recovery: onMainActor(recovery))
    }
}

extension FutureStream where T: Sendable {
    /// Calls `completion` with every element, in order, on the main actor: first the kept elements, then the new ones.
    public func onComplete(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (Try<T>) -> Void
    ) {
        onComplete(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Calls `completion` with every value, in order, on the main actor: first the kept ones, then the new ones.
    public func onSuccess(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (T) -> Void
    ) {
        onSuccess(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Calls `completion` with every error, in order, on the main actor: first the kept ones, then the new ones.
    public func onFailure(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (any Error) -> Void
    ) {
        onFailure(context: QueueContext.main, cancelToken: cancelToken, completion: onMainActor(completion))
    }

    /// Returns a stream of the values mapped on the main actor.
    public func map<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> M
    ) -> FutureStream<M> {
        map(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a stream of the outcomes of the futures that `mapping` returns on the main actor.
    public func flatMap<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> Future<M>
    ) -> FutureStream<M> {
        flatMap(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }
}

/// Returns `body` as a function that the main queue can call; elsewhere it traps.
private func onMainActor<A: Sendable, R: Sendable>(
    _ body: @escaping @MainActor (A) throws -> R
) -> @Sendable (A) throws -> R {
    { argument in try MainActor.assumeIsolated { try body(argument) } }
}

private func onMainActor<A: Sendable>(_ body: @escaping @MainActor (A) -> Void) -> @Sendable (A) -> Void {
    { argument in MainActor.assumeIsolated { body(argument) } }
}
