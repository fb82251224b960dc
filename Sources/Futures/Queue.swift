public import Dispatch

/// A dispatch queue under a short name.
public struct Queue: Sendable {
    /// The queue itself.
    public let queue: DispatchQueue

    /// The main queue. A Linux program that never calls `dispatchMain()` nor runs the main run loop never drains it.
    public static var main: Queue { Queue(DispatchQueue.main) }

    /// The concurrent queue of the process.
    public static var global: Queue { Queue(DispatchQueue.global()) }

    /// A new serial queue of that name.
    public init(_ queueName: String) {
        queue = DispatchQueue(label: queueName)
    }

    /// An existing queue.
    public init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    /// Runs `block` on the queue and returns what it returned. Called on the same serial queue, it never returns.
    @discardableResult
    public func sync<T>(_ block: () throws -> T) rethrows -> T {
        try queue.sync(execute: block)
    }

    /// Has `block` run on the queue, and returns at once.
    @preconcurrency
    public func async(_ block: @escaping @Sendable () -> Void) {
        queue.async(execute: block)
    }

    /// Has `block` run on the queue after `seconds`, and returns at once.
    @preconcurrency
    public func delay(_ seconds: Double, _ block: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + seconds, execute: block)
    }
}
