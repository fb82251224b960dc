import BlueCapFutures

// The forms with a number of seconds are the same functions.
extension Simulator {
    /// Lets virtual time pass, and does everything that falls due in it in its order. In process only.
    public func advance(by duration: Duration) { advance(by: duration.seconds) }

    /// Lets virtual time pass, and runs the tasks that become ready in it. In process only.
    nonisolated(nonsending) public func advance(by duration: Duration) async { await advance(by: duration.seconds) }

    /// Lets virtual time pass until the condition holds, but no longer than `limit`; returns whether it holds. In process
    /// only.
    @discardableResult
    public func advance(until condition: () -> Bool, limit: Duration) -> Bool {
        advance(until: condition, limit: limit.seconds)
    }

    /// The same, which also runs the tasks that become ready.
    @discardableResult
    nonisolated(nonsending) public func advance(until condition: () -> Bool, limit: Duration) async -> Bool {
        await advance(until: condition, limit: limit.seconds)
    }

    /// Waits until the condition holds, but no longer than `limit`; returns whether it holds. In real time only, and never on
    /// the simulator's loop.
    @discardableResult
    public func wait(until condition: () -> Bool, limit: Duration) -> Bool {
        wait(until: condition, limit: limit.seconds)
    }
}

extension Simulator {
    /// Executes `operation` in virtual time, which passes until the operation has ended.
    ///
    /// ```swift
    /// let level = try await simulator.run { try await reader.level() }
    /// ```
    ///
    /// The operation is a task on ``taskExecutor``. If the calling task is cancelled, it is cancelled too. A simulator in real
    /// time only executes it.
    ///
    /// - Parameters:
    ///   - limit: How much virtual time may pass.
    ///   - operation: The code under test.
    /// - Throws: The error of the operation; ``SimulatorError/limitExceeded(_:)`` if it has not ended within the limit. It is
    ///   cancelled then.
    nonisolated(nonsending) public func run<T: Sendable>(
        limit: Duration = .seconds(600), _ operation: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        guard let taskExecutor else { return try await operation() }
        let hasEnded = Locked(false)
        let task = Task(executorPreference: taskExecutor) {
            defer { hasEnded.withLock { $0 = true } }
            return try await operation()
        }
        return try await withTaskCancellationHandler {
            guard await advance(until: { hasEnded.withLock { $0 } }, limit: limit) else {
                task.cancel()
                throw SimulatorError.limitExceeded(limit)
            }
            return try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
