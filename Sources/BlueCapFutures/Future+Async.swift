extension Future where T: Sendable {
    /// The value. Waits until the future is complete, and throws the error if it fails.
    ///
    /// ```swift
    /// let celsius = try await temperature().value
    /// ```
    ///
    /// Any number of tasks may wait. A task that is cancelled while it waits stops waiting and throws
    /// `CancellationError`; the future itself is not cancelled.
    public var value: T {
        get async throws {
            if let result { return try result.get() }
            let token = CancelToken()
            // Completed by this future or by the cancellation of the task, whichever comes first.
            let awaited = Future()
            onComplete(context: ImmediateContext(), cancelToken: token) { awaited.complete($0) }
            return try await withTaskCancellationHandler {
                try await awaited.outcome.get()
            } onCancel: {
                awaited.failure(CancellationError())
                cancel(token)
            }
        }
    }

    /// The value or error. The wait continues if the task is cancelled.
    // Inlinable, so that it is specialised for the value. Nothing need check the continuation: a future calls each handler once.
    @inlinable package var outcome: Try<T> {
        get async {
            await withUnsafeContinuation { continuation in
                onComplete(context: ImmediateContext()) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Creates a future that completes with the value or error of `operation`, which runs in a new task.
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
        operation: @escaping @Sendable @concurrent () async throws -> T
    ) {
        self.init()
        let task = Task(priority: priority) {
            do { self.success(try await operation()) } catch { self.failure(error) }
        }
        whenCancelled(cancelToken) { task.cancel() }
    }
}
