import CBlueCapReactor
package import Foundation
import BlueCapFutures
import Glibc

/// The loop of tests: everything runs on the test's own thread while the test drives the loop, and time advances only when
/// the test advances it, without waiting.
///
/// Other threads may post at any time; the work runs when the loop is driven next. Where the loop knows that another thread works
/// for it (`beginWorkElsewhere`), it waits for that in real time before it lets virtual time pass. Watched descriptors are polled, without
/// waiting, whenever the loop is driven.
///
/// Unchecked, because of `watches`, which only the driving thread uses while it drives.
package final class ManualLoop: EventLoop, WatchingLoop, @unchecked Sendable {
    private struct Shared {
        var now = Instant.origin
        var work = PendingWork()
        /// Continuations to resume when nothing else is left to do at the current instant.
        var resting: [CheckedContinuation<Void, Never>] = []
        var driver: pthread_t?
        /// What ends the wait of the driving thread; it exists only while that waits, so that a loop owns no descriptor.
        var wake: Int32?
        /// How many works for this loop other threads have begun and not ended.
        var worksElsewhere = 0
    }

    private let shared = Locked(Shared())
    private let start: Date
    var watches = DescriptorTable<[Watch]>()
    var watchCount: UInt64 = 0

    /// - Parameter date: The initial date of the wall clock, constant by default so that runs are alike.
    package init(date: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        start = date
    }

    package var now: Instant { shared.withLock { $0.now } }
    package var date: Date { start.addingTimeInterval(now.seconds(since: .origin)) }

    /// Whether the calling thread drives the loop at this moment.
    package var isCurrent: Bool {
        shared.withLock { $0.driver }.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }

    package func post(_ work: @escaping @Sendable () -> Void) {
        shared.withLock { shared in
            shared.work.post(work)
            if let wake = shared.wake { eventfd_write(wake, 1) }
        }
    }

    package func beginWorkElsewhere() { shared.withLock { $0.worksElsewhere += 1 } }

    package func endWorkElsewhere() {
        shared.withLock { shared in
            precondition(shared.worksElsewhere > 0, "Call beginWorkElsewhere before endWorkElsewhere.")
            shared.worksElsewhere -= 1
            if let wake = shared.wake { eventfd_write(wake, 1) }
        }
    }

    @discardableResult
    package func schedule(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> TimerID {
        shared.withLock { $0.work.schedule(work, at: $0.now.advanced(by: seconds)) }
    }

    package func cancel(_ timer: TimerID) {
        // The captured values are released after the lock.
        let work = shared.withLock { $0.work.cancel(timer) }
        withExtendedLifetime(work) {}
    }

    package func watch(
        _ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void
    ) -> Watch {
        makeWatch(descriptor, for: events, ready)
    }

    func watchesChanged(of descriptor: Int32) {
        _ = interest(in: descriptor)
    }

    // MARK: Driving

    /// Runs everything that can run now: posts, due timers, ready descriptors, what other threads do for this loop, and what
    /// follows from them.
    package func run() {
        drive { runUntilStill() }
    }

    /// Advances the time: timers run in the order of their deadlines, each with everything that follows from it.
    package func advance(by seconds: TimeInterval) {
        _ = advance(until: { false }, limit: seconds)
    }

    /// Advances the time until the condition holds, by at most `limit` seconds; returns whether it holds. The condition is
    /// evaluated whenever everything that can run at one instant has run.
    @discardableResult
    package func advance(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        drive {
            let end = now.advanced(by: limit)
            runUntilStill()
            while !condition() {
                let isEnd = !moveClock(to: end)
                runUntilStill()
                if isEnd { return condition() }
            }
            return true
        }
    }

    /// Sets the clock to the next deadline. False if there is none up to `end`; then the clock is set to `end`.
    private func moveClock(to end: Instant) -> Bool {
        shared.withLock { shared in
            let next = shared.work.nextDeadline
            shared.now = max(shared.now, min(next, end))
            return next <= end
        }
    }

    /// Waits in real time, without advancing the virtual clock, until the condition holds: for tests with another process.
    /// Returns whether it holds after at most `limit` real seconds.
    @discardableResult
    package func wait(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        drive {
            let end = monotonicNanoseconds() + UInt64(limit * 1e9)
            while true {
                runUntilIdle()
                if condition() { return true }
                let now = monotonicNanoseconds()
                guard now < end else { return false }
                // A descriptor or a post ends the wait at once; any other condition is evaluated every 50 ms.
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

    /// Runs what can run now until there is nothing more and no other thread works for this loop.
    private func runUntilStill() {
        runUntilIdle()
        // What the work has posted before its end may have come after the last look at the posts.
        while shared.withLock({ $0.worksElsewhere > 0 }) || isDue {
            _ = poll(milliseconds: 50, whileOthersWork: true)
            runUntilIdle()
        }
    }

    /// Runs the posts, or else one timer, or else the handlers of ready descriptors, or else what rests; false if there was
    /// nothing to do.
    private func runOnePass() -> Bool {
        let posts = shared.withLock { $0.work.takePosts() }
        for work in posts { work.run() }
        if !posts.isEmpty { return true }
        if let work = shared.withLock({ $0.work.popDue(at: $0.now) }) {
            work.run()
            return true
        }
        if poll(milliseconds: 0) { return true }
        let resting = shared.withLock { exchange(&$0.resting, with: []) }
        for continuation in resting { continuation.resume() }
        return !resting.isEmpty
    }

    /// Polls the watched descriptors and calls the handlers of those that are ready; false if there was none.
    ///
    /// - Parameter whileOthersWork: Whether it returns at once if no other thread works for this loop.
    private func poll(milliseconds: Int32, whileOthersWork: Bool = false) -> Bool {
        let wanted = watches.descriptors.map { pollfd($0, interest(in: $0)) }.filter { $0.events != 0 }
        guard !wanted.isEmpty || milliseconds > 0 else { return false }
        var polled = wanted
        let isIdle = shared.withLock { shared in
            let isIdle = milliseconds > 0 && !shared.work.hasPosts && (!whileOthersWork || shared.worksElsewhere > 0)
            if isIdle { shared.wake = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK)) }
            if let wake = shared.wake { polled.append(pollfd(wake, .readable)) }
            return isIdle
        }
        let watchCount = watchCount
        let count = Glibc.poll(&polled, nfds_t(polled.count), isIdle ? milliseconds : 0)
        let wake = shared.withLock { exchange(&$0.wake, with: nil) }
        if let wake { close(wake) }
        guard count > 0 else { return false }
        for entry in polled where entry.revents != 0 && entry.fd != wake {
            let events = IOEvents(pollFlags: UInt32(UInt16(bitPattern: entry.revents)))
            deliver(events, of: entry.fd, toFirst: watchCount)
        }
        return true
    }
}

/// Driving from `async` code. Tasks on the loop run as any of its work does. To let tasks elsewhere run, the caller's task
/// yields until they have posted nothing for `settlingTurns` times. That is no guarantee: Swift resumes them on its own
/// threads, even if they belong to the caller's actor.
///
/// If a task on the loop calls these functions, they wait until another caller has driven the loop to that time.
extension ManualLoop {
    /// The number of yields without a post after which the tasks elsewhere are considered to be waiting.
    private static let settlingTurns = 16

    /// Runs everything that can run now, tasks included.
    nonisolated(nonsending) package func run() async {
        if isCurrent { await rest(after: 0) } else { await settle() }
    }

    /// Advances the time: timers run in the order of their deadlines, each with everything that follows, tasks included.
    nonisolated(nonsending) package func advance(by seconds: TimeInterval) async {
        if isCurrent { await rest(after: seconds) } else { _ = await advance(until: { false }, limit: seconds) }
    }

    /// Advances the time until the condition holds, by at most `limit` seconds; returns whether it holds.
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
                let next = min(shared.withLock { $0.work.nextDeadline }, end)
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
            schedule(after: seconds) { self.shared.withLock { $0.resting.append(continuation) } }
        }
    }

    /// Runs what can run now, and yields to tasks elsewhere, until there is nothing more.
    nonisolated(nonsending) private func settle() async {
        repeat {
            drive { runUntilStill() }
            var turns = 0
            while turns < Self.settlingTurns, !isDue {
                await Task.yield()
                turns += 1
            }
        } while isDue
    }

    /// Whether there is work for the current instant.
    private var isDue: Bool {
        shared.withLock { $0.work.hasPosts || $0.work.nextDeadline <= $0.now }
    }
}

/// Tasks on the loop itself: what they do between two waits takes no time on the loop's clock.
extension ManualLoop: TaskExecutor {
    package var taskExecutor: (any TaskExecutor)? { self }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        post { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private func pollfd(_ descriptor: Int32, _ events: IOEvents) -> pollfd {
    Glibc.pollfd(fd: descriptor, events: Int16(events.pollFlags), revents: 0)
}
