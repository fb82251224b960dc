import CBlueCapReactor
package import Foundation
import BlueCapFutures
import Glibc
import Synchronization

/// The loop of real programs: one thread that sleeps in epoll until a descriptor, a timer or posted work needs it.
///
/// The thread ends when the loop is stopped or released. Work that was posted before still runs; timers and watches do
/// not. If the thread cannot be created, the loop keeps its work and tries again at each post.
package final class ThreadLoop: EventLoop {
    private let core: LoopThread

    /// The thread is created when there is something to do. Debuggers and `top -H` show `name`, of which the kernel keeps
    /// fifteen bytes.
    package convenience init(name: String) { self.init(name: name, makeThread: makeDetachedThread) }

    init(name: String, makeThread: @escaping LoopThread.ThreadMaker) {
        core = LoopThread(name: name, makeThread: makeThread)
    }

    deinit {
        stop()
    }

    /// Ends the thread after its current work. Any thread; a second call does nothing.
    package func stop() {
        let dropped = core.signal { shared -> PendingWork? in
            shared.isStopped = true
            // Without a thread nothing will run the work.
            return shared.isStarted ? nil : exchange(&shared.work, with: PendingWork())
        }
        withExtendedLifetime(dropped) {}
    }

    package func start() -> LoopShortage? { core.start() }
    package func prepareToWatch() -> LoopShortage? { core.prepareToWatch() }
    package var now: Instant { core.now }
    package var date: Date { Date() }
    package var isCurrent: Bool { core.isCurrent }
    package func post(_ work: @escaping @Sendable () -> Void) { core.post(work) }
    package func performIfIdle(_ work: () -> Void) -> Bool { core.performIfIdle(work) }
    package func restBeforeWait() { core.rests = true }

    @discardableResult
    package func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID {
        let deadline = now.advanced(by: seconds)
        let (timer, isFirst) = core.shared.withLock { shared in
            let next = shared.work.nextDeadline
            return (shared.work.schedule(work, at: deadline), deadline < next)
        }
        if isFirst { core.signal { _ in } }
        _ = start()
        return timer
    }

    package func cancel(_ timer: TimerID) {
        // The captured values are released after the lock.
        let work = core.shared.withLock { $0.work.cancel(timer) }
        withExtendedLifetime(work) {}
    }

    package func watch(
        _ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void
    ) -> Watch {
        core.makeWatch(descriptor, for: events, ready)
    }
}

/// The thread behind a `ThreadLoop`. The thread retains this object and not the loop, so that a loop without references
/// ends.
///
/// It sleeps on a semaphore until the first descriptor is watched, and in epoll from then on: a process without free
/// descriptors still has its timers and its posted work.
///
/// A thread needs the turn to run the loop's work. The loop's own thread has it except while it sleeps; then another thread can
/// take it for a moment (`performIfIdle`), and is the loop's current thread until it returns it.
///
/// If the loop's work often adds tasks to the default context, or resumes tasks of a `ResumingThreadExecutor`, the loop gets a second
/// thread, which is like the first. From then on the thread that has done so runs them itself, without the turn, so that no other
/// need be woken for them. They may take any time: the other thread goes on with the loop, and stays with it until they end.
///
/// Unchecked, because only the holder of the turn uses `watches` and what is declared beside it. For the same reason the runtime
/// need not check the accesses.
final class LoopThread: WatchingLoop, @unchecked Sendable {
    /// As `pthread_create`, without attributes.
    typealias ThreadMaker =
        @Sendable (
            @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?, UnsafeMutableRawPointer
        ) -> Int32

    struct Shared {
        var work = PendingWork()
        /// Whether the thread will look at `work` before it sleeps, so that it need not be woken.
        var isAwake = true
        var isStopped = false
        /// Whether the thread exists or is being created.
        var isStarted = false
        /// What the thread sleeps in; `nil` for the semaphore.
        fileprivate var poller: Poller?
    }

    let shared = Locked(Shared())
    private let name: String
    private let makeThread: ThreadMaker
    private let origin = monotonicNanoseconds()
    private let sleeper = DispatchSemaphore(value: 0)
    /// Whether the thread has begun to run.
    private let isRunning = Atomic(false)
    private let turn = Turn()
    /// The thread that holds the turn; 0 if none does. Each thread compares it with itself only, which needs no ordering.
    private let thread = Atomic<UInt>(0)
    @exclusivity(unchecked) var watches = DescriptorTable<[Watch]>()
    @exclusivity(unchecked) var watchCount: UInt64 = 0
    @exclusivity(unchecked) private var poller: Poller?
    /// Whether the next wait begins with a rest.
    @exclusivity(unchecked) fileprivate(set) var rests = false
    /// The events for which each descriptor is registered in epoll.
    @exclusivity(unchecked) private var registered = DescriptorTable<IOEvents>()
    @exclusivity(unchecked) private var hasTwoThreads = false
    /// Whether one of two threads runs code of an application.
    @exclusivity(unchecked) private var isOneAway = false
    /// How often the loop had tasks when it had no other work; falls with each round without them.
    @exclusivity(unchecked) private var taskRounds = 0
    /// Until when each of two threads sleeps at most.
    @exclusivity(unchecked) private var bedtimes = [Instant.origin, .origin]
    /// The descriptors of which epoll reports nothing more until they are registered again, since it has woken a thread for them.
    @exclusivity(unchecked) private var reported: [Int32] = []

    init(name: String, makeThread: @escaping ThreadMaker) {
        self.name = name
        self.makeThread = makeThread
    }

    // MARK: Any thread

    var now: Instant { Instant(nanoseconds: monotonicNanoseconds() - origin) }
    var isCurrent: Bool { pthread_self() == thread.load(ordering: .relaxed) }

    /// Creates the thread if there is none yet; returns why it cannot be created now.
    func start() -> LoopShortage? {
        guard !isRunning.load(ordering: .relaxed) else { return nil }
        let mustMake = shared.withLock { shared in
            guard !shared.isStarted, !shared.isStopped else { return false }
            shared.isStarted = true
            return true
        }
        guard mustMake else { return nil }
        let code = addThread()
        guard code != 0 else { return nil }
        shared.withLock { $0.isStarted = false }
        return .thread(code)
    }

    /// Creates a thread that runs this loop; returns 0 or the error number.
    private func addThread() -> Int32 {
        let this = Unmanaged.passRetained(self)
        let code = makeThread(runLoopThread, this.toOpaque())
        if code != 0 { this.release() }
        return code
    }

    func post(_ work: @escaping @Sendable () -> Void) {
        signal { shared in if !shared.isStopped { shared.work.post(work) } }
        _ = start()
    }

    /// See `EventLoop.performIfIdle`.
    func performIfIdle(_ work: () -> Void) -> Bool {
        guard turn.tryTake() else { return false }
        defer { endTurn() }
        // Asleep, it has run all that was posted before and is not about to run anything; in epoll, so that it notices a new watch.
        guard shared.withLock({ !$0.isAwake && !$0.isStopped && $0.poller != nil }) else { return false }
        thread.store(pthread_self(), ordering: .relaxed)
        work()
        return true
    }

    /// Changes the shared state and wakes the thread if it sleeps.
    @discardableResult
    func signal<R>(_ change: (inout Shared) -> R) -> R {
        let (result, mustWake, poller) = shared.withLock { shared in
            let result = change(&shared)
            defer { shared.isAwake = true }
            return (result, !shared.isAwake, shared.poller)
        }
        if mustWake { if let poller { poller.wake() } else { sleeper.signal() } }
        return result
    }

    // MARK: The thread itself

    func prepareToWatch() -> LoopShortage? {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        if case .failure(let shortage) = usablePoller() { return shortage }
        return nil
    }

    /// The poller, created for the first descriptor that is watched.
    private func usablePoller() -> Result<Poller, LoopShortage> {
        if let poller { return .success(poller) }
        let made = Result { () throws(LoopShortage) in try Poller() }
        if case .success(let poller) = made {
            self.poller = poller
            // No other thread reads it while this one is awake.
            shared.withLock { $0.poller = poller }
        }
        return made
    }

    func watchesChanged(of descriptor: Int32) {
        let wanted = interest(in: descriptor)
        let known = registered[descriptor]
        guard wanted != known ?? [] else { return }
        guard !wanted.isEmpty else {
            poller?.forget(descriptor)
            registered[descriptor] = nil
            return
        }
        guard case .success(let poller) = usablePoller(),
            poller.register(descriptor, for: wanted, isKnown: known != nil, once: hasTwoThreads)
        else {
            // The descriptor is closed or of a kind that epoll refuses, or epoll itself is not available.
            registered[descriptor] = nil
            let watchCount = watchCount
            return post { self.deliver(.error, of: descriptor, toFirst: watchCount) }
        }
        registered[descriptor] = wanted
    }

    fileprivate func run() {
        isRunning.store(true, ordering: .relaxed)
        takeTurn()
        // The second thread gets the turn for the first time from the one that has created it.
        let index = hasTwoThreads ? 1 : 0
        creactor_name_thread(name)
        let handlers = TaskThread()
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while runPosts() {
            let now = runDueTimers()
            let deadline = deadlineOfSleep()
            let milliseconds = milliseconds(from: now, until: deadline)
            guard let poller else {
                handlers.passTasksOn()
                let deadline = milliseconds < 0 ? DispatchTime.distantFuture : .now() + .milliseconds(Int(milliseconds))
                _ = withoutTurn { sleeper.wait(timeout: deadline) }
                continue
            }
            // No rest if work is due: only work that is posted while this thread sleeps ends a rest.
            if exchange(&rests, with: false), milliseconds != 0 {
                handlers.passTasksOn()
                withoutTurn { poller.rest() }
                deliverReported()
                continue
            }
            noteRound(hasTasks: handlers.hasTasks)
            reportAgain()
            if handlers.hasTasks, hasTwoThreads, !isOneAway {
                // The other thread goes on with the loop.
                if deadline < bedtimes[1 - index] { poller.wake() }
                isOneAway = true
                withoutTurn { handlers.runTasks() }
                isOneAway = false
                continue
            }
            handlers.passTasksOn()
            if hasTwoThreads { bedtimes[index] = deadline }
            let watchCount = watchCount
            let count = withoutTurn { poller.wait(&events, milliseconds: milliseconds) }
            for event in events[..<count] {
                let descriptor = event.data.fd
                if descriptor == poller.wakeDescriptor {
                    poller.drainWake()
                } else {
                    if hasTwoThreads { reported.append(descriptor) }
                    deliver(IOEvents(pollFlags: event.events), of: descriptor, toFirst: watchCount)
                }
            }
        }
        // The other thread, too, ends with the loop.
        if hasTwoThreads { poller?.wake() }
        endTurn()
    }

    /// Creates the second thread once it saves wake-ups: when tasks have waited in two rounds, one soon after the other.
    private func noteRound(hasTasks: Bool) {
        guard !hasTwoThreads else { return }
        taskRounds = max(0, taskRounds + (hasTasks ? 2 : -1))
        guard taskRounds >= 4 else { return }
        taskRounds = 0
        guard addThread() == 0 else { return }
        hasTwoThreads = true
        // From now on each descriptor is reported once.
        reported = registered.descriptors
    }

    /// Has epoll report again the descriptors for which it has woken this thread.
    private func reportAgain() {
        guard !reported.isEmpty else { return }
        for descriptor in reported {
            if let events = registered[descriptor] {
                poller?.register(descriptor, for: events, isKnown: true, once: true)
            }
        }
        reported.removeAll(keepingCapacity: true)
    }

    /// Delivers what has happened to the descriptors for which epoll has woken this thread, without having epoll report them
    /// again, which would wake the other thread if anything has.
    private func deliverReported() {
        guard !reported.isEmpty else { return }
        var polled = reported.map { pollfd(fd: $0, events: Int16((registered[$0] ?? []).pollFlags), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), 0) > 0 else { return }
        let watchCount = watchCount
        for found in polled where found.revents != 0 {
            deliver(IOEvents(pollFlags: UInt32(UInt16(bitPattern: found.revents))), of: found.fd, toFirst: watchCount)
        }
    }

    /// Waits, or runs code of an application, without the turn.
    private func withoutTurn<R>(_ wait: () -> R) -> R {
        endTurn()
        let result = wait()
        takeTurn()
        shared.withLock { $0.isAwake = true }
        return result
    }

    private func takeTurn() {
        turn.take()
        thread.store(pthread_self(), ordering: .relaxed)
    }

    private func endTurn() {
        thread.store(0, ordering: .relaxed)
        turn.yield()
    }

    /// Runs the posted work, and what that posts, without a look at the descriptors in between. False if the loop was stopped.
    private func runPosts() -> Bool {
        // Limited, so that work which posts itself again and again does not keep descriptors and timers waiting.
        for _ in 0..<4 {
            let (posts, isStopped) = shared.withLock { ($0.work.takePosts(), $0.isStopped) }
            for work in posts { work.run() }
            if isStopped { return false }
            if posts.isEmpty { break }
        }
        return true
    }

    /// Runs the timers that are due; one that another one schedules runs after the descriptors. Returns the present time.
    private func runDueTimers() -> Instant {
        let before = now
        var hasRun = false
        while let work = shared.withLock({ $0.work.popDue(at: before) }) {
            hasRun = true
            work.run()
        }
        return hasRun ? now : before
    }

    /// When the loop has to do something, if nothing happens before; from now on, others must wake a thread for what they post.
    private func deadlineOfSleep() -> Instant {
        shared.withLock { shared in
            guard !shared.work.hasPosts, !shared.isStopped else { return .origin }
            shared.isAwake = false
            return shared.work.nextDeadline
        }
    }

    private func milliseconds(from now: Instant, until deadline: Instant) -> Int32 {
        guard deadline != .distantFuture else { return -1 }
        guard deadline > now else { return 0 }
        // Rounded up: a timer may be late, never early.
        return Int32(min((deadline.nanoseconds - now.nanoseconds + 999_999) / 1_000_000, 60_000))
    }
}

/// The right to run a loop's work. Unlike `Locked`, its holder keeps it from one function to another.
private final class Turn: Sendable {
    // Unsafe to the compiler only: the address never changes, and the mutex is made for several threads.
    nonisolated(unsafe) private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    func take() { pthread_mutex_lock(mutex) }
    func tryTake() -> Bool { pthread_mutex_trylock(mutex) == 0 }
    func yield() { pthread_mutex_unlock(mutex) }
}

private func runLoopThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let loop = Unmanaged<LoopThread>.fromOpaque(argument).takeRetainedValue()
    loop.run()
    return nil
}

/// Creates a detached thread; returns 0 or the error number.
@Sendable func makeDetachedThread(
    _ run: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer
) -> Int32 {
    var thread = pthread_t()
    let code = pthread_create(&thread, nil, run, argument)
    if code == 0 { pthread_detach(thread) }
    return code
}

/// The epoll of a loop and the event descriptor that wakes it, closed with this object.
private final class Poller: Sendable {
    private let epoll: Int32
    /// Readable if the loop must wake up for something other than a descriptor.
    let wakeDescriptor: Int32

    init() throws(LoopShortage) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeDescriptor = epoll < 0 ? -1 : eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        // Each wake-up is reported once, to one thread.
        guard wakeDescriptor >= 0, register(wakeDescriptor, for: EPOLLIN.rawValue | EPOLLET.rawValue, isKnown: false)
        else { throw .descriptors(errno) }
    }

    deinit {
        if wakeDescriptor >= 0 { close(wakeDescriptor) }
        if epoll >= 0 { close(epoll) }
    }

    func wake() { eventfd_write(wakeDescriptor, 1) }

    func drainWake() {
        var value: eventfd_t = 0
        eventfd_read(wakeDescriptor, &value)
    }

    /// Returns whether epoll accepts the descriptor.
    ///
    /// - Parameter once: Whether the descriptor is reported once only, until it is registered again. Else epoll would wake all
    ///   threads for it, until one of them has read what there is.
    @discardableResult
    func register(_ descriptor: Int32, for events: IOEvents, isKnown: Bool, once: Bool) -> Bool {
        register(descriptor, for: events.pollFlags | (once ? EPOLLONESHOT.rawValue : 0), isKnown: isKnown)
    }

    private func register(_ descriptor: Int32, for flags: UInt32, isKnown: Bool) -> Bool {
        var event = epoll_event()
        event.events = flags
        event.data.fd = descriptor
        return epoll_ctl(epoll, isKnown ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0
    }

    /// Has no effect on a descriptor that is closed already, which epoll has removed.
    func forget(_ descriptor: Int32) { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }

    /// Waits for 50 to 100 µs, the kernel's precision, or until the loop must wake up for something other than a descriptor.
    func rest() { creactor_rest(wakeDescriptor, 50_000) }

    /// Returns the number of events; 0 after the time-out or a signal.
    func wait(_ events: inout [epoll_event], milliseconds: Int32) -> Int {
        Int(max(0, epoll_wait(epoll, &events, Int32(events.count), milliseconds)))
    }
}

func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
