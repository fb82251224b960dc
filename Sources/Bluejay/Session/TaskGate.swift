import Foundation

/// Where the thread of a background task waits for what it has asked for.
///
/// It is woken by what comes, and by whatever makes that nothing can come any more; so it never waits in vain.
// Unchecked: everything that changes is touched between lock and unlock of `condition`.
final class TaskGate: @unchecked Swift.Sendable {
    fileprivate let condition = NSCondition()
    fileprivate var failure: (any Error)?
    /// Whether the task does something, and does not wait here.
    fileprivate var isWorking = false
    fileprivate var awaited: ObjectIdentifier?

    /// A task is about to begin.
    func begin() {
        condition.withLock { (failure, isWorking) = (nil, true) }
    }

    func end() {
        condition.withLock {
            isWorking = false
            condition.broadcast()
        }
    }

    /// Nothing that the task waits for comes any more.
    func fail(_ error: any Error) {
        condition.withLock {
            failure = error
            if awaited != nil { isWorking = true }
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
            if gate.awaited == ObjectIdentifier(self) { gate.isWorking = true }
            gate.condition.broadcast()
        }
    }

    /// Waits for the next. Throws when none can come any more.
    func take() throws -> Element {
        try gate.condition.withLock {
            gate.awaited = ObjectIdentifier(self)
            defer { (gate.awaited, gate.isWorking) = (nil, true) }
            while arrived.isEmpty {
                if let failure = gate.failure { throw failure }
                gate.isWorking = false
                gate.condition.broadcast()
                gate.condition.wait()
            }
            return arrived.removeFirst()
        }
    }
}
