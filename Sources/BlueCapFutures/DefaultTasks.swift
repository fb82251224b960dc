import Dispatch

/// The tasks of the default context, which run one after the other, in their order, on a serial queue.
///
/// A worker of the queue must be woken for a task. A ``TaskThread`` runs the tasks that it adds itself instead, on the queue too,
/// when its present work is done.
@usableFromInline
final class DefaultTasks: Sendable {
    /// After so many tasks the queue is left, so that the queue can run the tasks of other code.
    private static let tasksPerTurn = 1024

    private enum Runner: Equatable {
        /// Nothing waits.
        case none
        /// The thread that has added what waits, once its present work is done. The pointer is compared, never followed.
        case thread(UnsafeMutablePointer<ThreadWork>)
        /// The queue, on which tasks run or are scheduled.
        case queue
    }

    private struct State {
        var waiting: [Work] = []
        var runner = Runner.none
    }

    /// A closure in a structure: stored bare in an array, each would be wrapped in another one.
    private struct Work {
        let run: @Sendable () -> Void
    }

    private let queue: DispatchQueue
    private let state = Locked(State())

    init(queue: DispatchQueue) { self.queue = queue }

    func add(_ task: @escaping @Sendable () -> Void) {
        let thread = ThreadWork.current
        let mustSchedule = state.withLock { state in
            state.waiting.append(Work(run: task))
            switch state.runner {
            case .queue, .thread(thread):
                return false
            case .none where thread.pointee.runsTasks:
                state.runner = .thread(thread)
                thread.pointee.defaultTasks = self
                return false
            case .none, .thread:
                // What other threads add must not wait for the present work of that one.
                state.runner = .queue
                return true
            }
        }
        if mustSchedule { scheduleOnQueue() }
    }

    /// Runs what waits for the calling thread, unless the queue does.
    func runHere() {
        let thread = ThreadWork.current
        if state.withLock({ $0.runner == .thread(thread) }) { queue.sync { runWaiting() } }
    }

    /// Has the queue run what waits for a thread.
    func passToQueue() {
        let mustSchedule = state.withLock { state in
            guard case .thread = state.runner else { return false }
            state.runner = .queue
            return true
        }
        if mustSchedule { scheduleOnQueue() }
    }

    /// Runs `block` on the queue, after the tasks that were added before.
    func sync<T>(_ block: () throws -> T) rethrows -> T {
        try queue.sync {
            for task in takeWaiting(leaving: .none) { task.run() }
            return try block()
        }
    }

    private func scheduleOnQueue() { queue.async { self.runWaiting() } }

    /// On the queue.
    private func runWaiting() {
        var count = 0
        while count < Self.tasksPerTurn {
            let tasks = takeWaiting(leaving: .queue)
            if tasks.isEmpty { return }
            for task in tasks { task.run() }
            count += tasks.count
        }
        scheduleOnQueue()
    }

    /// - Parameter runner: What runs the tasks that are added from now on; none if there was nothing to take.
    private func takeWaiting(leaving runner: Runner) -> [Work] {
        state.withLock { state in
            state.runner = state.waiting.isEmpty ? .none : runner
            let tasks = state.waiting
            state.waiting = []
            return tasks
        }
    }
}
