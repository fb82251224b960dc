import BlueCapFutures
import XCTest

final class FutureTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testHandlersRunInTheOrderTheyWereAdded() {
        let promise = Promise<Int>()
        let seen = Recorder<String>()
        promise.future.onSuccess(context: immediate) { seen("first \($0)") }
        promise.future.onComplete(context: immediate) { seen("second \($0.value ?? -1)") }
        promise.future.onFailure(context: immediate) { _ in seen("never") }
        promise.success(7)
        promise.future.onSuccess(context: immediate) { seen("late \($0)") }
        XCTAssertEqual(seen.all, ["first 7", "second 7", "late 7"])
    }

    func testAnyNumberOfHandlersRunsInItsOrder() {
        for count in 0...5 {
            let promise = Promise<Int>()
            let seen = Recorder<Int>()
            for number in 0..<count { promise.future.onSuccess(context: immediate) { seen($0 + number) } }
            promise.success(10)
            XCTAssertEqual(seen.all, Array(10..<10 + count))
        }
    }

    func testAPromiseCompletesOnce() {
        let promise = Promise<Int>()
        XCTAssertFalse(promise.completed)
        XCTAssertTrue(promise.success(1))
        XCTAssertFalse(promise.success(2))
        XCTAssertFalse(promise.failure(TestError.first))
        XCTAssertTrue(promise.completed)
        XCTAssertEqual(promise.future.result?.value, 1)
    }

    func testAHandlerAddedByAHandlerRunsAfterTheOthers() {
        let promise = Promise<Int>()
        let seen = Recorder<String>()
        promise.future.onSuccess(context: immediate) { _ in
            seen("first")
            promise.future.onSuccess(context: ImmediateContext()) { _ in seen("added during delivery") }
        }
        promise.future.onSuccess(context: immediate) { _ in seen("second") }
        promise.success(1)
        XCTAssertEqual(seen.all, ["first", "second", "added during delivery"])
    }

    func testCombinatorsOnTheImmediateContextCompleteAtOnce() {
        let promise = Promise<Int>()
        let mapped = promise.future.map(context: immediate) { $0 + 1 }
            .flatMap(context: immediate) { value -> Future<String> in Future(value: "\(value)") }
        XCTAssertFalse(mapped.completed)
        promise.success(1)
        XCTAssertEqual(mapped.result?.value, "2")
    }

    func testAThrowingClosureFailsTheResult() {
        let future = Future(value: 1)
        XCTAssertEqual(
            future.map(context: immediate) { _ -> Int in throw TestError.first }.result?.error as? TestError, .first)
        XCTAssertEqual(
            future.withFilter(context: immediate) { $0 > 1 }.result?.error as? FuturesError, .noSuchElement)
        XCTAssertEqual(
            Future<Int>(error: TestError.first).recover(context: immediate) { _ in 5 }.result?.value, 5)
    }

    func testTheDefaultContextIsASerialQueueThatNeedsNoMainLoop() {
        let promise = Promise<Int>()
        let done = expectation(description: "handlers ran")
        let seen = Recorder<Int>()
        for number in 0..<100 { promise.future.onSuccess { seen(number + $0) } }
        promise.future.onSuccess { _ in done.fulfill() }
        promise.success(0)
        wait(for: [done], timeout: 60)
        XCTAssertEqual(seen.all, Array(0..<100))
    }

    func testACancelledHandlerDoesNotRunEvenOnItsWayToItsContext() {
        let context = HeldContext()
        let token = CancelToken()
        let promise = Promise<Int>()
        let seen = Recorder<Int>()
        promise.future.onSuccess(context: context, cancelToken: token) { seen($0) }
        promise.future.onSuccess(context: immediate, cancelToken: token) { seen($0 * 10) }
        promise.success(1)
        XCTAssertEqual(seen.all, [10])
        XCTAssertTrue(promise.future.cancel(token))
        XCTAssertFalse(promise.future.cancel(token))
        context.run()
        XCTAssertEqual(seen.all, [10])
    }

    func testAChainOfAHundredThousandStepsNeitherOverflowsNorNests() {
        let promise = Promise<Int>()
        var last = promise.future
        for _ in 0..<100_000 {
            last = last.flatMap(context: immediate) { value -> Future<Int> in Future(value: value + 1) }
        }
        promise.success(0)
        XCTAssertEqual(last.result?.value, 100_000)
    }

    func testARecursionOfAHundredThousandStepsCompletesBeforeItReturns() {
        @Sendable func count(_ value: Int) -> Future<Int> {
            guard value < 100_000 else { return Future(value: value) }
            return Future(value: value + 1).flatMap(context: ImmediateContext()) { next -> Future<Int> in count(next) }
        }
        XCTAssertEqual(count(0).result?.value, 100_000)
    }

    func testAChainThatIsGivenUpUnwindsWithoutNesting() {
        var promise: Promise<Int>? = Promise<Int>()
        weak let first = promise?.future
        var last = promise?.future
        for _ in 0..<100_000 { last = last?.map(context: immediate) { $0 + 1 } }
        promise = nil
        XCTAssertNil(first)
        XCTAssertNotNil(last)
    }
}
