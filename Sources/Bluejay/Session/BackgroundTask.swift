import Foundation

/// A background task, which blocks its thread until a request of the task is complete or the task has failed.
// Unchecked: the variables are accessed under `condition` alone.
final class BackgroundTask: @unchecked Swift.Sendable {
    fileprivate let condition = NSCondition()
    fileprivate var failure: (any Error)?
    /// The mailbox that the task waits for.
    fileprivate var awaited: ObjectIdentifier?
    private var hasEnded = false

    /// Fails what the task waits for, now and later.
    func fail(_ error: any Error) {
        condition.withLock {
            (failure, awaited) = (error, nil)
            condition.broadcast()
        }
    }

    func end() {
        condition.withLock {
            hasEnded = true
            condition.broadcast()
        }
    }

    /// Waits until the task waits for a request, or has ended; for tests with virtual time. Returns whether that is so.
    func awaitStillness(limit: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return condition.withLock {
            while !hasEnded, awaited == nil {
                guard condition.wait(until: deadline) else { return hasEnded || awaited != nil }
            }
            return true
        }
    }
}

/// The values that a background task waits for, in their order.
// Unchecked: `values` is accessed under the task's lock alone.
final class TaskMailbox<Value>: @unchecked Swift.Sendable {
    private let task: BackgroundTask
    private var values: [Value] = []

    init(_ task: BackgroundTask) { self.task = task }

    func put(_ value: Value) {
        task.condition.withLock {
            values.append(value)
            // The task does not wait any more, even if its thread has not woken yet.
            if task.awaited == ObjectIdentifier(self) { task.awaited = nil }
            task.condition.broadcast()
        }
    }

    /// Waits for the next value. Throws if the task has failed.
    func take() throws -> Value {
        try task.condition.withLock {
            defer { task.awaited = nil }
            while values.isEmpty {
                if let failure = task.failure { throw failure }
                task.awaited = ObjectIdentifier(self)
                task.condition.broadcast()
                task.condition.wait()
            }
            return values.removeFirst()
        }
    }
}
