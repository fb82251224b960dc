package import Foundation
import Futures

/// Names one scheduled piece of work of one loop.
package struct TimerID: Hashable, Sendable {
    let rawValue: UInt64
}

/// What can be said of a watched descriptor.
package struct IOEvents: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let readable = IOEvents(rawValue: 1)
    package static let writable = IOEvents(rawValue: 2)
    /// The other side is gone. Reported whether asked for or not.
    package static let hangup = IOEvents(rawValue: 4)
    /// The descriptor is in error, or cannot be watched at all. Reported whether asked for or not.
    package static let error = IOEvents(rawValue: 8)
}

/// What a loop lacks in a process, or a system, that has used up a limit.
package enum LoopShortage: Error, Hashable, Sendable {
    /// There can be no thread: the error's number, mostly `EAGAIN`.
    case thread(Int32)
    /// There can be no descriptor: `EMFILE`, or the error's number.
    case descriptors(Int32)
}

extension LoopShortage: CustomStringConvertible {
    package var description: String {
        switch self {
        case .thread(EAGAIN), .thread(ENOMEM):
            "The process can have no further thread (see `ulimit -u`, and the limits of its container and of its memory)."
        case .thread(let code):
            "The process cannot make a thread: \(String(cString: strerror(code)))."
        case .descriptors(EMFILE):
            "The process has used up its limit of open files (see `ulimit -n`)."
        case .descriptors(ENFILE):
            "The system has used up its limit of open files (see `sysctl fs.file-max`)."
        case .descriptors(let code):
            "The process cannot wait for descriptors: \(String(cString: strerror(code)))."
        }
    }
}

/// One place where things happen one after another: posted work, timers, and descriptors that became ready.
///
/// Two kinds exist: `ThreadLoop`, which waits on a thread of its own, and `ManualLoop`, whose time is virtual and which a
/// test drives. Whatever is written against this protocol runs on both.
package protocol EventLoop: AnyObject, Sendable {
    /// The loop's clock; virtual on the manual loop. Any thread.
    var now: Instant { get }

    /// The wall clock, moving with `now`. Any thread.
    var date: Date { get }

    /// Whether the caller runs on this loop.
    var isCurrent: Bool { get }

    /// Makes sure that the loop runs; gives why it cannot. Any thread. What is posted and scheduled meanwhile is kept, and
    /// each further post tries again.
    func start() -> LoopShortage?

    /// Makes sure that descriptors can be watched; gives why they cannot. Loop only. Without it a watch that cannot be is
    /// called with `.error`, which does not say why.
    func prepareToWatch() -> LoopShortage?

    /// Runs the work on the loop, in the order of the posts. Any thread; from the loop itself it runs after the present
    /// work, never inside it. Work posted to a loop that has stopped is dropped.
    func post(_ work: @escaping @Sendable () -> Void)

    /// Runs the work on the loop once, that many seconds from now. Any thread.
    @discardableResult
    func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID

    /// Forgets scheduled work; a timer that has fired or was cancelled is let be. Any thread. On the loop, the work does
    /// not run after this call.
    func cancel(_ timer: TimerID)

    /// Calls `ready` on the loop while any of the events holds for the descriptor (level-triggered). Loop only. The
    /// descriptor stays the caller's, and must stay open until the watch is cancelled.
    func watch(_ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void) -> Watch

    /// Where tasks run whose time is this loop's; `nil` for Swift's own threads, where time is real.
    var taskExecutor: (any TaskExecutor)? { get }
}

extension EventLoop {
    package var taskExecutor: (any TaskExecutor)? { nil }
    package func start() -> LoopShortage? { nil }
    package func prepareToWatch() -> LoopShortage? { nil }

    /// Runs the work at once where the caller is on the loop, else posts it.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        if isCurrent {
            work()
        } else {
            post(work)
        }
    }

    /// Runs the work on the loop and blocks the calling thread until it is done. For callers that have a thread to
    /// spare; on the loop itself it would wait for ever, so there it traps.
    package func wait<R: Sendable>(_ work: @escaping @Sendable () -> R) -> R {
        precondition(
            !isCurrent,
            "Waiting on the event loop for the event loop would never end: use a completion, or a future, instead.")
        let done = DispatchSemaphore(value: 0)
        let result = Locked<R?>(nil)
        post {
            let value = work()
            result.withLock { $0 = value }
            done.signal()
        }
        done.wait()
        guard let value = result.withLock({ $0 }) else {
            preconditionFailure("The loop signalled that the work was done without having done it.")
        }
        return value
    }
}
