// Handlers and combinators whose closures belong to the main actor.
//
// They run on the main queue, which is the executor of the main actor: in a program that calls `dispatchMain()`, in one
// that runs the main run loop, and in one whose `main` is `async`. The queue is serial, so order is kept. `T` is `Sendable`,
// since values go to the main actor from the thread that completes the future.

extension Future where T: Sendable {
    /// Calls `completion` with the outcome, once, on the main actor.
    ///
    /// ```swift
    /// reading.onComplete(on: MainActor.self) { outcome in view.show(outcome) }
    /// ```
    ///
    /// The closure may use and change the state of the main actor. It runs later than the call, also if the future is
    /// complete already and the caller is on the main actor. A program whose main queue is never drained never runs it;
    /// see ``QueueContext/main``.
    public func onComplete(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (Try<T>) -> Void
    ) {
        onComplete(context: QueueContext.main, cancelToken: cancelToken) { outcome in
            MainActor.assumeIsolated { completion(outcome) }
        }
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
    ///
    /// See ``onComplete(on:cancelToken:completion:)`` for when it runs.
    public func onSuccess(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (T) -> Void
    ) {
        onSuccess(context: QueueContext.main, cancelToken: cancelToken) { value in
            MainActor.assumeIsolated { completion(value) }
        }
    }

    /// Calls `completion` with the error, once, on the main actor; never if the future succeeds.
    ///
    /// See ``onComplete(on:cancelToken:completion:)`` for when it runs.
    public func onFailure(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (any Error) -> Void
    ) {
        onFailure(context: QueueContext.main, cancelToken: cancelToken) { error in
            MainActor.assumeIsolated { completion(error) }
        }
    }

    /// Returns a future of the value mapped on the main actor.
    ///
    /// It fails with the error of this one, or with what `mapping` throws.
    public func map<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> M
    ) -> Future<M> {
        map(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a future of what the future that `mapping` returns completes with; `mapping` runs on the main actor.
    ///
    /// It fails with the error of this one, or with what `mapping` throws.
    public func flatMap<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> Future<M>
    ) -> Future<M> {
        flatMap(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a future of what the future that `recovery` returns for the error completes with; `recovery` runs on the
    /// main actor. A value passes through.
    ///
    /// It fails with what `recovery` throws.
    public func recoverWith(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        recovery: @escaping @MainActor (any Error) throws -> Future<T>
    ) -> Future<T> {
        recoverWith(context: QueueContext.main, cancelToken: cancelToken, recovery: onMainActor(recovery))
    }
}

extension FutureStream where T: Sendable {
    /// Calls `completion` with every element, in order, on the main actor: first what is kept, then what comes.
    ///
    /// The closure may use and change the state of the main actor. A program whose main queue is never drained never runs
    /// it; see ``QueueContext/main``.
    public func onComplete(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (Try<T>) -> Void
    ) {
        onComplete(context: QueueContext.main, cancelToken: cancelToken) { element in
            MainActor.assumeIsolated { completion(element) }
        }
    }

    /// Calls `completion` with every value, in order, on the main actor: first what is kept, then what comes.
    ///
    /// ```swift
    /// manager.startScanning().onSuccess(on: MainActor.self) { [weak list] in list?.add($0) }
    /// ```
    public func onSuccess(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (T) -> Void
    ) {
        onSuccess(context: QueueContext.main, cancelToken: cancelToken) { value in
            MainActor.assumeIsolated { completion(value) }
        }
    }

    /// Calls `completion` with every error, in order, on the main actor: first what is kept, then what comes.
    public func onFailure(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        completion: @escaping @MainActor (any Error) -> Void
    ) {
        onFailure(context: QueueContext.main, cancelToken: cancelToken) { error in
            MainActor.assumeIsolated { completion(error) }
        }
    }

    /// Returns a stream of the values mapped on the main actor.
    ///
    /// Errors pass; what `mapping` throws is an error in the value's place.
    public func map<M: Sendable>(
        on actor: MainActor.Type, cancelToken: CancelToken = .uncancellable,
        mapping: @escaping @MainActor (T) throws -> M
    ) -> FutureStream<M> {
        map(context: QueueContext.main, cancelToken: cancelToken, mapping: onMainActor(mapping))
    }

    /// Returns a stream of what the futures that `mapping` returns complete with; `mapping` runs on the main actor.
    ///
    /// Errors of this stream pass; what `mapping` throws is an error in the value's place.
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
