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
        // A job need not wait for tasks.
        if record.pointee.defaultTasks != nil { passJobOn() }
        if let job = record.pointee.job.take() { ResumingThreadExecutor.shared.run(job) }
        record.pointee.defaultTasks.take()?.runHere()
    }

    /// Has workers run what waits instead.
    @inlinable
    package func passTasksOn() { if hasTasks { passToWorkers() } }

    @usableFromInline
    func passToWorkers() {
        passJobOn()
        record.pointee.defaultTasks.take()?.passToQueue()
    }

    private func passJobOn() {
        if let job = record.pointee.job.take() { ResumingThreadExecutor.shared.runOnWorker(job) }
    }
}
