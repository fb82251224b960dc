import CReactor
package import Foundation
import Futures
import Glibc

/// The loop of tests: nothing happens but while the test drives it, on the test's own thread, and time passes only when
/// the test says so, at once.
///
/// Posts from other threads are welcome at any time; they run when the loop is driven next. Descriptors work too: they
/// are polled, without waiting, whenever the loop is driven.
///
/// Unchecked, because of `watches`, which only the driving thread touches while it drives.
package final class ManualLoop: EventLoop, WatchTableOwner, @unchecked Sendable {
    private typealias Work = @Sendable () -> Void

    private struct Shared {
        var now = Instant.origin
        var posts: [Work] = []
        var timers = TimerQueue<Work>()
        /// For when nothing else is left to do at the present instant.
        var restWork: [Work] = []
        var driver: pthread_t?
        var isWaiting = false
    }

    private let shared = Locked(Shared())
    private let start: Date
    private let wake: Int32
    private var watches = WatchTable()

    /// `date` is what the wall clock shows at the beginning; always the same by default, so that runs are alike.
    package init(date: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        start = date
        wake = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    }

    deinit {
        close(wake)
    }

    package var now: Instant { shared.withLock { $0.now } }
    package var date: Date { start.addingTimeInterval(now.seconds(since: .origin)) }

    /// True for the thread that drives the loop, while it does.
    package var isCurrent: Bool {
        shared.withLock { $0.driver }.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }

    package func post(_ work: @escaping @Sendable () -> Void) {
        let isWaiting = shared.withLock { shared in
            shared.posts.append(work)
            return shared.isWaiting
        }
        if isWaiting { eventfd_write(wake, 1) }
    }

    @discardableResult
    package func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID {
        shared.withLock { TimerID(rawValue: $0.timers.add(work, deadline: $0.now.advanced(by: seconds))) }
    }

    package func cancel(_ timer: TimerID) {
        let work = shared.withLock { $0.timers.cancel(timer.rawValue) }
        withExtendedLifetime(work) {}
    }

    package func watch(
        _ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void
    ) -> Watch {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        let watch = Watch(descriptor: descriptor, events: events, table: self, ready: ready)
        watches.add(watch)
        return watch
    }

    func watchesChanged(of descriptor: Int32) {
        _ = watches.interest(in: descriptor)
    }

    // MARK: Driving

    /// Runs everything that can run now: posts, due timers, ready descriptors, and what follows from them.
    package func run() {
        drive { runUntilIdle() }
    }

    /// Lets time pass: what falls due runs in the order of the deadlines, each with what follows from it.
    package func advance(by seconds: TimeInterval) {
        _ = advance(until: { false }, limit: seconds)
    }

    /// Lets time pass until the condition holds, but no more than `limit` seconds; gives whether it holds. The condition
    /// is looked at whenever everything that can run at one instant has run.
    @discardableResult
    package func advance(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        drive {
            let end = now.advanced(by: limit)
            runUntilIdle()
            while !condition() {
                let isEnd = !moveClock(to: end)
                runUntilIdle()
                if isEnd { return condition() }
            }
            return true
        }
    }

    /// Sets the clock to the next deadline. False if there is none up to `end`; then the clock is set to `end`.
    private func moveClock(to end: Instant) -> Bool {
        shared.withLock { shared in
            let next = shared.timers.nextDeadline ?? .distantFuture
            shared.now = max(shared.now, min(next, end))
            return next <= end
        }
    }

    /// Waits in real time, while the virtual clock stands, until the condition holds: for tests whose other side is
    /// another process. Gives whether it holds after at most `limit` real seconds.
    @discardableResult
    package func wait(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        drive {
            let end = monotonicNanoseconds() + UInt64(limit * 1e9)
            while true {
                runUntilIdle()
                if condition() { return true }
                let now = monotonicNanoseconds()
                guard now < end else { return false }
                // Awake at once for a descriptor or a post; now and then for a condition that is neither.
                _ = poll(milliseconds: Int32(min((end - now) / 1_000_000 + 1, 50)))
            }
        }
    }

    private func drive<R>(_ body: () -> R) -> R {
        shared.withLock { shared in
            precondition(
                shared.driver == nil,
                "The manual loop is being driven already: from inside its own work use post or schedule instead.")
            shared.driver = pthread_self()
        }
        defer { shared.withLock { $0.driver = nil } }
        return body()
    }

    private func runUntilIdle() {
        var rounds = 0
        while runOnePass() {
            rounds += 1
            precondition(
                rounds < 10_000_000,
                "The manual loop never comes to rest: some work posts itself again and again without time passing.")
        }
    }

    /// Posts first, then one timer, then the descriptors, then the work for when there is nothing else; false where there
    /// was nothing to do.
    private func runOnePass() -> Bool {
        let posts = shared.withLock { exchange(&$0.posts, with: []) }
        for work in posts { work() }
        if !posts.isEmpty { return true }
        if let work = shared.withLock({ $0.timers.popDue(at: $0.now) }) {
            work()
            return true
        }
        if poll(milliseconds: 0) { return true }
        let restWork = shared.withLock { exchange(&$0.restWork, with: []) }
        for work in restWork { work() }
        return !restWork.isEmpty
    }

    /// Polls the watched descriptors and tells the watches; false where none was ready.
    private func poll(milliseconds: Int32) -> Bool {
        let wanted = watches.descriptors.sorted().compactMap { descriptor in
            watches.interest(in: descriptor).flatMap { $0.isEmpty ? nil : pollfd(descriptor, $0) }
        }
        guard !wanted.isEmpty || milliseconds > 0 else { return false }
        var polled = wanted + [pollfd(wake, .readable)]
        let isIdle = shared.withLock { shared in
            shared.isWaiting = milliseconds > 0
            return shared.posts.isEmpty
        }
        let count = Glibc.poll(&polled, nfds_t(polled.count), isIdle ? milliseconds : 0)
        shared.withLock { $0.isWaiting = false }
        guard count > 0 else { return false }
        for entry in polled where entry.revents != 0 {
            guard entry.fd != wake else {
                var value: eventfd_t = 0
                eventfd_read(wake, &value)
                continue
            }
            for watch in watches.watches(of: entry.fd) { watch.tell(IOEvents(pollMask: entry.revents)) }
        }
        return true
    }
}

/// Driving from `async` code. Tasks on the loop run as any of its work does. Tasks elsewhere are given turns: the caller's
/// task goes to the end of its executor's queue, again and again, until nothing has come from them for `settlingTurns`. That
/// is no promise: Swift resumes them on its own threads, also if they belong to the caller's actor.
///
/// Called by a task on the loop, which somebody else drives, these functions wait for the time to pass.
extension ManualLoop {
    /// How many turns in a row bring nothing before the tasks elsewhere are taken to wait.
    private static let settlingTurns = 16

    /// Runs everything that can run now, tasks included.
    nonisolated(nonsending) package func run() async {
        if isCurrent { await rest(after: 0) } else { await settle() }
    }

    /// Lets time pass; what falls due runs in the order of the deadlines, each with what follows from it, in tasks too.
    nonisolated(nonsending) package func advance(by seconds: TimeInterval) async {
        if isCurrent { await rest(after: seconds) } else { _ = await advance(until: { false }, limit: seconds) }
    }

    /// Lets time pass until the condition holds, but no more than `limit` seconds; returns whether it holds.
    @discardableResult
    nonisolated(nonsending) package func advance(
        until condition: () -> Bool, limit: TimeInterval
    ) async -> Bool {
        let isTaskOfTheLoop = isCurrent
        let end = now.advanced(by: limit)
        await run()
        while !condition() {
            if isTaskOfTheLoop {
                guard now < end else { return false }
                let next = min(shared.withLock { $0.timers.nextDeadline } ?? end, end)
                await rest(after: next.seconds(since: now))
            } else {
                let isEnd = !moveClock(to: end)
                await settle()
                if isEnd { return condition() }
            }
        }
        return true
    }

    /// Waits, in a task on the loop, until that many seconds have passed and nothing else is left to do at that instant.
    nonisolated(nonsending) private func rest(after seconds: TimeInterval) async {
        await withCheckedContinuation { continuation in
            schedule(after: seconds) {
                self.shared.withLock { $0.restWork.append { continuation.resume() } }
            }
        }
    }

    /// Runs what can run now, and lets tasks elsewhere go on, until there is nothing more.
    nonisolated(nonsending) private func settle() async {
        repeat {
            drive { runUntilIdle() }
            var turns = 0
            while turns < Self.settlingTurns, !isDue {
                await Task.yield()
                turns += 1
            }
        } while isDue
    }

    /// Whether there is work for the present instant.
    private var isDue: Bool {
        shared.withLock { !$0.posts.isEmpty || ($0.timers.nextDeadline ?? .distantFuture) <= $0.now }
    }
}

/// Tasks on the loop itself: what they do between two waits takes no time, and the clock stands until they wait.
extension ManualLoop: TaskExecutor {
    package var taskExecutor: (any TaskExecutor)? { self }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        post { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private func pollfd(_ descriptor: Int32, _ events: IOEvents) -> pollfd {
    let mask = (events.contains(.readable) ? POLLIN : 0) | (events.contains(.writable) ? POLLOUT : 0)
    return Glibc.pollfd(fd: descriptor, events: Int16(mask), revents: 0)
}

extension IOEvents {
    init(pollMask mask: Int16) {
        self = []
        let mask = Int32(mask)
        if mask & Int32(POLLIN) != 0 { insert(.readable) }
        if mask & Int32(POLLOUT) != 0 { insert(.writable) }
        if mask & Int32(POLLHUP) != 0 { insert(.hangup) }
        if mask & Int32(POLLERR | POLLNVAL) != 0 { insert(.error) }
    }
}
