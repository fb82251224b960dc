import BlueCapFutures
import XCTest

/// The operators with times, on a clock that the tests advance, and others that the documents do not have.
final class OperatorTests: XCTestCase {
    private let immediate = ImmediateContext()
    private let clock = ManualClock()

    func testATimeoutFailsWhatTakesLonger() {
        let promise = Promise<Int>()
        let timed = promise.future.timeout(5, clock: clock)
        clock.advance(by: 4)
        XCTAssertFalse(timed.completed)
        clock.advance(by: 1)
        XCTAssertEqual(timed.result?.error as? FutureTimedOutError, FutureTimedOutError(seconds: 5))
        XCTAssertTrue(promise.success(1))
    }

    func testATimeoutDoesNotTouchWhatIsInTime() {
        let promise = Promise<Int>()
        let timed = promise.future.timeout(5, clock: clock)
        promise.success(1)
        clock.advance(by: 5)
        XCTAssertEqual(timed.result?.value, 1)
        XCTAssertEqual(Future(value: 2).timeout(5, clock: clock).result?.value, 2)
    }

    func testADelayPassesTheOutcomeLater() {
        let delayed = Future(value: 1).delay(2, clock: clock)
        XCTAssertFalse(delayed.completed)
        clock.advance(by: 2)
        XCTAssertEqual(delayed.result?.value, 1)
    }

    func testRealTimeWorksToo() {
        let done = expectation(description: "both came")
        done.expectedFulfillmentCount = 2
        Future(value: 1).delay(0.01).onSuccess { _ in done.fulfill() }
        Promise<Int>().future.timeout(0.01).onFailure { _ in done.fulfill() }
        wait(for: [done], timeout: 60)
    }

    func testARetryTriesAgainWithGrowingWaits() {
        let attempts = Recorder<Double>()
        let clock = clock
        let retried = retry(times: 3, backoff: .exponential(first: 1, limit: 3), clock: clock) { () -> Future<Int> in
            attempts(clock.now)
            return attempts.count < 4 ? Future(error: TestError.first) : Future(value: attempts.count)
        }
        clock.advance(by: 10)
        XCTAssertEqual(attempts.all, [0, 1, 3, 6])
        XCTAssertEqual(retried.result?.value, 4)
    }

    func testARetryGivesUpWithTheLastError() {
        let attempts = Recorder<Int>()
        let retried = retry(times: 2) { () -> Future<Int> in
            attempts(1)
            if attempts.count == 3 { throw TestError.second }
            return Future(error: TestError.first)
        }
        XCTAssertEqual(attempts.count, 3)
        XCTAssertEqual(retried.result?.error as? TestError, .second)
    }

    func testManyRetriesWithoutAWaitDoNotNest() {
        let attempts = Recorder<Int>()
        let retried = retry(times: 100_000) { () -> Future<Int> in
            attempts(1)
            return Future(error: TestError.first)
        }
        XCTAssertEqual(attempts.count, 100_001)
        XCTAssertTrue(retried.completed)
    }

    func testTakingEndsAfterSoMany() {
        let promise = StreamPromise<Int>(capacity: 2)
        promise.success(1)
        promise.success(2)
        let taken = promise.stream.take(3).collect()
        promise.success(3)
        promise.success(4)
        XCTAssertEqual(taken.result?.value, [1, 2, 3])
        XCTAssertFalse(promise.stream.isWatched)
    }

    func testTheFirstElementIsAFuture() {
        let promise = StreamPromise<Int>()
        let first = promise.stream.first()
        XCTAssertFalse(first.completed)
        promise.success(1)
        promise.success(2)
        XCTAssertEqual(first.result?.value, 1)
        let empty = StreamPromise<Int>()
        let none = empty.stream.first()
        empty.finish()
        XCTAssertEqual(none.result?.error as? FuturesError, .noSuchElement)
    }

    func testCollectingGathersValuesUpToANumberOrTheEnd() {
        let promise = StreamPromise<Int>()
        let three = promise.stream.collect(3)
        let five = promise.stream.collect(5)
        let all = promise.stream.collect()
        for value in 1...4 { promise.success(value) }
        XCTAssertEqual(three.result?.value, [1, 2, 3])
        XCTAssertFalse(all.completed)
        promise.finish()
        XCTAssertEqual(all.result?.value, [1, 2, 3, 4])
        XCTAssertEqual(five.result?.error as? FuturesError, .noSuchElement)
    }

    func testAThrottleLetsTheFirstThroughAndThenTheLatestOfEachPeriod() {
        let promise = StreamPromise<Int>()
        let seen = Recorder<String>()
        let clock = clock
        promise.stream.throttle(1, clock: clock).onSuccess(context: immediate) { seen("\($0) at \(clock.now)") }
        promise.success(1)
        promise.success(2)
        promise.success(3)
        clock.advance(by: 1)
        clock.advance(by: 1)
        promise.success(4)
        promise.success(5)
        promise.finish()
        clock.advance(by: 1)
        XCTAssertEqual(seen.all, ["1 at 0.0", "3 at 1.0", "4 at 2.0", "5 at 3.0"])
    }

    func testWhoIsBusyGetsOnlyTheLatest() {
        let promise = StreamPromise<Int>()
        let context = HeldContext()
        let seen = Recorder<Int>()
        promise.stream.latest(context: context).onSuccess(context: immediate) { seen($0) }
        for value in 1...5 { promise.success(value) }
        context.run()
        promise.success(6)
        promise.success(7)
        context.run()
        XCTAssertEqual(seen.all, [5, 7])
    }

    func testTheEndOfAStreamTravelsThroughItsCombinators() {
        let outer = StreamPromise<Int>()
        let inner = StreamPromise<Int>()
        let all = outer.stream.map(context: immediate) { $0 }
            .flatMap(context: immediate) { _ -> FutureStream<Int> in inner.stream }.collect()
        outer.success(1)
        outer.finish()
        XCTAssertFalse(all.completed)
        inner.success(5)
        inner.finish()
        XCTAssertEqual(all.result?.value, [5])
    }

    func testAFinishedStreamTakesNothingAndPassesItsElementsToLateHandlers() {
        let promise = StreamPromise<Int>()
        promise.success(1)
        XCTAssertTrue(promise.finish())
        XCTAssertFalse(promise.finish())
        XCTAssertFalse(promise.success(2))
        XCTAssertEqual(promise.stream.collect().result?.value, [1])
    }
}
