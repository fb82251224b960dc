extension Future where T: Sendable {
    /// The value, waited for; throws the error if the future fails.
    ///
    /// ```swift
    /// let location = try await peripheral.read(bodySensorLocation).value
    /// ```
    ///
    /// Any number of tasks may wait. A task that is cancelled while it waits stops waiting and throws
    /// `CancellationError`; the future itself goes on.
    public var value: T {
        get async throws {
            if let result { return try result.get() }
            let token = CancelToken()
            let waiting = Waiting<T>()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    waiting.begin(continuation)
                    onComplete(context: ImmediateContext(), cancelToken: token) { waiting.end($0) }
                    // Cancelled before there was a handler to take back: then it is to be taken back now.
                    if Task.isCancelled { cancel(token) }
                }
            } onCancel: {
                waiting.end(.failure(CancellationError()))
                cancel(token)
            }
        }
    }

    /// A future of what `operation` returns or throws, which runs in a task of its own.
    ///
    /// ```swift
    /// let reading = Future { try await sensor.read() }
    /// ```
    ///
    /// Cancelling the future with `cancelToken` cancels the task; how the future then completes is up to `operation`,
    /// which usually throws `CancellationError`.
    public convenience init(
        priority: TaskPriority? = nil,
        cancelToken: CancelToken = .uncancellable,
        operation: @escaping @Sendable () async throws -> T
    ) {
        self.init()
        let task = Task(priority: priority) {
            do { self.success(try await operation()) } catch { self.failure(error) }
        }
        whenCancelled(cancelToken) { task.cancel() }
    }
}

/// One task that waits: woken once, by whichever comes first.
private final class Waiting<T: Sendable>: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<T, any Error>)
        /// Ended before the wait began.
        case early(Try<T>)
        case ended
    }

    private let state = Locked(State.idle)

    func begin(_ continuation: CheckedContinuation<T, any Error>) {
        let early: Try<T>? = state.withLock { state in
            if case .early(let outcome) = state {
                state = .ended
                return outcome
            }
            state = .waiting(continuation)
            return nil
        }
        if let early { continuation.resume(with: early) }
    }

    func end(_ outcome: Try<T>) {
        let continuation: CheckedContinuation<T, any Error>? = state.withLock { state in
            switch state {
            case .idle:
                state = .early(outcome)
                return nil
            case .waiting(let continuation):
                state = .ended
                return continuation
            case .early, .ended:
                return nil
            }
        }
        continuation?.resume(with: outcome)
    }
}

extension CheckedContinuation where T: Sendable, E == any Error {
    fileprivate func resume(with outcome: Try<T>) {
        switch outcome {
        case .success(let value): resume(returning: value)
        case .failure(let error): resume(throwing: error)
        }
    }
}
