import BlueCapFutures
import XCTest

/// Every way from a future or a stream to another future or stream.
final class CrossingTests: XCTestCase {
    private let immediate = ImmediateContext()

    // MARK: Future to future

    func testAFutureLeadsToAFuture() {
        let first = Promise<Int>()
        let second = Promise<String>()
        let result = first.future.flatMap(context: immediate) { _ -> Future<String> in second.future }
        first.success(1)
        XCTAssertFalse(result.completed)
        second.success("done")
        XCTAssertEqual(result.result?.value, "done")
    }

    func testAFailedFutureIsRecoveredWithAFuture() {
        let first = Promise<Int>()
        let second = Promise<Int>()
        let result = first.future.recoverWith(context: immediate) { _ -> Future<Int> in second.future }
        first.failure(TestError.first)
        XCTAssertFalse(result.completed)
        second.success(2)
        XCTAssertEqual(result.result?.value, 2)
    }

    func testMapErrorAndAndThenPassWhatTheyDoNotTouch() {
        let seen = Recorder<Int>()
        let value = Future(value: 1).mapError(context: immediate) { _ in TestError.second }
            .andThen(context: immediate) { seen($0) }
        XCTAssertEqual(value.result?.value, 1)
        XCTAssertEqual(seen.all, [1])
        let error = Future<Int>(error: TestError.first).andThen(context: immediate) { seen($0) }
            .mapError(context: immediate) { _ in TestError.second }
        XCTAssertEqual(error.result?.error as? TestError, .second)
        XCTAssertEqual(seen.all, [1])
    }

    func testAndThenMayAskForTheWholeOutcome() {
        let seen = Recorder<Bool>()
        let passed = Future<Int>(error: TestError.first).andThen(context: immediate) { outcome in
            switch outcome {
            case .success: seen(true)
            case .failure: seen(false)
            }
        }
        XCTAssertEqual(seen.all, [false])
        XCTAssertTrue(passed.result?.isFailure() ?? false)
    }

    func testPromisesAndFuturesCompleteWithOthers() {
        let source = Promise<Int>()
        let target = Promise<Int>()
        target.completeWith(context: immediate, future: source.future)
        let dependent = Future(context: immediate, dependent: source.future)
        source.success(4)
        XCTAssertEqual(target.future.result?.value, 4)
        XCTAssertEqual(dependent.result?.value, 4)
    }

    func testAResolverCompletesOrThrows() {
        XCTAssertEqual(Future<Int> { complete in complete(.success(1)) }.result?.value, 1)
        XCTAssertEqual(Future<Int> { _ in throw TestError.first }.result?.error as? TestError, .first)
    }

    func testTheRightOfADoubleQuestionMarkIsForFailures() {
        XCTAssertEqual((Future<Int>(error: TestError.first) ?? 5).result?.value, 5)
        XCTAssertEqual((Future<Int>(error: TestError.first) ?? Future(value: 6)).result?.value, 6)
        XCTAssertEqual((Future(value: 1) ?? 5).result?.value, 1)
    }

    // MARK: Future to stream

    func testAFutureLeadsToAStream() {
        let first = Promise<Int>()
        let second = StreamPromise<Int>()
        let result = first.future.flatMap(capacity: 2, context: immediate) { _ -> FutureStream<Int> in second.stream }
        second.success(1)
        first.success(0)
        second.failure(TestError.first)
        second.success(3)
        XCTAssertEqual(result.capacity, 2)
        XCTAssertEqual(kept(result), ["first", "3"])
    }

    func testAFailedFutureLeadsToOneFailedElement() {
        let result = Future<Int>(error: TestError.first).flatMap(context: immediate) { _ -> FutureStream<Int> in
            XCTFail("The mapping is for values.")
            return FutureStream()
        }
        XCTAssertEqual(kept(result), ["first"])
    }

    func testAFailedFutureIsRecoveredWithAStream() {
        let stream = StreamPromise<Int>()
        let result = Future<Int>(error: TestError.first).recoverWith(context: immediate) { _ -> FutureStream<Int> in
            stream.stream
        }
        stream.success(1)
        stream.success(2)
        XCTAssertEqual(kept(result), ["1", "2"])
        let passed = Future(value: 7).recoverWith(capacity: 1, context: immediate) { _ -> FutureStream<Int> in
            FutureStream()
        }
        XCTAssertEqual(kept(passed), ["7"])
    }

    // MARK: Stream to stream

    func testElementsOfAStreamAreTransformed() {
        let promise = StreamPromise<Int>()
        let mapped = promise.stream.map(context: immediate) { value -> String in
            guard value < 3 else { throw TestError.second }
            return "<\(value)>"
        }
        let filtered = promise.stream.withFilter(context: immediate) { $0 % 2 == 0 }
        let recovered = promise.stream.recover(context: immediate) { _ in -1 }
        let renamed = promise.stream.mapError(context: immediate) { _ in TestError.second }
        promise.success(2)
        promise.failure(TestError.first)
        promise.success(3)
        XCTAssertEqual(kept(mapped), ["<2>", "first", "second"])
        XCTAssertEqual(kept(filtered), ["2", "first", "noSuchElement"])
        XCTAssertEqual(kept(recovered), ["2", "-1", "3"])
        XCTAssertEqual(kept(renamed), ["2", "second", "3"])
    }

    func testEachElementLeadsToAStream() {
        let outer = StreamPromise<Int>()
        let inner = [StreamPromise<Int>(), StreamPromise<Int>()]
        let result = outer.stream.flatMap(context: immediate) { index -> FutureStream<Int> in
            guard index < 2 else { throw TestError.second }
            return inner[index].stream
        }
        outer.success(0)
        inner[0].success(1)
        outer.success(1)
        inner[1].success(10)
        inner[0].success(2)
        outer.failure(TestError.first)
        outer.success(2)
        XCTAssertEqual(kept(result), ["1", "10", "2", "first", "second"])
    }

    func testEachFailureIsRecoveredWithAStream() {
        let outer = StreamPromise<Int>()
        let inner = StreamPromise<Int>()
        let result = outer.stream.recoverWith(context: immediate) { _ -> FutureStream<Int> in inner.stream }
        outer.success(1)
        outer.failure(TestError.first)
        inner.success(2)
        outer.success(3)
        XCTAssertEqual(kept(result), ["1", "2", "3"])
    }

    func testAStreamIsFilledByOthers() {
        let target = StreamPromise<Int>()
        let stream = StreamPromise<Int>()
        let future = Promise<Int>()
        target.completeWith(context: immediate, stream: stream.stream)
        target.completeWith(context: immediate, future: future.future)
        stream.success(1)
        future.success(2)
        stream.success(3)
        XCTAssertEqual(kept(target.stream), ["1", "2", "3"])
        let mirror = FutureStream(capacity: 2, context: immediate, dependent: target.stream)
        XCTAssertEqual(kept(mirror), ["2", "3"])
    }

    // MARK: Stream to future

    func testEachElementLeadsToAFuture() {
        let outer = StreamPromise<Int>()
        let inner = [Promise<Int>(), Promise<Int>()]
        let result = outer.stream.flatMap(context: immediate) { index -> Future<Int> in inner[index].future }
        outer.success(0)
        outer.success(1)
        inner[1].success(10)
        inner[0].failure(TestError.second)
        outer.failure(TestError.first)
        XCTAssertEqual(kept(result), ["10", "second", "first"])
    }

    func testEachFailureIsRecoveredWithAFuture() {
        let outer = StreamPromise<Int>()
        let inner = Promise<Int>()
        let result = outer.stream.recoverWith(context: immediate) { _ -> Future<Int> in inner.future }
        outer.failure(TestError.first)
        outer.success(1)
        inner.success(2)
        XCTAssertEqual(kept(result), ["1", "2"])
    }

    // MARK: Completion blocks

    func testCompletionBlocksBecomeFutures() {
        func optional(_ value: Int?, _ error: (any Error)?) -> (@escaping (Int?, (any Error)?) -> Void) -> Void {
            { $0(value, error) }
        }
        let plain: Future<Int> = future(method: optional(1, nil))
        XCTAssertEqual(plain.result?.value, 1)
        let wrapped: Future<Int?> = future(method: optional(2, nil))
        XCTAssertEqual(wrapped.result?.value, 2)
        let neither: Future<Int> = future(method: optional(nil, nil))
        XCTAssertEqual(neither.result?.error as? FuturesError, .invalidValue)
        let neitherWrapped: Future<Int?> = future(method: optional(nil, nil))
        XCTAssertEqual(neitherWrapped.result?.value, .some(nil))
        let failed: Future<Int> = future(method: optional(1, TestError.first))
        XCTAssertEqual(failed.result?.error as? TestError, .first)
        XCTAssertTrue(
            future(method: { (done: @escaping ((any Error)?) -> Void) in done(nil) }).result?.isSuccess() ?? false)
        XCTAssertEqual(future(method: { (done: @escaping (Int) -> Void) in done(3) }).result?.value, 3)
    }

    func testCompletionBlocksBecomeStreams() {
        let stream: FutureStream<Int> = futureStream { (done: @escaping (Int?, (any Error)?) -> Void) in
            done(1, nil)
            done(nil, TestError.first)
            done(nil, nil)
        }
        XCTAssertEqual(kept(stream), ["1", "first", "invalidValue"])
        let optional: FutureStream<Int?> = futureStream { (done: @escaping (Int?, (any Error)?) -> Void) in
            done(1, nil)
            done(nil, TestError.first)
            done(nil, nil)
        }
        XCTAssertEqual(kept(optional), ["Optional(1)", "first", "nil"])
    }

    func testATaskBecomesAFutureOnItsContext() {
        let context = HeldContext()
        let made = future(context: context) { 6 * 7 }
        XCTAssertFalse(made.completed)
        context.run()
        XCTAssertEqual(made.result?.value, 42)
        let failed: Future<Int> = future(context: immediate) { throw TestError.first }
        XCTAssertEqual(failed.result?.error as? TestError, .first)
        let streamed = futureStream(context: immediate) { 1 }
        XCTAssertEqual(kept(streamed), ["1"])
    }

    /// What a stream keeps, in words.
    private func kept<T>(_ stream: FutureStream<T>) -> [String] {
        stream.futures.map { future in
            switch future.result {
            case .success(let value): "\(value)"
            case .failure(let error): "\(error)"
            case nil: "incomplete"
            }
        }
    }
}
