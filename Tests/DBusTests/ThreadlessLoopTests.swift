import BlueCapFutures
import XCTest

@testable import BlueCapReactor

/// A loop in a process that can have no further thread, which ended the process.
final class ThreadlessLoopTests: XCTestCase {
    private func loop(failing: Int) -> (ThreadLoop, Locked<Int>) {
        let attempts = Locked(0)
        let loop = ThreadLoop(name: "test") { run, argument in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            return attempt <= failing ? EAGAIN : makeDetachedThread(run, argument)
        }
        return (loop, attempts)
    }

    func testItSaysWhyAndKeepsWhatItIsGivenUntilThereIsOne() {
        let (loop, attempts) = loop(failing: 3)
        let seen = Locked<[Int]>([])
        XCTAssertEqual(loop.start(), .thread(EAGAIN))
        loop.post { seen.withLock { $0.append(1) } }
        loop.schedule(after: 0) { seen.withLock { $0.append(3) } }
        XCTAssertFalse(loop.isCurrent)
        XCTAssertEqual(seen.withLock { $0 }, [])

        let isDone = expectation(description: "done")
        loop.post { seen.withLock { $0.append(2) } }
        loop.schedule(after: 0.01) { isDone.fulfill() }
        wait(for: [isDone], timeout: 60)
        XCTAssertEqual(seen.withLock { $0 }, [1, 2, 3])
        XCTAssertNil(loop.start())
        XCTAssertEqual(attempts.withLock { $0 }, 4)
    }

    func testOneThatNeverHadAThreadReleasesWhatItWasGiven() {
        let isReleased = expectation(description: "released")
        isReleased.expectedFulfillmentCount = 2
        giveToLoopWithoutThread(isReleased)
        wait(for: [isReleased], timeout: 60)
    }

    private func giveToLoopWithoutThread(_ isReleased: XCTestExpectation) {
        let (loop, _) = loop(failing: .max)
        let (posted, scheduled) = (Releasing(isReleased), Releasing(isReleased))
        loop.post { withExtendedLifetime(posted) {} }
        loop.schedule(after: 0) { withExtendedLifetime(scheduled) {} }
    }
}

private final class Releasing: @unchecked Sendable {
    // Unchecked because an expectation may be fulfilled on any thread.
    private let expectation: XCTestExpectation

    init(_ expectation: XCTestExpectation) { self.expectation = expectation }

    deinit { expectation.fulfill() }
}
