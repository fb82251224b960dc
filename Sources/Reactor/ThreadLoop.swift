package import Foundation
import Futures
import Glibc

/// The loop of real programs: one thread that sleeps in epoll until a descriptor, a timer or posted work needs it.
///
/// The thread ends when the loop is stopped or released; work that was posted before still runs, what waits for a time
/// or a descriptor does not. A loop whose thread cannot be made keeps what it is given, and tries again with each post.
package final class ThreadLoop: EventLoop {
    private let thread: LoopThread

    /// The thread is made when there is something to do; `name` is what debuggers and `top -H` show (the kernel keeps fifteen
    /// bytes of it).
    package convenience init(name: String) { self.init(name: name, makeThread: makeDetachedThread) }

    init(name: String, makeThread: @escaping LoopThread.ThreadMaker) {
        thread = LoopThread(name: name, makeThread: makeThread)
    }

    deinit {
        thread.stop()
    }

    /// Ends the thread after what it is doing now. Any thread; a second call does nothing.
    package func stop() {
        thread.stop()
    }

    package func start() -> LoopShortage? { thread.start() }
    package func prepareToWatch() -> LoopShortage? { thread.prepareToWatch() }

    package var now: Instant { thread.now }
    package var date: Date { Date() }
    package var isCurrent: Bool { thread.isCurrent }

    package func post(_ work: @escaping @Sendable () -> Void) {
        thread.post(work)
    }

    @discardableResult
    package func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID {
        thread.schedule(after: seconds, work)
    }

    package func cancel(_ timer: TimerID) {
        thread.cancel(timer)
    }

    package func watch(
        _ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void
    ) -> Watch {
        thread.watch(descriptor, for: events, ready)
    }
}
