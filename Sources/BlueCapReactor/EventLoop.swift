package import Foundation
import BlueCapFutures

/// A point on one loop's clock, which never goes back: nanoseconds since that loop's own origin.
@usableFromInline
package struct Instant: Comparable, Hashable, Sendable {
    @usableFromInline package let nanoseconds: UInt64

    package static let origin = Instant(nanoseconds: 0)
    package static let distantFuture = Instant(nanoseconds: .max)

    /// The instant that many seconds later. Negative spans and NaN return this same instant. A span that is too long (an
    /// infinite time-out, for one) returns `distantFuture`.
    package func advanced(by seconds: TimeInterval) -> Instant {
        guard seconds > 0 else { return self }
        let span = (seconds * 1e9).rounded()
        guard span < TimeInterval(UInt64.max - nanoseconds) else { return .distantFuture }
        return Instant(nanoseconds: nanoseconds + UInt64(span))
    }

    /// The seconds from `earlier` to this instant; negative if this instant is the earlier one.
    package func seconds(since earlier: Instant) -> TimeInterval {
        guard self >= earlier else { return -earlier.seconds(since: self) }
        return TimeInterval(nanoseconds - earlier.nanoseconds) / 1e9
    }

    @inlinable
    package static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// Identifies scheduled work of one loop.
package struct TimerID: Hashable, Sendable {
    let rawValue: UInt64
}

/// The conditions of a watched descriptor. The bits are those of libdbus's watches.
package struct IOEvents: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let readable = IOEvents(rawValue: 1)
    package static let writable = IOEvents(rawValue: 2)
    /// The descriptor has an error or cannot be watched. Always reported.
    package static let error = IOEvents(rawValue: 4)
    /// The other side is closed. Always reported.
    package static let hangup = IOEvents(rawValue: 8)
}

/// What a loop lacks in a process, or a system, that has reached a limit.
package enum LoopShortage: Error, Hashable, Sendable, CustomStringConvertible {
    /// No thread can be created: the error number, mostly `EAGAIN`.
    case thread(Int32)
    /// No descriptor can be created: `EMFILE`, or the error number.
    case descriptors(Int32)

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

/// Runs work in a serial order: posted work, timers, and handlers of descriptors that became ready.
///
/// There are two kinds: `ThreadLoop` waits on a thread of its own. `ManualLoop` has a virtual time and is driven by a test.
/// Code that uses this protocol runs on both.
package protocol EventLoop: AnyObject, Sendable {
    /// The loop's clock; virtual on the manual loop. Any thread.
    var now: Instant { get }

    /// The wall clock, which advances with `now`. Any thread.
    var date: Date { get }

    /// Whether the caller runs on this loop.
    var isCurrent: Bool { get }

    /// Makes sure that the loop runs; returns why it cannot. Any thread. The loop keeps posted and scheduled work until it
    /// runs, and tries to start again at each post.
    func start() -> LoopShortage?

    /// Makes sure that descriptors can be watched; returns why they cannot. Loop only. Without this call, a watch that is
    /// not possible is called with `.error`, which does not contain the reason.
    func prepareToWatch() -> LoopShortage?

    /// Runs the work on the loop, in the order of the posts. Any thread. Work posted from the loop runs after the current
    /// work, never inside it. Work posted to a stopped loop is dropped.
    func post(_ work: @escaping @Sendable () -> Void)

    /// Runs the work inside this call, on the calling thread and as a part of the loop, if the loop sleeps and nothing waits
    /// for it. Returns whether it has run. Any thread; false on the loop itself. The work must not run code of an application,
    /// which may hold locks when it calls, and must be short: the loop waits for it.
    func performIfIdle(_ work: () -> Void) -> Bool

    /// Says that descriptors are ready so often that a short rest before the next look at them saves more than it costs: each
    /// look then finds several messages. Loop only; for the next wait. There is no rest if work is posted or due, and work
    /// posted later ends it.
    func restBeforeWait()

    /// Runs the work on the loop once, that many seconds from now. Any thread.
    @discardableResult
    func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID

    /// Cancels scheduled work; no effect on a timer that has fired or was cancelled. Any thread. If called on the loop, the
    /// work does not run after this call.
    func cancel(_ timer: TimerID)

    /// Calls `ready` on the loop as long as any of the events holds for the descriptor (level-triggered). Loop only. The
    /// descriptor remains the caller's and must stay open until the watch is cancelled.
    func watch(_ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void) -> Watch

    /// Says that work for this loop begins on another thread, such as that of the disk. Any thread. Virtual time does not pass
    /// until `endWorkElsewhere` is called: a thread that the system delays would otherwise come too late for a limit in virtual
    /// time. The work must end by itself: it must not wait for the thread that drives the loop.
    func beginWorkElsewhere()

    /// Says that such work has ended, after what it posts to the loop. Any thread; once for each `beginWorkElsewhere`.
    func endWorkElsewhere()

    /// The executor of tasks that must run in this loop's time, which is virtual; `nil` for Swift's own threads.
    var taskExecutor: (any TaskExecutor)? { get }
}

extension EventLoop {
    package var taskExecutor: (any TaskExecutor)? { nil }
    package func beginWorkElsewhere() {}
    package func endWorkElsewhere() {}
    package func performIfIdle(_ work: () -> Void) -> Bool { false }
    package func restBeforeWait() {}
    package func start() -> LoopShortage? { nil }
    package func prepareToWatch() -> LoopShortage? { nil }

    /// Runs the work at once if the caller is on the loop, else posts it.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        if isCurrent {
            work()
        } else {
            post(work)
        }
    }

    /// Runs the work on the loop and blocks the calling thread until it is done. Traps on the loop itself, which would
    /// wait without end.
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

/// Something that continues until this object is cancelled or released: a subscription, an observation, a pause.
package final class CancelHandle: Sendable {
    private let loop: any EventLoop
    private let end: Locked<(@Sendable () -> Void)?>

    /// - Parameter end: Runs once, on the loop: inside ``cancel()`` if that is called on the loop.
    package init(loop: any EventLoop, end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = Locked(end)
    }

    deinit {
        cancel()
    }

    /// Any thread; a second call does nothing.
    package func cancel() {
        if let end = end.withLock({ $0.take() }) { loop.perform(end) }
    }
}

/// The posted and scheduled work of a loop, which the loop keeps under its lock.
struct PendingWork {
    /// A closure in a structure: stored bare in a generic collection, each would be wrapped in another one.
    struct Work {
        let run: @Sendable () -> Void
    }

    private var posts: [Work] = []
    private var timers = TimerQueue<Work>()

    var hasPosts: Bool { !posts.isEmpty }

    mutating func post(_ work: @escaping @Sendable () -> Void) { posts.append(Work(run: work)) }

    mutating func takePosts() -> [Work] { exchange(&posts, with: []) }

    mutating func schedule(_ work: @escaping @Sendable () -> Void, at deadline: Instant) -> TimerID {
        TimerID(rawValue: timers.add(Work(run: work), deadline: deadline))
    }

    mutating func cancel(_ timer: TimerID) -> Work? { timers.cancel(timer.rawValue) }

    /// The deadline of the next timer; `distantFuture` if there is none.
    var nextDeadline: Instant { timers.nextDeadline ?? .distantFuture }

    mutating func popDue(at now: Instant) -> Work? { timers.popDue(at: now) }
}

/// Sets a variable and returns its previous value.
@inlinable
package func exchange<T>(_ variable: inout T, with value: T) -> T {
    let old = variable
    variable = value
    return old
}
