import Dispatch

/// Runs a job of a task on the thread that has resumed the task, if that is a ``TaskThread``; else on a worker of a dispatch queue, which
/// must be woken for it.
package final class ResumingThreadExecutor: TaskExecutor {
    package static let shared = ResumingThreadExecutor()

    private init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let thread = ThreadWork.current
        // One job for each thread: others run at the same time.
        if thread.pointee.runsTasks, !thread.pointee.hasTasks {
            thread.pointee.job = job
        } else {
            runOnWorker(job)
        }
    }

    func run(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }

    func runOnWorker(_ job: UnownedJob) {
        DispatchQueue.global(qos: .init(job.priority)).async { self.run(job) }
    }
}

extension DispatchQoS.QoSClass {
    fileprivate init(_ priority: JobPriority) {
        self =
            switch TaskPriority(priority) ?? .medium {
            case .high...: .userInitiated
            case .medium...: .default
            case .low...: .utility
            default: .background
            }
    }
}
