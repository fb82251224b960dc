import BlueCapFutures

/// Awaits an operation of a manager, for the functions that are `async`.
///
/// If the task is cancelled, an operation that BlueZ does not execute yet is withdrawn from its queue. One that BlueZ executes
/// continues, and only the wait ends. Either way this throws `CancellationError` at once, unless the operation has completed:
/// then its outcome is returned.
/// - Parameter start: Starts the operation, or several one after the other.
func awaiting<T: Sendable>(_ start: () throws -> Future<T>) async throws -> T {
    try Task.checkCancellation()
    let withdrawal = Withdrawal()
    let future = try Withdrawal.$current.withValue(withdrawal, operation: start)
    // Completed by the operation or by the cancellation of the task, whichever comes first.
    let ended = Future<T>()
    future.onComplete(context: ImmediateContext()) { ended.complete($0) }
    return try await withTaskCancellationHandler {
        try await ended.outcome.get()
    } onCancel: {
        if withdrawal.request() { ended.failure(CancellationError()) }
    }
}

/// The cancellation of a call that waits for operations. A session registers each operation that is
/// started while this is the current one.
final class Withdrawal: Sendable {
    @TaskLocal static var current: Withdrawal?

    private struct State {
        var isRequested = false
        var withdraw: (@Sendable () -> Bool)?
    }

    private let state = Locked(State())

    /// - Parameter withdraw: Withdraws the operation that the caller waits for now. Returns false if its outcome is about to be
    ///   delivered.
    func register(_ withdraw: @escaping @Sendable () -> Bool) {
        let isRequested = state.withLock { state in
            state.withdraw = withdraw
            return state.isRequested
        }
        if isRequested { _ = withdraw() }
    }

    /// Withdraws the operation. Returns whether the wait ends now.
    func request() -> Bool {
        let withdraw = state.withLock { state in
            state.isRequested = true
            return state.withdraw
        }
        return withdraw?() ?? true
    }

    /// What the caller waits for next is not withdrawn, and only the wait for it ends, until another operation is registered.
    /// Throws if the task has been cancelled.
    func proceed() throws {
        let isRequested = state.withLock { state in
            state.withdraw = nil
            return state.isRequested
        }
        if isRequested { throw CancellationError() }
    }
}
