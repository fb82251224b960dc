import CReactor
import Foundation
import Futures
import Glibc

/// The thread behind a `ThreadLoop`, which keeps this object and not the loop alive, so that a loop nobody holds ends.
///
/// Unchecked, because of what only the thread itself touches: `watches`, and `thread`, which is written before the
/// thread passes its gate.
final class LoopThread: WatchTableOwner, @unchecked Sendable {
    typealias Work = @Sendable () -> Void

    private struct Shared {
        var posts: [Work] = []
        var timers = TimerQueue<Work>()
        /// Whether the thread will look at `posts` and `timers` before it sleeps, so that nobody need wake it.
        var isAwake = true
        var isStopped = false
    }

    private let shared = Locked(Shared())
    private let name: String
    private let epoll: Int32
    private let wake: Int32
    private let origin: UInt64
    private let gate = DispatchSemaphore(value: 0)
    private var thread = pthread_t()
    private var watches = WatchTable()
    /// What epoll knows of each descriptor; no entry where it knows nothing.
    private var registered: [Int32: IOEvents] = [:]

    init(name: String) {
        self.name = name
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wake = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        precondition(
            epoll >= 0 && wake >= 0,
            "No event loop without descriptors: the process has used up its limit of open files (see ulimit -n).")
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = wake
        epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event)
        origin = monotonicNanoseconds()
    }

    deinit {
        close(epoll)
        close(wake)
    }

    // MARK: Any thread

    var now: Instant { Instant(nanoseconds: monotonicNanoseconds() - origin) }
    var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    func start() {
        let this = Unmanaged.passRetained(self)
        let result = pthread_create(&thread, nil, runLoopThread, this.toOpaque())
        precondition(result == 0, "No event loop without a thread: the process has used up its limit of threads.")
        gate.signal()
    }

    func stop() {
        signal { shared in
            shared.isStopped = true
            return true
        }
    }

    func post(_ work: @escaping Work) {
        signal { shared in
            guard !shared.isStopped else { return false }
            shared.posts.append(work)
            return true
        }
    }

    func schedule(after seconds: TimeInterval, _ work: @escaping Work) -> TimerID {
        let deadline = now.advanced(by: seconds)
        var number: UInt64 = 0
        signal { shared in
            let next = shared.timers.nextDeadline
            number = shared.timers.add(work, deadline: deadline)
            return next.map { deadline < $0 } ?? true
        }
        return TimerID(rawValue: number)
    }

    func cancel(_ timer: TimerID) {
        // What the work holds is released after the lock.
        let work = shared.withLock { $0.timers.cancel(timer.rawValue) }
        withExtendedLifetime(work) {}
    }

    /// Changes the shared state, and wakes the thread where it sleeps and the change says that it must look.
    private func signal(_ change: (inout Shared) -> Bool) {
        let mustWake = shared.withLock { shared in
            guard change(&shared), !shared.isAwake else { return false }
            shared.isAwake = true
            return true
        }
        if mustWake { eventfd_write(wake, 1) }
    }

    // MARK: The thread itself

    func watch(_ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void) -> Watch {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        let watch = Watch(descriptor: descriptor, events: events, table: self, ready: ready)
        watches.add(watch)
        watchesChanged(of: descriptor)
        return watch
    }

    func watchesChanged(of descriptor: Int32) {
        let wanted = watches.interest(in: descriptor) ?? []
        let known = registered[descriptor]
        guard wanted != known ?? [] else { return }
        guard !wanted.isEmpty else {
            // Fails where the descriptor was closed before, and epoll has forgotten it by itself.
            epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
            registered[descriptor] = nil
            return
        }
        var event = epoll_event()
        event.events = wanted.epollMask
        event.data.fd = descriptor
        registered[descriptor] = wanted
        if epoll_ctl(epoll, known == nil ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) != 0 {
            // Closed, or of a kind that cannot be waited for: the watches hear of it, from the loop.
            registered[descriptor] = nil
            post { self.tell(descriptor, .error) }
        }
    }

    private func tell(_ descriptor: Int32, _ events: IOEvents) {
        for watch in watches.watches(of: descriptor) { watch.tell(events) }
    }

    fileprivate func run() {
        gate.wait()
        creactor_name_thread(name)
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while runPosts() {
            runDueTimers()
            let count = epoll_wait(epoll, &events, Int32(events.count), millisecondsToSleep())
            shared.withLock { $0.isAwake = true }
            guard count > 0 else { continue }
            for event in events[..<Int(count)] {
                let descriptor = event.data.fd
                if descriptor == wake {
                    var value: eventfd_t = 0
                    eventfd_read(wake, &value)
                } else {
                    tell(descriptor, IOEvents(epollMask: event.events))
                }
            }
        }
    }

    /// Runs what was posted up to now; false where the loop has been stopped and nothing is left.
    private func runPosts() -> Bool {
        let (posts, isStopped) = shared.withLock { shared in
            (exchange(&shared.posts, with: []), shared.isStopped)
        }
        for work in posts { work() }
        return !isStopped
    }

    private func runDueTimers() {
        // Those that are scheduled meanwhile have their turn after the descriptors.
        let now = now
        while let work = shared.withLock({ $0.timers.popDue(at: now) }) { work() }
    }

    private func millisecondsToSleep() -> Int32 {
        let deadline: Instant? = shared.withLock { shared in
            guard shared.posts.isEmpty, !shared.isStopped else { return .origin }
            shared.isAwake = false
            return shared.timers.nextDeadline ?? .distantFuture
        }
        guard let deadline, deadline != .distantFuture else { return -1 }
        guard deadline > .origin else { return 0 }
        // Rounded up: a timer may be late, never early.
        let milliseconds = (deadline.seconds(since: now) * 1000).rounded(.up)
        return Int32(min(max(milliseconds, 0), 60_000))
    }
}

private func runLoopThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let loop = Unmanaged<LoopThread>.fromOpaque(argument).takeRetainedValue()
    pthread_detach(pthread_self())
    loop.run()
    return nil
}

func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Puts a new value in a variable's place and gives the old one.
func exchange<T>(_ variable: inout T, with value: T) -> T {
    let old = variable
    variable = value
    return old
}

extension IOEvents {
    var epollMask: UInt32 {
        (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
    }

    init(epollMask mask: UInt32) {
        self = []
        if mask & EPOLLIN.rawValue != 0 { insert(.readable) }
        if mask & EPOLLOUT.rawValue != 0 { insert(.writable) }
        if mask & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { insert(.hangup) }
        if mask & EPOLLERR.rawValue != 0 { insert(.error) }
    }
}
