public import Dispatch

/// Runs handlers and operators.
///
/// A context runs every task that is passed to it, once. The handlers of one future and the elements of one stream are
/// passed to a context in their order. Whether they also run in that order depends on the context: on a serial queue they
/// do, on a concurrent one they may not.
@preconcurrency
public protocol ExecutionContext: Sendable {
    /// Runs `task`, now or later, on this or another thread.
    @preconcurrency
    func execute(_ task: @escaping @Sendable () -> Void)

    /// Whether `execute` only calls the task. Handlers are then called directly, which costs less.
    ///
    /// The default is false.
    var isImmediate: Bool { get }
}

extension ExecutionContext {
    @inlinable
    public var isImmediate: Bool { false }
}

/// Runs tasks at once, on the calling thread.
///
/// A handler that is added with it runs on the thread that completes the future, before `complete` returns; or, if the
/// future is already complete, on the thread that adds the handler, before the call returns. A chain on this context is
/// therefore complete as soon as its inputs are. Two cases differ in the moment only. Handlers nested more than 32 levels
/// deep run when the stack has unwound, before the outermost call returns. Events of a future or stream during one of its
/// handlers are delivered after that handler, by the thread that runs it.
public struct ImmediateContext: ExecutionContext {
    /// Creates the context. All immediate contexts behave alike.
    @inlinable
    public init() {}

    /// True: handlers are called as if there were no context.
    @inlinable
    public var isImmediate: Bool { true }

    /// Runs `task` before it returns.
    @inlinable
    public func execute(_ task: @escaping @Sendable () -> Void) {
        task()
    }
}

/// Runs tasks at once until 20 of them are nested on the calling thread, and further ones on the global queue.
public struct MaxStackDepthContext: ExecutionContext {
    /// How many nested tasks run at once. The next one runs on the global queue.
    public static let maximumDepth = 20

    /// Creates the context. All contexts of this type count the nesting of a thread together.
    public init() {}

    /// Runs `task` before it returns, or on the global queue when the stack is deep.
    public func execute(_ task: @escaping @Sendable () -> Void) {
        let thread = ThreadWork.current
        guard thread.pointee.taskDepth < Self.maximumDepth else { return QueueContext.global.execute(task) }
        thread.pointee.taskDepth += 1
        task()
        thread.pointee.taskDepth -= 1
    }
}

/// Runs tasks on a dispatch queue, never before `execute` returns.
///
/// A serial queue runs handlers and elements in the order in which they were passed to it.
public struct QueueContext: ExecutionContext {
    /// The queue that tasks run on.
    public let queue: Queue

    /// Creates a context that runs tasks on `queue`.
    public init(queue: Queue) {
        self.queue = queue
    }

    /// Creates a context that runs tasks on `queue`.
    public init(queue: DispatchQueue) {
        self.init(queue: Queue(queue))
    }

    /// Runs `task` on the queue, and returns at once.
    public func execute(_ task: @escaping @Sendable () -> Void) {
        queue.async(task)
    }

    /// The main queue. A Linux program drains it only in `dispatchMain()`, in the main run loop, or with an `async` `main`;
    /// otherwise handlers on this context never run.
    public static var main: QueueContext { QueueContext(queue: Queue.main) }

    /// The concurrent queue of the process. Handlers on it may run at the same time and in any order.
    public static var global: QueueContext { QueueContext(queue: Queue.global) }

    /// The default context of every handler and operator: at first a serial queue of this module, because a plain Linux
    /// program drains no main queue. A program that does, see ``main``, can run all its handlers there:
    ///
    /// ```swift
    /// QueueContext.futuresDefault = QueueContext.main
    /// ```
    ///
    /// Set it, on any thread, before the first handler is added. A later change applies to the handlers that are added after it.
    /// The setting does not change what the compiler allows in a handler. Pass closures that use `@MainActor` state to the
    /// methods that take such closures, for example ``Future/onSuccess(on:cancelToken:completion:)``, whatever the default
    /// is.
    public static var futuresDefault: any ExecutionContext {
        get { configured.withLock { $0 } }
        set { configured.withLock { $0 = newValue } }
    }

    private static let configured = Locked<any ExecutionContext>(
        QueueContext(queue: Queue(tasksOf: DispatchQueue(label: "Futures.default"))))
}

/// A dispatch queue.
public struct Queue: Sendable {
    /// The queue itself.
    public let queue: DispatchQueue
    /// The tasks of the default context's queue, which come through here and not directly to the queue.
    private let tasks: DefaultTasks?

    /// The main queue. A Linux program that never calls `dispatchMain()` nor runs the main run loop never drains it.
    public static var main: Queue { Queue(DispatchQueue.main) }

    /// The concurrent queue of the process.
    public static var global: Queue { Queue(DispatchQueue.global()) }

    /// Creates a serial queue with that name.
    public init(_ queueName: String) {
        self.init(DispatchQueue(label: queueName))
    }

    /// Wraps an existing queue.
    public init(_ queue: DispatchQueue) {
        self.queue = queue
        tasks = nil
    }

    init(tasksOf queue: DispatchQueue) {
        self.queue = queue
        tasks = DefaultTasks(queue: queue)
    }

    /// Runs `block` on the queue and returns its result. On the same serial queue this call never returns.
    @discardableResult
    public func sync<T>(_ block: () throws -> T) rethrows -> T {
        if let tasks { try tasks.sync(block) } else { try queue.sync(execute: block) }
    }

    /// Schedules `block` on the queue, and returns at once.
    @preconcurrency
    public func async(_ block: @escaping @Sendable () -> Void) {
        if let tasks { tasks.add(block) } else { queue.async(execute: block) }
    }

    /// Schedules `block` on the queue after `seconds`, and returns at once.
    @preconcurrency
    public func delay(_ seconds: Double, _ block: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + seconds, execute: block)
    }
}
