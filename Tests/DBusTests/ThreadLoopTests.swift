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
        let writing = loop.wait {
            loop.watch(ours, for: []) { _ in seen.withLock { $0.append("writable") } }
        }
        // Asking for writability on a socket with room calls at once; pausing stops it.
        loop.wait { writing.update(.writable) }
        loop.wait {}
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

private final class Token: Sendable {
    private let whenReleased: @Sendable () -> Void

    init(whenReleased: @escaping @Sendable () -> Void) {
        self.whenReleased = whenReleased
    }

    deinit {
        whenReleased()
    }
}
