import BlueCapFutures
import BlueCapReactor
import Glibc
import XCTest

/// Tasks of the default context, and jobs of tasks that a loop resumes, which the loop's threads run themselves.
final class TaskThreadTests: XCTestCase {
    private let limit = 10.0

    /// A loop that adds a task to the default context for each byte of a pipe.
    private final class Room: Sendable {
        let loop = ThreadLoop(name: "loop")
        let pipe: Pipe
        /// What each byte's task does; on the default context. In a structure: stored bare, it would be wrapped in another closure
        /// at each access.
        struct Task {
            var run: @Sendable (UInt8) -> Void = { _ in }
        }
        let task = Locked(Task())
        /// What the loop does for each byte: by default it adds the task.
        let handler = Locked(Task())
        private let watch: Watch

        /// - Parameter rests: Whether the loop rests after each 0.
        init(rests: Bool = false) throws {
            pipe = try Pipe()
            let (loop, task, handler, end) = (loop, task, handler, pipe.readEnd)
            handler.withLock { handler in
                handler.run = { value in QueueContext.futuresDefault.execute { task.withLock { $0 }.run(value) } }
            }
            watch = loop.wait {
                loop.watch(end, for: .readable) { events in
                    guard events.contains(.readable) else { return }
                    var byte: UInt8 = 0
                    guard read(end, &byte, 1) == 1 else { return XCTFail("The pipe is not readable.") }
                    let value = byte
                    handler.withLock { $0 }.run(value)
                    if rests, value == 0 { loop.restBeforeWait() }
                }
            }
        }

        deinit {
            let watch = watch
            loop.wait { watch.cancel() }
        }

        func put(_ bytes: [UInt8]) {
            if write(pipe.writeEnd, bytes, bytes.count) != bytes.count { XCTFail("The pipe is not writable.") }
        }
    }

    private static func threadName() -> String? {
        (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines)
    }

    /// Puts bytes, one after the other, until the loop's threads run the tasks.
    private func useTwoThreads(_ room: Room) {
        let end = Date() + limit
        var isRunByLoop = false
        while !isRunByLoop {
            guard Date() < end else { return XCTFail("The loop's threads never ran a task.") }
            let done = DispatchSemaphore(value: 0)
            let name = Locked<String?>(nil)
            room.task.withLock { task in
                task.run = { _ in
                    name.withLock { $0 = Self.threadName() }
                    done.signal()
                }
            }
            room.put([0])
            XCTAssertEqual(done.wait(timeout: .now() + limit), .success)
            isRunByLoop = name.withLock { $0 } == "loop"
        }
    }

    func testTheThreadsOfALoopRunTheTasksThatItAddsOften() throws {
        let room = try Room()
        useTwoThreads(room)
        let seen = Locked<[UInt8]>([])
        let done = expectation(description: "all ran")
        let (loop, queue) = (room.loop, try XCTUnwrap((QueueContext.futuresDefault as? QueueContext)?.queue.queue))
        room.task.withLock { task in
            task.run = { byte in
                XCTAssertFalse(loop.isCurrent)
                dispatchPrecondition(condition: .onQueue(queue))
                if seen.withLock({ seen in
                    seen.append(byte); return seen.count == 200
                }) {
                    done.fulfill()
                }
            }
        }
        for byte in 0..<200 { room.put([UInt8(byte)]) }
        wait(for: [done], timeout: limit)
        XCTAssertEqual(seen.withLock { $0 }, (0..<200).map(UInt8.init))
    }

    func testATaskThatWaitsDoesNotStopTheLoop() throws {
        let room = try Room()
        useTwoThreads(room)
        let (begun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let seen = Locked<[UInt8]>([])
        let done = expectation(description: "all tasks ran")
        room.task.withLock { task in
            task.run = { byte in
                if byte == 1 {
                    begun.signal()
                    mayEnd.wait()
                }
                if seen.withLock({ seen in
                    seen.append(byte); return seen.count == 3
                }) {
                    done.fulfill()
                }
            }
        }
        room.put([1])
        XCTAssertEqual(begun.wait(timeout: .now() + limit), .success)
        let timer = expectation(description: "a timer")
        room.loop.schedule(after: 0.001) { timer.fulfill() }
        wait(for: [timer], timeout: limit)
        room.put([2, 3])
        let (loop, end) = (room.loop, room.pipe.readEnd)
        let deadline = Date() + limit
        while room.loop.wait({ Self.waits(in: end) }), Date() < deadline { sched_yield() }
        XCTAssertFalse(loop.wait { Self.waits(in: end) }, "the other thread reads")
        XCTAssertEqual(seen.withLock { $0 }, [])
        mayEnd.signal()
        wait(for: [done], timeout: limit)
        XCTAssertEqual(seen.withLock { $0 }, [1, 2, 3])
    }

    private static func waits(in descriptor: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0
    }

    func testNothingIsLostInAFlood() throws {
        let room = try Room(rests: true)
        let (count, done) = (Locked(0), expectation(description: "all ran"))
        room.task.withLock { task in
            task.run = { _ in
                if count.withLock({
                    $0 += 1; return $0 == 5_000
                }) {
                    done.fulfill()
                }
            }
        }
        // Not a rest for each: on a machine with other work one takes milliseconds.
        for value in 0..<5_000 { room.put([UInt8(value % 10)]) }
        wait(for: [done], timeout: limit)

        let calm = try Room()
        useTwoThreads(calm)
        calm.loop.wait { calm.loop.restBeforeWait() }
        useTwoThreads(calm)
    }

    func testTasksOfManyThreadsRunOneAfterTheOther() throws {
        let room = try Room()
        useTwoThreads(room)
        // Not guarded by a lock: the thread sanitizer reports what runs together.
        nonisolated(unsafe) var last = [Int](repeating: -1, count: 4)
        nonisolated(unsafe) var bytes = 0
        let context = QueueContext.futuresDefault
        room.task.withLock { task in task.run = { _ in bytes += 1 } }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for value in 0..<2_000 {
                if thread == 0 {
                    room.put([0])
                } else {
                    context.execute {
                        XCTAssertEqual(last[thread], value - 1)
                        last[thread] = value
                    }
                }
            }
        }
        let deadline = Date() + limit
        let queue = try XCTUnwrap((context as? QueueContext)?.queue)
        while queue.sync({ bytes }) < 2_000, Date() < deadline { sched_yield() }
        XCTAssertEqual(queue.sync { bytes }, 2_000)
        XCTAssertEqual(queue.sync { last }, [-1, 1_999, 1_999, 1_999])
    }

    func testSyncOnTheDefaultQueueComesAfterWhatWasAddedBefore() throws {
        let room = try Room()
        useTwoThreads(room)
        let queue = try XCTUnwrap((QueueContext.futuresDefault as? QueueContext)?.queue)
        for _ in 0..<500 {
            let ran = Locked(false)
            room.loop.wait { QueueContext.futuresDefault.execute { ran.withLock { $0 = true } } }
            XCTAssertTrue(queue.sync { ran.withLock { $0 } })
        }
    }

    func testSyncOnTheDefaultQueueComesAfterMoreTasksThanTheQueueRunsAtOnce() throws {
        let context = QueueContext.futuresDefault
        let queue = try XCTUnwrap((context as? QueueContext)?.queue)
        for _ in 0..<50 {
            let (first, last, begun) = (
                DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
            )
            context.execute { first.wait() }
            for _ in 0..<2_000 { context.execute {} }
            context.execute {
                begun.signal()
                last.wait()
            }
            first.signal()
            XCTAssertEqual(begun.wait(timeout: .now() + limit), .success)
            let ran = Locked(false)
            context.execute { ran.withLock { $0 = true } }
            // At about the time of the call below: the queue is left after these tasks, and `sync` may be the next to use it.
            DispatchQueue.global().async { last.signal() }
            XCTAssertTrue(queue.sync { ran.withLock { $0 } })
        }
    }

    func testTasksThatAddTasksLeaveTheQueueToOthers() throws {
        let (isOver, ended) = (Locked(false), expectation(description: "the tasks ended"))
        @Sendable func again() {
            if isOver.withLock({ $0 }) { return ended.fulfill() }
            QueueContext.futuresDefault.execute(again)
        }
        QueueContext.futuresDefault.execute(again)
        let queue = try XCTUnwrap((QueueContext.futuresDefault as? QueueContext)?.queue.queue)
        queue.async { isOver.withLock { $0 = true } }
        wait(for: [ended], timeout: limit)
    }

    func testBothThreadsEndWithTheLoop() throws {
        let released = expectation(description: "the loop and what it watches are released")
        let mayEnd = DispatchSemaphore(value: 0)
        try useAndRelease(Token { released.fulfill() }, endOfTask: mayEnd)
        mayEnd.signal()
        wait(for: [released], timeout: limit)
    }

    // MARK: Jobs

    /// A loop whose handlers resume a task of a `ResumingThreadExecutor` for each byte of a pipe.
    private final class JobRoom: Sendable {
        let room: Room
        private let bytes: AsyncStream<UInt8>

        init() throws {
            room = try Room()
            let (bytes, continuation) = AsyncStream.makeStream(of: UInt8.self)
            self.bytes = bytes
            room.handler.withLock { $0.run = { continuation.yield($0) } }
        }

        /// Calls `body` with each byte in a task, until it returns false.
        func read(_ body: @escaping @Sendable (UInt8) async -> Bool) -> XCTestExpectation {
            let ended = XCTestExpectation(description: "the task ended")
            _ = Task(executorPreference: ResumingThreadExecutor.shared) { [bytes] in
                for await byte in bytes { if await !body(byte) { break } }
                ended.fulfill()
            }
            return ended
        }
    }

    func testTheThreadsOfALoopRunTheJobsThatItResumesOften() throws {
        let jobs = try JobRoom()
        let (loop, done, deadline) = (jobs.room.loop, DispatchSemaphore(value: 0), Date() + limit)
        let isRunByLoop = Locked(false)
        let ended = jobs.read { byte in
            XCTAssertFalse(loop.isCurrent)
            if Self.threadName() == "loop" { isRunByLoop.withLock { $0 = true } }
            done.signal()
            return byte == 0
        }
        while !isRunByLoop.withLock({ $0 }) {
            guard Date() < deadline else { return XCTFail("The loop's threads never ran a job.") }
            jobs.room.put([0])
            XCTAssertEqual(done.wait(timeout: .now() + limit), .success)
        }
        jobs.room.put([1])
        wait(for: [ended], timeout: limit)
    }

    /// Calls `block` in a job on a thread of the loop.
    private func onThread(of jobs: JobRoom, _ block: @escaping @Sendable () -> Void) -> [XCTestExpectation] {
        let (ended, isOver, deadline) = (XCTestExpectation(description: "blocked"), Locked(false), Date() + limit)
        let begun = DispatchSemaphore(value: 0)
        let task = jobs.read { _ in
            let isOnLoop = Self.threadName() == "loop"
            isOver.withLock { $0 = isOnLoop }
            begun.signal()
            if isOnLoop {
                block()
                ended.fulfill()
            }
            return !isOnLoop
        }
        while !isOver.withLock({ $0 }), Date() < deadline {
            jobs.room.put([0])
            XCTAssertEqual(begun.wait(timeout: .now() + limit), .success)
        }
        XCTAssertTrue(isOver.withLock { $0 }, "The loop's threads never ran a job.")
        return [ended, task]
    }

    func testWhileAJobBlocksTheLoopAndAllOtherCodeRun() throws {
        let jobs = try JobRoom()
        let mayEnd = DispatchSemaphore(value: 0)
        let ended = onThread(of: jobs) { mayEnd.wait() }
        // A task of the default context that blocks, too.
        let (begun, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        jobs.room.loop.post {
            QueueContext.futuresDefault.execute {
                begun.signal()
                mayGoOn.wait()
            }
        }
        XCTAssertEqual(begun.wait(timeout: .now() + limit), .success)
        let timer = expectation(description: "a timer")
        jobs.room.loop.schedule(after: 0.001) { timer.fulfill() }
        wait(for: [timer], timeout: limit)
        // A second job, which the loop resumes.
        let (promise, resumed) = (Promise<Int>(), expectation(description: "another job"))
        _ = Task(executorPreference: ResumingThreadExecutor.shared) {
            let value = try await promise.future.value
            XCTAssertEqual(value, 7)
            resumed.fulfill()
        }
        jobs.room.loop.post { promise.success(7) }
        wait(for: [resumed], timeout: limit)
        mayGoOn.signal()
        mayEnd.signal()
        wait(for: ended, timeout: limit)
    }

    func testWhatAJobStartsDoesNotWaitForIt() throws {
        let jobs = try JobRoom()
        let isDone = Locked(false)
        let ended = onThread(of: jobs) {
            let (child, handler) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            _ = Task(executorPreference: ResumingThreadExecutor.shared) { child.signal() }
            QueueContext.futuresDefault.execute { handler.signal() }
            let results = [child, handler].map { $0.wait(timeout: .now() + 10) }
            isDone.withLock { $0 = results == [.success, .success] }
        }
        wait(for: ended, timeout: 3 * limit)
        XCTAssertTrue(isDone.withLock { $0 })
    }

    func testNoJobIsLostWhenTheLoopEnds() throws {
        for _ in 0..<200 {
            let resumed = XCTestExpectation(description: "resumed")
            let promise = Promise<Void>()
            let loop = ThreadLoop(name: "loop")
            _ = Task(executorPreference: ResumingThreadExecutor.shared) {
                try await promise.future.value
                resumed.fulfill()
            }
            loop.post { promise.success(()) }
            loop.stop()
            wait(for: [resumed], timeout: limit)
        }
    }

    /// Releases a loop of which one thread runs a task that waits for `endOfTask`.
    private func useAndRelease(_ token: Token, endOfTask: DispatchSemaphore) throws {
        let room = try Room()
        useTwoThreads(room)
        let end = room.pipe.writeEnd
        _ = room.loop.wait { room.loop.watch(end, for: []) { _ in withExtendedLifetime(token) {} } }
        let begun = DispatchSemaphore(value: 0)
        room.task.withLock { task in
            task.run = { _ in
                begun.signal()
                endOfTask.wait()
            }
        }
        room.put([0])
        XCTAssertEqual(begun.wait(timeout: .now() + limit), .success)
    }
}
