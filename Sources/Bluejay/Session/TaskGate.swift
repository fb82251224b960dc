import Foundation

/// Blocks the thread of a background task until a request of the task is complete, or the task has failed.
// Unchecked: the variables are accessed under `condition` alone.
final class TaskGate: @unchecked Swift.Sendable {
    fileprivate let condition = NSCondition()
    fileprivate var failure: (any Error)?
    /// The number of tasks that were announced and have not ended: more than one only after Bluejay was stopped during a
    /// task, and started again.
    private var tasks = 0
    /// The mailbox that the task waits for.
    fileprivate var awaited: ObjectIdentifier?

    /// Counts a task that is going to begin.
    func announce() { condition.withLock { tasks += 1 } }

    /// Begins a task, on its thread: the previous one has ended.
    func begin() { condition.withLock { failure = nil } }

    func end() {
        condition.withLock {
            tasks -= 1
            condition.broadcast()
        }
    }

    /// Fails what the task waits for, now and later.
    func fail(_ error: any Error) {
        condition.withLock {
            (failure, awaited) = (error, nil)
            condition.broadcast()
        }
    }

    /// Waits until the task waits here, or there is none; for tests with virtual time. Returns whether that is so.
    func awaitStillness(limit: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return condition.withLock {
            while tasks > 0, awaited == nil {
                guard condition.wait(until: deadline) else { return tasks == 0 || awaited != nil }
            }
            return true
        }
    }
}

/// The values that a background task waits for, in their order.
// Unchecked: `values` is accessed under the gate's lock alone.
final class TaskMailbox<Value>: @unchecked Swift.Sendable {
    private let gate: TaskGate
    private var values: [Value] = []

    init(_ gate: TaskGate) { self.gate = gate }

    func put(_ value: Value) {
        gate.condition.withLock {
            values.append(value)
            // The task does not wait any more, even if its thread has not woken yet.
            if gate.awaited == ObjectIdentifier(self) { gate.awaited = nil }
            gate.condition.broadcast()
        }
    }

    /// Waits for the next value. Throws if the task has failed.
    func take() throws -> Value {
        try gate.condition.withLock {
            defer { gate.awaited = nil }
            while values.isEmpty {
                if let failure = gate.failure { throw failure }
                gate.awaited = ObjectIdentifier(self)
                gate.condition.broadcast()
                gate.condition.wait()
            }
            return values.removeFirst()
        }
    }
}
