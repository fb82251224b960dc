import BlueCapFutures
import XCTest

/// The events of a test, in their order, from any number of threads.
final class Recorder<Entry>: Sendable {
    private let entries = Locked<[Entry]>([])

    func callAsFunction(_ entry: Entry) {
        entries.withLock { $0.append(entry) }
    }

    var all: [Entry] { entries.withLock { $0 } }
    var count: Int { entries.withLock { $0.count } }
}

enum TestError: Int, Error {
    case first, second
}

extension XCTestCase {
    /// Waits until all work that was submitted to `queue` before has run, and the work that this has submitted.
    func drain(_ queue: Queue) {
        for _ in 0..<20 { queue.sync {} }
    }
}

/// A context that keeps its tasks until `run()` is called, and counts them.
final class HeldContext: ExecutionContext {
    private let tasks = Locked<[@Sendable () -> Void]>([])
    private let total = Locked(0)

    func execute(_ task: @escaping @Sendable () -> Void) {
        total.withLock { $0 += 1 }
        tasks.withLock { $0.append(task) }
    }

    /// How many tasks it was ever given.
    var count: Int { total.withLock { $0 } }

    /// Runs the tasks that wait, and those that are added by them.
    func run() {
        while true {
            let due = tasks.withLock { tasks in
                defer { tasks = [] }
                return tasks
            }
            if due.isEmpty { return }
            for task in due { task() }
        }
    }
}
