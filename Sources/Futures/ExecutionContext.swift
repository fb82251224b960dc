/// Where handlers and combinators run.
///
/// A context runs every task it is given, once. Handlers of one future and elements of one stream are handed to a
/// context in their order; whether they also run in it is the context's own affair: a serial queue keeps it, a
/// concurrent one does not.
@preconcurrency
public protocol ExecutionContext: Sendable {
    /// Runs `task`, now or later, on this or another thread.
    @preconcurrency
    func execute(_ task: @escaping @Sendable () -> Void)

    /// Whether `execute` does nothing but call the task. Then handlers are called without asking it, which costs less.
    ///
    /// False, unless a context says otherwise.
    var isImmediate: Bool { get }
}

extension ExecutionContext {
    @inlinable
    public var isImmediate: Bool { false }
}

/// Runs tasks at once, on the thread that has them to run.
///
/// A handler registered with it runs on the thread that completes the future, before `complete` returns; or, when the
/// future is complete already, on the thread that registers, before the call returns. So a chain on this context is
/// complete as soon as its inputs are. Two cases differ, and only in the moment: handlers nested more than 32 levels
/// deep run when the stack has unwound, before the outermost call returns; and what happens to a future or stream while
/// one of its handlers runs is delivered after that handler, by the thread that runs it.
public struct ImmediateContext: ExecutionContext {
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

/// Runs tasks at once until 20 of them are nested on the calling thread; from there on it hops to the global queue.
public struct MaxStackDepthContext: ExecutionContext {
    /// How many tasks may run inside each other before the next one hops.
    public static let maximumDepth = 20

    public init() {}

    /// Runs `task` before it returns, or on the global queue when the stack is deep.
    public func execute(_ task: @escaping @Sendable () -> Void) {
        let thread = ThreadWork.current
        guard thread.pointee.taskDepth < Self.maximumDepth else {
            QueueContext.global.execute(task)
            return
        }
        thread.pointee.taskDepth += 1
        task()
        thread.pointee.taskDepth -= 1
    }
}
