import BlueCapFutures
import Glibc
import BlueCapReactor
import XCTest

final class ManualLoopTests: XCTestCase {
    private let loop = ManualLoop()
    private let log = Locked<[String]>([])

    private func note(_ text: String) -> @Sendable () -> Void {
        let log = log
        return { log.withLock { $0.append(text) } }
    }

    private var noted: [String] { log.withLock { $0 } }

    func testNothingHappensUntilTheLoopIsDriven() {
        loop.post(note("post"))
        loop.schedule(after: 0, note("timer"))
        XCTAssertEqual(noted, [])

        loop.run()
        XCTAssertEqual(noted, ["post", "timer"])
    }

    func testWorkPostedFromTheLoopRunsAfterThePresentWork() {
        let (loop, log) = (loop, log)
        loop.post {
            loop.post { log.withLock { $0.append("second") } }
            log.withLock { $0.append("first") }
        }
        loop.run()
        XCTAssertEqual(noted, ["first", "second"])
    }

    func testTimersRunInTheOrderOfTheirDeadlinesWithPostsInBetween() {
        let (loop, log) = (loop, log)
        loop.schedule(after: 2, note("two"))
        loop.schedule(after: 1) {
            log.withLock { $0.append("one at \(loop.now.seconds(since: .origin))") }
            loop.post { log.withLock { $0.append("posted by one") } }
            loop.schedule(after: 0.5) { log.withLock { $0.append("one and a half") } }
        }

        loop.advance(by: 10)
        XCTAssertEqual(noted, ["one at 1.0", "posted by one", "one and a half", "two"])
        XCTAssertEqual(loop.now, Instant.origin.advanced(by: 10))
    }

    func testACancelledTimerDoesNotRun() {
        let loop = loop
        let timer = loop.schedule(after: 1, note("cancelled"))
        loop.schedule(after: 0.5) { loop.cancel(timer) }

        loop.advance(by: 5)
        XCTAssertEqual(noted, [])
    }

    func testTimeDoesNotPassWhileAnotherThreadWorksForTheLoop() async {
        for isAsync in [false, true] {
            let (loop, log) = (ManualLoop(), Locked<[String]>([]))
            let hasFired = DispatchSemaphore(value: 0)
            loop.schedule(after: 1) {
                log.withLock { $0.append("timer") }
                hasFired.signal()
            }
            loop.beginWorkElsewhere()
            Thread.detachNewThread {
                // The driving thread could go too far during this time.
                let isLate = hasFired.wait(timeout: .now() + 0.2) == .success
                let text = isLate ? "late" : "in time"
                loop.post { log.withLock { $0.append("work at \(loop.now.seconds(since: .origin)), \(text)") } }
                loop.endWorkElsewhere()
            }
            if isAsync { await loop.advance(by: 10) } else { advance(loop, by: 10) }
            XCTAssertEqual(log.withLock { $0 }, ["work at 0.0, in time", "timer"])
            XCTAssertEqual(loop.now, Instant.origin.advanced(by: 10))
        }
    }

    /// The form that is not `async`, also in an `async` test.
    private func advance(_ loop: ManualLoop, by seconds: TimeInterval) { loop.advance(by: seconds) }

    func testWhatCanRunNowContainsTheWorkOfOtherThreads() {
        let loop = loop
        for number in 1...200 {
            loop.beginWorkElsewhere()
            DispatchQueue.global().async { [log] in
                if number.isMultiple(of: 2) { loop.post { log.withLock { $0.append("post") } } }
                loop.endWorkElsewhere()
            }
            loop.run()
            XCTAssertEqual(noted.count, number / 2)
        }
    }

    func testAdvancingUntilAConditionStopsAtThatInstant() {
        for second in 1...9 { loop.schedule(after: Double(second), note("\(second)")) }

        XCTAssertTrue(loop.advance(until: { noted.count == 3 }, limit: 60))
        XCTAssertEqual(loop.now, Instant.origin.advanced(by: 3))
        XCTAssertFalse(loop.advance(until: { false }, limit: 2))
        XCTAssertEqual(loop.now, Instant.origin.advanced(by: 5))
        XCTAssertEqual(noted, ["1", "2", "3", "4", "5"])
    }

    func testTheWallClockMovesWithVirtualTime() {
        let before = loop.date
        loop.advance(by: 3600)
        XCTAssertEqual(loop.date.timeIntervalSince(before), 3600, accuracy: 1e-6)
    }

    func testTheLoopIsCurrentOnlyInsideItsWork() {
        let (loop, log) = (loop, log)
        XCTAssertFalse(loop.isCurrent)
        loop.post { log.withLock { $0.append("\(loop.isCurrent)") } }
        loop.run()
        XCTAssertEqual(noted, ["true"])
        XCTAssertFalse(loop.isCurrent)
    }

    func testAPostFromAnotherThreadWakesALoopThatWaits() {
        let (loop, log) = (loop, log)
        DispatchQueue.global().async { loop.post { log.withLock { $0.append("posted") } } }

        XCTAssertTrue(loop.wait(until: { noted == ["posted"] }, limit: 10))
        XCTAssertEqual(loop.now, .origin)
    }

    func testWatchedDescriptorsWork() throws {
        let pipe = try Pipe()
        let (loop, log) = (loop, log)
        let watch = Locked<Watch?>(nil)
        loop.post {
            let made = loop.watch(pipe.readEnd, for: .readable) { events in
                pipe.take()
                log.withLock { $0.append(events == .readable ? "readable" : "\(events)") }
            }
            watch.withLock { $0 = made }
        }
        loop.run()
        XCTAssertEqual(noted, [])

        pipe.put()
        loop.run()
        XCTAssertEqual(noted, ["readable"])

        loop.post { watch.withLock { $0 }?.cancel() }
        loop.run()
        pipe.put()
        loop.run()
        XCTAssertEqual(noted, ["readable"])
    }

    /// The number of a descriptor that a handler has closed is given to the next one, whose watch must not see the event of the
    /// first, which was found in the same look.
    func testAnEventIsNotReportedToALaterWatchOfTheSameNumber() throws {
        let manual = loop
        try checkReuse(of: manual) { work in
            manual.post(work)
            manual.run()
        }
        let thread = ThreadLoop(name: "test")
        try checkReuse(of: thread) { thread.wait($0) }
    }

    /// Both pipes are readable. The handler of the one that is reported first replaces the other, at its number, by an empty pipe.
    private func checkReuse(of loop: any EventLoop, _ run: (@escaping @Sendable () -> Void) -> Void) throws {
        let (left, right, empty) = (try Pipe(), try Pipe(), try Pipe())
        let watches = Locked<[Watch]>([])
        let events = Locked<[String]>([])
        let replaced = expectation(description: "one of the two is reported")
        let replace = { @Sendable (descriptor: Int32) in
            for watch in watches.withLock({ $0 }) { watch.cancel() }
            dup2(empty.readEnd, descriptor)
            let new = loop.watch(descriptor, for: .readable) { found in events.withLock { $0.append("\(found)") } }
            watches.withLock { $0 = [new] }
            events.withLock { $0.append("replaced") }
            replaced.fulfill()
        }
        left.put()
        right.put()
        run {
            let both = [(left, right), (right, left)].map { own, other in
                loop.watch(own.readEnd, for: .readable) { _ in replace(other.readEnd) }
            }
            watches.withLock { $0 = both }
        }
        wait(for: [replaced], timeout: 60)
        // Posted work runs when all events of that look have been reported.
        run {}
        XCTAssertEqual(events.withLock { $0 }, ["replaced"])
        run { for watch in watches.withLock({ $0 }) { watch.cancel() } }
    }
}

/// A pipe that carries single bytes, closed when released.
final class Pipe: Sendable {
    let readEnd: Int32
    let writeEnd: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func put() {
        var byte: UInt8 = 1
        write(writeEnd, &byte, 1)
    }

    func take() {
        var byte: UInt8 = 0
        read(readEnd, &byte, 1)
    }
}
