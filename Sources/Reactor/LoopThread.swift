import CReactor
import Foundation
import Futures
import Glibc
import Synchronization

/// The thread behind a `ThreadLoop`, which keeps this object and not the loop alive, so that a loop nobody holds ends.
///
/// It sleeps on a semaphore until the first descriptor is watched, and in epoll from then on: a process that has used up its
/// descriptors still has its timers and its posted work.
///
/// Unchecked, because of what only the thread itself touches: `watches`, `registered` and `poller`.
final class LoopThread: WatchTableOwner, @unchecked Sendable {
    typealias Work = @Sendable () -> Void
    /// As `pthread_create`, without attributes.
    typealias ThreadMaker =
        @Sendable (
            @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?, UnsafeMutableRawPointer
        ) -> Int32

    private struct Shared {
        var posts: [Work] = []
        var timers = TimerQueue<Work>()
        /// Whether the thread will look at `posts` and `timers` before it sleeps, so that nobody need wake it.
        var isAwake = true
        var isStopped = false
        /// Whether there is a thread, or one is being made.
        var isStarted = false
        /// What the thread sleeps in; `nil` for the semaphore.
        var poller: Poller?
    }

    private let shared = Locked(Shared())
    private let name: String
    private let makeThread: ThreadMaker
    private let origin = monotonicNanoseconds()
    private let sleeper = DispatchSemaphore(value: 0)
    /// The thread, once it runs; 0 before.
    private let thread = Atomic<UInt>(0)
    private var watches = WatchTable()
    private var poller: Poller?
    /// What epoll knows of each descriptor; no entry where it knows nothing.
    private var registered: [Int32: IOEvents] = [:]

    init(name: String, makeThread: @escaping ThreadMaker) {
        self.name = name
        self.makeThread = makeThread
    }

    // MARK: Any thread

    var now: Instant { Instant(nanoseconds: monotonicNanoseconds() - origin) }
    var isCurrent: Bool { pthread_self() == thread.load(ordering: .relaxed) }

    /// Makes the thread where there is none yet; gives why there can be none now.
    func start() -> LoopShortage? {
        guard thread.load(ordering: .relaxed) == 0 else { return nil }
        let mustMake = shared.withLock { shared in
            guard !shared.isStarted, !shared.isStopped else { return false }
            shared.isStarted = true
            return true
        }
        guard mustMake else { return nil }
        let this = Unmanaged.passRetained(self)
        let code = makeThread(runLoopThread, this.toOpaque())
        guard code != 0 else { return nil }
        shared.withLock { $0.isStarted = false }
        this.release()
        return .thread(code)
    }

    func stop() {
        let dropped = signal { shared -> Shared? in
            shared.isStopped = true
            guard !shared.isStarted else { return nil }
            // There never was a thread to run them.
            defer { (shared.posts, shared.timers) = ([], TimerQueue()) }
            return shared
        }
        withExtendedLifetime(dropped) {}
    }

    func post(_ work: @escaping Work) {
        signal { shared in if !shared.isStopped { shared.posts.append(work) } }
        _ = start()
    }

    func schedule(after seconds: TimeInterval, _ work: @escaping Work) -> TimerID {
        let deadline = now.advanced(by: seconds)
        let (number, isFirst) = shared.withLock { shared in
            let next = shared.timers.nextDeadline
            return (shared.timers.add(work, deadline: deadline), next.map { deadline < $0 } ?? true)
        }
        if isFirst { signal { _ in } }
        _ = start()
        return TimerID(rawValue: number)
    }

    func cancel(_ timer: TimerID) {
        // What the work holds is released after the lock.
        let work = shared.withLock { $0.timers.cancel(timer.rawValue) }
        withExtendedLifetime(work) {}
    }

    /// Changes the shared state, and wakes the thread where it sleeps.
    @discardableResult
    private func signal<R>(_ change: (inout Shared) -> R) -> R {
        let (result, mustWake, poller) = shared.withLock { shared in
            let result = change(&shared)
            defer { shared.isAwake = true }
            return (result, !shared.isAwake, shared.poller)
        }
        if mustWake { if let poller { poller.wake() } else { sleeper.signal() } }
        return result
    }

    // MARK: The thread itself

    func watch(_ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void) -> Watch {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        let watch = Watch(descriptor: descriptor, events: events, table: self, ready: ready)
        watches.add(watch)
        watchesChanged(of: descriptor)
        return watch
    }

    func prepareToWatch() -> LoopShortage? {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        if case .failure(let shortage) = usablePoller() { return shortage }
        return nil
    }

    /// What waits for descriptors: made when the first is to be waited for.
    private func usablePoller() -> Result<Poller, LoopShortage> {
        if let poller { return .success(poller) }
        let made = Result { () throws(LoopShortage) in try Poller.make() }
        if case .success(let poller) = made {
            self.poller = poller
            // While this thread is awake nobody looks at it.
            shared.withLock { $0.poller = poller }
        }
        return made
    }

    func watchesChanged(of descriptor: Int32) {
        let wanted = watches.interest(in: descriptor) ?? []
        let known = registered[descriptor]
        guard wanted != known ?? [] else { return }
        guard !wanted.isEmpty else {
            poller?.forget(descriptor)
            registered[descriptor] = nil
            return
        }
        guard case .success(let poller) = usablePoller(),
            poller.register(descriptor, for: wanted, isKnown: known != nil)
        else {
            // Closed, or of a kind that cannot be waited for, or nothing is left to wait with: the watches are told, from
            // the loop.
            registered[descriptor] = nil
            return post { self.tell(descriptor, .error) }
        }
        registered[descriptor] = wanted
    }

    private func tell(_ descriptor: Int32, _ events: IOEvents) {
        for watch in watches.watches(of: descriptor) { watch.tell(events) }
    }

    fileprivate func run() {
        thread.store(pthread_self(), ordering: .relaxed)
        creactor_name_thread(name)
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while runPosts() {
            runDueTimers()
            let milliseconds = millisecondsToSleep()
            guard let poller else {
                let deadline = milliseconds < 0 ? DispatchTime.distantFuture : .now() + .milliseconds(Int(milliseconds))
                _ = sleeper.wait(timeout: deadline)
                shared.withLock { $0.isAwake = true }
                continue
            }
            let count = poller.wait(&events, milliseconds: milliseconds)
            shared.withLock { $0.isAwake = true }
            for event in events[..<count] {
                let descriptor = event.data.fd
                if descriptor == poller.wakeDescriptor {
                    poller.drainWake()
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
    loop.run()
    return nil
}

/// Makes a thread that nobody waits for; gives the error's number where there can be none.
@Sendable func makeDetachedThread(
    _ run: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer
) -> Int32 {
    var thread = pthread_t()
    let code = pthread_create(&thread, nil, run, argument)
    if code == 0 { pthread_detach(thread) }
    return code
}

/// What a loop waits for descriptors with: two descriptors of its own, closed with it.
private final class Poller: Sendable {
    private let epoll: Int32
    /// Readable when the loop is to wake up for something else.
    let wakeDescriptor: Int32

    private init(epoll: Int32, wakeDescriptor: Int32) {
        (self.epoll, self.wakeDescriptor) = (epoll, wakeDescriptor)
    }

    deinit {
        close(epoll)
        close(wakeDescriptor)
    }

    static func make() throws(LoopShortage) -> Poller {
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .descriptors(errno) }
        let wake = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard wake >= 0 else {
            let code = errno
            close(epoll)
            throw .descriptors(code)
        }
        let poller = Poller(epoll: epoll, wakeDescriptor: wake)
        guard poller.register(wake, for: .readable, isKnown: false) else { throw .descriptors(errno) }
        return poller
    }

    func wake() { eventfd_write(wakeDescriptor, 1) }

    func drainWake() {
        var value: eventfd_t = 0
        eventfd_read(wakeDescriptor, &value)
    }

    /// Whether the descriptor can be waited for.
    func register(_ descriptor: Int32, for events: IOEvents, isKnown: Bool) -> Bool {
        var event = epoll_event()
        event.events = events.epollMask
        event.data.fd = descriptor
        return epoll_ctl(epoll, isKnown ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0
    }

    /// Fails where the descriptor was closed before, and epoll has forgotten it by itself.
    func forget(_ descriptor: Int32) { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }

    /// How many events there were; none where the time is up, or a signal came.
    func wait(_ events: inout [epoll_event], milliseconds: Int32) -> Int {
        Int(max(0, epoll_wait(epoll, &events, Int32(events.count), milliseconds)))
    }
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
