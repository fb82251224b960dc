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

    /// The number of a descriptor that a handler has closed is given to the next one, whose watch must not see the hang-up of the
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

    private func checkReuse(
        of loop: any EventLoop, _ run: (@escaping @Sendable () -> Void) -> Void, file: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        var ends: [Int32] = [0, 0, 0, 0]
        for index in [0, 2] {
            XCTAssertEqual(
                ends.withUnsafeMutableBufferPointer {
                    socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, $0.baseAddress! + index)
                }, 0)
        }
        // Whichever of the two is reported first replaces the other one, at its number, by a socket whose peer is open.
        let (left, right) = (ends[0], ends[2])
        var fresh: [Int32] = [0, 0]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &fresh), 0)
        let replacement = fresh[0]
        let watches = Locked<[Int32: Watch]>([:])
        let events = Locked<[String]>([])
        let handle = { @Sendable (own: Int32, other: Int32) in
            let old = watches.withLock { watches -> [Watch] in
                defer { watches = [:] }
                return Array(watches.values)
            }
            for watch in old { watch.cancel() }
            dup2(replacement, other)
            let new = loop.watch(other, for: .readable) { found in events.withLock { $0.append("\(found)") } }
            watches.withLock { $0[other] = new }
            events.withLock { $0.append("replaced") }
        }
        for end in [ends[1], ends[3]] { close(end) }
        run {
            for (own, other) in [(left, right), (right, left)] {
                let watch = loop.watch(own, for: .readable) { _ in handle(own, other) }
                watches.withLock { $0[own] = watch }
            }
        }
        for _ in 0..<3 { run {} }
        XCTAssertEqual(events.withLock { $0 }, ["replaced"], file: file, line: line)
        run { for watch in watches.withLock({ Array($0.values) }) { watch.cancel() } }
        for descriptor in [left, right] + fresh { close(descriptor) }
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
