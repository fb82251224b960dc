/// The calling thread, which runs itself what it adds to the default context, and a job of a task that it resumes: when its present
/// work is done, it calls ``runTasks()``. A worker of a dispatch queue need not be woken then.
@usableFromInline
package struct TaskThread: ~Copyable {
    @usableFromInline let record = ThreadWork.current

    /// Until this value is released, on the same thread, the thread runs its tasks.
    package init() { record.pointee.runsTasks = true }

    deinit {
        record.pointee.runsTasks = false
        passTasksOn()
    }

    /// Whether tasks may wait for this thread.
    @inlinable package var hasTasks: Bool { record.pointee.hasTasks }

    /// Runs what waits for this thread. It is code of an application, which may take any time: what it adds runs elsewhere, except in
    /// the default context, whose tasks run one after the other.
    package func runTasks() {
        record.pointee.runsTasks = false
        defer { record.pointee.runsTasks = true }
        let tasks = record.pointee.defaultTasks.take()
        // A job need not wait for tasks.
        if let job = record.pointee.job.take() { ResumingThreadExecutor.shared.run(job, onWorker: tasks != nil) }
        tasks?.runHere()
    }

    /// Has workers run what waits instead.
    @inlinable
    package func passTasksOn() { if hasTasks { passToWorkers() } }

    @usableFromInline
    func passToWorkers() {
        if let job = record.pointee.job.take() { ResumingThreadExecutor.shared.run(job, onWorker: true) }
        record.pointee.defaultTasks.take()?.passToQueue()
    }
}
