import BlueCapFutures
import XCTest

final class AsyncTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testAValueIsAwaited() async throws {
        let promise = Promise<Int>()
        async let value = promise.future.value
        promise.success(5)
        let awaited = try await value
        XCTAssertEqual(awaited, 5)
        let complete = try await promise.future.value
        XCTAssertEqual(complete, 5)
    }

    func testAnErrorIsThrown() async {
        let promise = Promise<Int>()
        async let value = promise.future.value
        promise.failure(TestError.first)
        do {
            _ = try await value
            XCTFail("A failed future has no value.")
        } catch {
            XCTAssertEqual(error as? TestError, .first)
        }
    }

    func testACancelledTaskStopsWaitingAndTheFutureGoesOn() async {
        let promise = Promise<Int>()
        let task = Task { try await promise.future.value }
        task.cancel()
        let outcome = await task.result
        XCTAssertThrowsError(try outcome.get()) { XCTAssertTrue($0 is CancellationError) }
        XCTAssertTrue(promise.success(1))
    }

    func testATaskThatIsCancelledAlreadyDoesNotWait() async {
        let promise = Promise<Int>()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await promise.future.value
        }
        task.cancel()
        let outcome = await task.result
        XCTAssertThrowsError(try outcome.get()) { XCTAssertTrue($0 is CancellationError) }
    }

    func testAnAsynchronousFunctionBecomesAFuture() async throws {
        let value = try await Future { () async throws -> Int in
            await Task.yield()
            return 3
        }.value
        XCTAssertEqual(value, 3)
        let failed = Future { () async throws -> Int in throw TestError.first }
        do {
            _ = try await failed.value
            XCTFail("What the function throws is the failure.")
        } catch {
            XCTAssertEqual(error as? TestError, .first)
        }
    }

    func testCancellingSuchAFutureCancelsItsTask() async {
        let token = CancelToken()
        let never = Promise<Int>()
        let future = Future(cancelToken: token) { try await never.future.value }
        XCTAssertTrue(future.cancel(token))
        do {
            _ = try await future.value
            XCTFail("The task was cancelled.")
        } catch {
            XCTAssertTrue(error is CancellationError)
        }
        XCTAssertFalse(future.cancel(token))
    }

    func testALoopReceivesWhatIsKeptAndWhatComesUntilTheEnd() async throws {
        let promise = StreamPromise<Int>()
        promise.success(1)
        promise.success(2)
        let task = Task {
            var seen: [Int] = []
            for try await value in promise.stream {
                seen.append(value)
                if value == 2 { promise.success(3) }
                if value == 3 { promise.finish() }
            }
            return seen
        }
        let seen = try await task.value
        XCTAssertEqual(seen, [1, 2, 3])
    }

    func testALoopOverValuesEndsWithTheFirstFailureAndOneOverOutcomesGoesOn() async {
        let promise = StreamPromise<Int>()
        promise.success(1)
        promise.failure(TestError.first)
        promise.success(2)
        promise.finish()
        var values: [Int] = []
        do {
            for try await value in promise.stream { values.append(value) }
            XCTFail("A failure is thrown.")
        } catch {
            XCTAssertEqual(error as? TestError, .first)
        }
        XCTAssertEqual(values, [1])
        var outcomes: [Int?] = []
        for await outcome in promise.stream.outcomes { outcomes.append(outcome.value) }
        XCTAssertEqual(outcomes, [1, nil, 2])
    }

    func testABusyLoopMissesTheOldest() async throws {
        let promise = StreamPromise<Int>(capacity: 0)
        var iterator = promise.stream.values(waiting: 3).makeAsyncIterator()
        for value in 1...10 { promise.success(value) }
        promise.finish()
        var seen: [Int] = []
        while let value = try await iterator.next() { seen.append(value) }
        XCTAssertEqual(seen, [8, 9, 10])
    }

    func testCancellingTheTaskEndsTheSubscription() async throws {
        let promise = StreamPromise<Int>()
        let subscribed = expectation(description: "the loop received something")
        let task = Task {
            for try await _ in promise.stream { subscribed.fulfill() }
        }
        promise.success(1)
        await fulfillment(of: [subscribed], timeout: 60)
        task.cancel()
        try await task.value
        XCTAssertFalse(promise.stream.isWatched)
    }

    func testLeavingTheLoopEndsTheSubscription() async throws {
        let promise = StreamPromise<Int>()
        promise.success(1)
        for try await _ in promise.stream { break }
        XCTAssertFalse(promise.stream.isWatched)
    }
}
