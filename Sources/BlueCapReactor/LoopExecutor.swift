/// A loop as an executor: tasks and actors run as the loop's posted work does.
package final class LoopExecutor: TaskExecutor, SerialExecutor {
    package let loop: any EventLoop
    private let actors: ActorExecutor

    package init(_ loop: any EventLoop) {
        self.loop = loop
        actors = ActorExecutor(loop)
    }

    /// Runs a job of a task that prefers this executor.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.post { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { actors.asUnownedSerialExecutor() }

    /// The executor of the tasks that the calling code starts for its own task: this one if that runs on the loop, or `nil`.
    package var inherited: (any TaskExecutor)? {
        // Virtual time does not pass while a task runs on its loop.
        loop.taskExecutor ?? (loop.isCurrent && withUnsafeCurrentTask { $0 != nil } ? self : nil)
    }
}

/// The executor of actors, an object of its own: a task that Swift has on the executor of an actor is posted again at each call of
/// a function that belongs to none.
private final class ActorExecutor: SerialExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.post { [self] in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
    func checkIsolated() { precondition(loop.isCurrent, "This code belongs on the executor of a manager.") }
}
