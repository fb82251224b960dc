import BlueCapFutures
import BlueCapReactor
import XCTest

final class ThreadLoopTests: XCTestCase {
    private let limit = 10.0

    private func expectation(_ name: String = #function) -> (XCTestExpectation, @Sendable () -> Void) {
        let expectation = expectation(description: name)
        return (expectation, { expectation.fulfill() })
    }

    func testPostsOfOneThreadRunInTheirOrder() {
        let loop = ThreadLoop(name: "test")
        let seen = Locked<[Int]>([])
        for value in 0..<10_000 { loop.post { seen.withLock { $0.append(value) } } }

        XCTAssertEqual(loop.wait { seen.withLock { $0 } }, Array(0..<10_000))
    }

    func testPostsOfManyThreadsAllRunEachInItsOrder() {
        let loop = ThreadLoop(name: "test")
        let seen = Locked<[[Int]]>(Array(repeating: [], count: 8))
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for value in 0..<2_000 { loop.post { seen.withLock { $0[thread].append(value) } } }
        }

        let result = loop.wait { seen.withLock { $0 } }
        for thread in 0..<8 { XCTAssertEqual(result[thread], Array(0..<2_000)) }
    }

    func testTheLoopIsCurrentOnItsThreadOnly() {
        let loop = ThreadLoop(name: "test")
        XCTAssertFalse(loop.isCurrent)
        XCTAssertTrue(loop.wait { loop.isCurrent })
    }

    func testPerformRunsAtOnceOnTheLoop() {
        let loop = ThreadLoop(name: "test")
        let order = loop.wait {
            let seen = Locked<[String]>([])
            loop.perform { seen.withLock { $0.append("inner") } }
            seen.withLock { $0.append("outer") }
            return seen.withLock { $0 }
        }
        XCTAssertEqual(order, ["inner", "outer"])
    }

    func testTimersFireNeitherEarlyNorOutOfOrder() {
        let loop = ThreadLoop(name: "test")
        let start = loop.now
        let fired = Locked<[(Double, Double)]>([])
        let (done, fulfill) = expectation()
        for span in [0.05, 0.01, 0.03, 0.0] {
            loop.schedule(after: span) {
                let count = fired.withLock { fired in
                    fired.append((span, loop.now.seconds(since: start)))
                    return fired.count
                }
                if count == 4 { fulfill() }
            }
        }
        wait(for: [done], timeout: limit)
        let result = fired.withLock { $0 }
        XCTAssertEqual(result.map(\.0), [0.0, 0.01, 0.03, 0.05])
        for (span, elapsed) in result { XCTAssertGreaterThanOrEqual(elapsed, span) }
    }

    func testATimerCancelledOnTheLoopDoesNotFire() {
        let loop = ThreadLoop(name: "test")
        let fired = Locked(false)
        let (done, fulfill) = expectation()
        loop.post {
            let timer = loop.schedule(after: 0) { fired.withLock { $0 = true } }
            loop.cancel(timer)
            loop.schedule(after: 0.02, fulfill)
        }
        wait(for: [done], timeout: limit)
        XCTAssertFalse(fired.withLock { $0 })
    }

    func testADescriptorIsWatchedForReadingAndWritingApart() throws {
        let loop = ThreadLoop(name: "test")
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends), 0)
        let (ours, theirs) = (ends[0], ends[1])
        defer {
            close(ours)
            close(theirs)
        }
        let seen = Locked<[String]>([])
        let (done, fulfill) = expectation()
        let reading = loop.wait {
            loop.watch(ours, for: .readable) { events in
                var byte: UInt8 = 0
                read(ours, &byte, 1)
                seen.withLock { $0.append("read \(byte)") }
                fulfill()
            }
        }
        // As long as it is watched, a socket with room calls again and again.
        let (room, fulfillRoom) = expectation()
        room.assertForOverFulfill = false
        let writing = loop.wait {
            loop.watch(ours, for: []) { _ in
                seen.withLock { $0.append("writable") }
                fulfillRoom()
            }
        }
        loop.wait { writing.update(.writable) }
        wait(for: [room], timeout: limit)
        loop.wait { writing.cancel() }
        var byte: UInt8 = 42
        write(theirs, &byte, 1)
        wait(for: [done], timeout: limit)
        loop.wait { reading.cancel() }

        let result = seen.withLock { $0 }
        XCTAssertTrue(result.contains("writable"))
        XCTAssertEqual(result.last, "read 42")
    }

    func testAHangUpIsReportedToAWatch() throws {
        let loop = ThreadLoop(name: "test")
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends), 0)
        let (done, fulfill) = expectation()
        let holder = Locked<Watch?>(nil)
        let ours = ends[0]
        let watch = loop.wait {
            loop.watch(ours, for: .readable) { events in
                guard events.contains(.hangup) else { return }
                holder.withLock { $0 }?.cancel()
                fulfill()
            }
        }
        holder.withLock { $0 = watch }
        close(ends[1])
        wait(for: [done], timeout: limit)
        close(ours)
    }

    func testAWatchOfADescriptorThatCannotBeWatchedReceivesAnError() {
        let loop = ThreadLoop(name: "test")
        let (done, fulfill) = expectation()
        let watch = loop.wait { loop.watch(-1, for: .readable) { if $0.contains(.error) { fulfill() } } }
        wait(for: [done], timeout: limit)
        loop.wait { watch.cancel() }
    }

    func testAStoppedLoopRunsWhatWasPostedBeforeAndDropsTheRest() {
        let loop = ThreadLoop(name: "test")
        let (done, fulfill) = expectation()
        let dropped = Locked(false)
        loop.post {
            loop.post(fulfill)
            loop.stop()
            loop.post { dropped.withLock { $0 = true } }
        }
        wait(for: [done], timeout: limit)
        XCTAssertFalse(dropped.withLock { $0 })
    }

    // MARK: Work on a thread that borrows the loop

    /// A loop that sleeps in epoll: its thread has done everything.
    private func sleepingLoop() -> ThreadLoop {
        let loop = ThreadLoop(name: "test")
        XCTAssertNil(loop.wait { loop.prepareToWatch() })
        return loop
    }

    /// Tries until the loop sleeps.
    private func borrow(_ loop: ThreadLoop, _ work: () -> Void) {
        let end = Date() + limit
        while !loop.performIfIdle(work) {
            guard Date() < end else { return XCTFail("The loop never slept.") }
            sched_yield()
        }
    }

    func testASleepingLoopIsBorrowedByTheCallingThread() {
        let loop = sleepingLoop()
        let caller = pthread_self()
        borrow(loop) {
            XCTAssertEqual(pthread_self(), caller)
            XCTAssertTrue(loop.isCurrent)
            XCTAssertFalse(loop.performIfIdle {}, "It has one turn.")
        }
        XCTAssertFalse(loop.isCurrent)
    }

    func testALoopIsNotBorrowedBeforeItRunsNorAfterItIsStopped() {
        let loop = ThreadLoop(name: "test")
        XCTAssertFalse(loop.performIfIdle {})
        XCTAssertNil(loop.wait { loop.prepareToWatch() })
        borrow(loop) {}
        loop.stop()
        XCTAssertFalse(loop.performIfIdle {})
    }

    func testALoopThatWorksIsNotBorrowed() {
        let loop = sleepingLoop()
        let (isWorking, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        loop.post {
            isWorking.signal()
            mayEnd.wait()
        }
        isWorking.wait()
        XCTAssertFalse(loop.performIfIdle {})
        mayEnd.signal()
    }

    func testWorkIsNotBorrowedPastWorkThatWasPostedBefore() {
        let loop = sleepingLoop()
        for round in 0..<1_000 {
            let hasRun = Locked(false)
            loop.post { hasRun.withLock { $0 = true } }
            // Either the post has run, or the loop refuses.
            _ = loop.performIfIdle { XCTAssertTrue(hasRun.withLock { $0 }, "round \(round)") }
        }
    }

    func testWhatABorrowerPostsAndSchedulesRunsOnTheThread() {
        let loop = sleepingLoop()
        let thread = loop.wait { UInt(pthread_self()) }
        let (posted, fulfillPost) = expectation("posted")
        let (fired, fulfillTimer) = expectation("fired")
        borrow(loop) {
            loop.post {
                XCTAssertEqual(UInt(pthread_self()), thread)
                fulfillPost()
            }
            loop.schedule(after: 0.01) {
                XCTAssertEqual(UInt(pthread_self()), thread)
                fulfillTimer()
            }
        }
        wait(for: [posted, fired], timeout: limit)
    }

    func testABorrowerMayChangeAWatch() throws {
        let loop = sleepingLoop()
        let pipe = try Pipe()
        let (done, fulfill) = expectation()
        let watch = loop.wait {
            loop.watch(pipe.readEnd, for: []) { events in
                XCTAssertTrue(loop.isCurrent)
                if events.contains(.readable) { fulfill() }
            }
        }
        pipe.put()
        borrow(loop) { watch.update(.readable) }
        wait(for: [done], timeout: limit)
        borrow(loop) { watch.cancel() }
    }

    func testBorrowersAndTheThreadNeverRunTogether() {
        let loop = sleepingLoop()
        // Not guarded by a lock: the thread sanitizer reports what runs together.
        nonisolated(unsafe) var count = 0
        let borrowed = Locked(0)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<2_000 {
                if loop.performIfIdle({ count += 1 }) {
                    borrowed.withLock { $0 += 1 }
                } else {
                    loop.post { count += 1 }
                }
            }
        }
        XCTAssertEqual(loop.wait { count }, 8_000)
        borrow(loop) { count += 1 }
    }

    func testARestLosesNothing() throws {
        let loop = sleepingLoop()
        let pipe = try Pipe()
        let (received, posted) = (Locked(0), Locked(0))
        let watch = loop.wait {
            loop.watch(pipe.readEnd, for: .readable) { _ in
                var byte: UInt8 = 0
                received.withLock { $0 += read(pipe.readEnd, &byte, 1) }
                loop.restBeforeWait()
            }
        }
        for _ in 0..<100 {
            XCTAssertEqual(write(pipe.writeEnd, [1, 2], 2), 2)
            loop.post { posted.withLock { $0 += 1 } }
            loop.wait { loop.restBeforeWait() }
            borrow(loop) { posted.withLock { $0 += 1 } }
        }
        let end = Date() + limit
        while received.withLock({ $0 }) < 200, Date() < end { sched_yield() }
        XCTAssertEqual(received.withLock { $0 }, 200)
        XCTAssertEqual(posted.withLock { $0 }, 200)
        borrow(loop) { watch.cancel() }
    }

    // MARK: Executors

    func testATaskThatPrefersTheLoopRunsOnItsThread() async {
        let executor = LoopExecutor(ThreadLoop(name: "test"))
        let task = Task(executorPreference: executor) {
            let isCurrent = executor.loop.isCurrent
            await Task.yield()
            return [isCurrent, executor.loop.isCurrent]
        }
        let isCurrent = await task.value
        XCTAssertEqual(isCurrent, [true, true])
    }

    func testAnActorOnTheLoopRunsOnItsThread() async {
        let counter = LoopCounter(LoopExecutor(ThreadLoop(name: "test")))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<100 { group.addTask { await counter.count() } }
            for await isCurrent in group { XCTAssertTrue(isCurrent) }
        }
        let total = await counter.total
        XCTAssertEqual(total, 100)
    }

    func testTheLoopIsInheritedByItsTasksOnly() async {
        let executor = LoopExecutor(ThreadLoop(name: "test"))
        XCTAssertNil(executor.inherited)
        XCTAssertTrue(executor.loop.wait { executor.inherited == nil }, "no task")
        let isInherited = await Task(executorPreference: executor) { executor.inherited === executor }.value
        XCTAssertTrue(isInherited)
    }

    func testAReleasedLoopReleasesThePostedWork() {
        let (done, fulfill) = expectation()
        holdBriefly(Token(whenReleased: fulfill))
        wait(for: [done], timeout: limit)
    }

    private func holdBriefly(_ token: Token) {
        let loop = ThreadLoop(name: "test")
        loop.schedule(after: 3600) { withExtendedLifetime(token) {} }
    }
}

private actor LoopCounter {
    private let executor: LoopExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private(set) var total = 0

    init(_ executor: LoopExecutor) { self.executor = executor }

    func count() -> Bool {
        preconditionIsolated()
        total += 1
        return executor.loop.isCurrent
    }
}

/// Says when it is released.
final class Token: Sendable {
    private let whenReleased: @Sendable () -> Void

    init(whenReleased: @escaping @Sendable () -> Void) {
        self.whenReleased = whenReleased
    }

    deinit {
        whenReleased()
    }
}
