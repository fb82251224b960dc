public import Dispatch

/// Runs tasks on a dispatch queue, never before `execute` returns.
///
/// A serial queue runs handlers and elements in the order in which they were handed over.
public struct QueueContext: ExecutionContext {
    /// The queue that tasks run on.
    public let queue: Queue

    /// A context that runs tasks on `queue`.
    public init(queue: Queue) {
        self.queue = queue
    }

    /// A context that runs tasks on `queue`.
    public init(queue: DispatchQueue) {
        self.init(queue: Queue(queue))
    }

    /// Runs `task` on the queue, and returns at once.
    public func execute(_ task: @escaping @Sendable () -> Void) {
        queue.async(task)
    }

    /// The main queue, for programs that run one: a Linux program drains it only in `dispatchMain()`, in the main run
    /// loop, or by an `async` `main`, and otherwise handlers on this context never run.
    public static var main: QueueContext { QueueContext(queue: Queue.main) }

    /// The concurrent queue of the process: handlers on it may run at the same time and in any order.
    public static var global: QueueContext { QueueContext(queue: Queue.global) }

    /// The context of every handler and combinator that is given none.
    ///
    /// At first it is a serial queue of the module's own, because a plain Linux program drains no main queue. A program
    /// that does, in `dispatchMain()`, in `RunLoop.main.run()` or by an `async` `main`, can have all its handlers there:
    ///
    /// ```swift
    /// QueueContext.futuresDefault = QueueContext.main
    /// ```
    ///
    /// Set it before the first handler is added. A later change holds for the handlers that are added after it. It can be
    /// set on any thread.
    ///
    /// The setting does not change what the compiler allows in a handler. Closures that use `@MainActor` state are for
    /// the handlers that take one, such as ``Future/onSuccess(on:cancelToken:completion:)``, whatever the default is.
    public static var futuresDefault: any ExecutionContext {
        get { configured.withLock { $0 } }
        set { configured.withLock { $0 = newValue } }
    }

    private static let configured = Locked<any ExecutionContext>(
        QueueContext(queue: Queue("Futures.default")))
}
