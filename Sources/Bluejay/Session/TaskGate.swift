import Foundation

/// Where the thread of a background task waits for what it has asked for.
///
/// It is woken by what comes, and by whatever makes that nothing can come any more; so it never waits in vain.
// Unchecked: everything that changes is touched between lock and unlock of `condition`.
final class TaskGate: @unchecked Swift.Sendable {
    fileprivate let condition = NSCondition()
    fileprivate var failure: (any Error)?
    /// How many tasks have been taken on and have not ended: more than one only after Bluejay was stopped in the midst of
    /// one, and started again.
    private var tasks = 0
    /// What the task waits for.
    fileprivate var awaited: ObjectIdentifier?

    /// Whether the task does something, and does not wait here. Under the lock.
    private var isWorking: Bool { tasks > 0 && awaited == nil }

    /// A task is going to begin.
    func announce() { condition.withLock { tasks += 1 } }

    /// It begins: on its thread, where the one before has ended.
    func begin() { condition.withLock { failure = nil } }

    func end() {
        condition.withLock {
            tasks -= 1
            condition.broadcast()
        }
    }

    /// Nothing that the task waits for comes any more.
    func fail(_ error: any Error) {
        condition.withLock {
            failure = error
            awaited = nil
            condition.broadcast()
        }
    }

    /// Waits until the task waits here, or there is none; for those who drive a clock. Answers whether that is so.
    func awaitStillness(limit: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return condition.withLock {
            while isWorking {
                guard condition.wait(until: deadline) else { return !isWorking }
            }
            return true
        }
    }
}

/// What comes for the task, in its order.
// Unchecked: `arrived` is touched under the gate's lock.
final class Mailbox<Element>: @unchecked Swift.Sendable {
    private let gate: TaskGate
    private var arrived: [Element] = []

    init(_ gate: TaskGate) { self.gate = gate }

    func put(_ element: Element) {
        gate.condition.withLock {
            arrived.append(element)
            // From this moment on the task has something to do, even if its thread has not woken yet.
            if gate.awaited == ObjectIdentifier(self) { gate.awaited = nil }
            gate.condition.broadcast()
        }
    }

    /// Waits for the next. Throws when none can come any more.
    func take() throws -> Element {
        try gate.condition.withLock {
            defer { gate.awaited = nil }
            while arrived.isEmpty {
                if let failure = gate.failure { throw failure }
                gate.awaited = ObjectIdentifier(self)
                gate.condition.broadcast()
                gate.condition.wait()
            }
            return arrived.removeFirst()
        }
    }
}
