import BlueCapFutures
import XCTest

/// `completeWith` with futures in every state.
final class CompleteWithTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testTheNextElementOfAStreamCompletesAFuture() {
        let source = StreamPromise<Int>(capacity: 0)
        let future = Future<Int>()
        future.completeWith(context: immediate, stream: source.stream)
        XCTAssertFalse(future.completed)
        source.success(1)
        source.success(2)
        XCTAssertEqual(future.result?.value, 1)
    }

    func testAnErrorAmongTheElementsOfAStreamCompletesAFuture() {
        let source = StreamPromise<Int>()
        let promise = Promise<Int>()
        promise.completeWith(context: immediate, stream: source.stream)
        source.failure(TestError.second)
        source.success(2)
        XCTAssertEqual(promise.future.result?.error as? TestError, .second)
    }

    func testTheOldestElementThatIsKeptCompletesAFuture() {
        let stream = FutureStream<Int>(capacity: 2)
        for value in 1...3 { stream.success(value) }
        let future = Future<Int>()
        future.completeWith(context: immediate, stream: stream)
        XCTAssertEqual(future.result?.value, 2)
    }

    func testAStreamThatEndsWithoutAnElementFailsAFuture() {
        let source = StreamPromise<Int>()
        let future = Future<Int>()
        future.completeWith(context: immediate, stream: source.stream)
        source.finish()
        XCTAssertEqual(future.result?.error as? FuturesError, .noSuchElement)
    }

    func testAFutureIsCompletedByAStreamOnTheContext() {
        let context = HeldContext()
        let future = Future<Int>()
        future.completeWith(context: context, stream: FutureStream(value: 4))
        XCTAssertFalse(future.completed)
        context.run()
        XCTAssertEqual(future.result?.value, 4)
    }

    func testAStreamForgetsTheFutureThatItHasCompleted() {
        let source = StreamPromise<Int>(capacity: 0)
        weak var weakFuture: Future<Int>?
        do {
            let future = Future<Int>()
            weakFuture = future
            future.completeWith(context: immediate, stream: source.stream)
            source.success(1)
        }
        XCTAssertNil(weakFuture)
        XCTAssertFalse(source.stream.isWatched)
    }

    func testAFutureOrStreamThatCouldNotBeMadeIsAnError() {
        let (first, second) = (Future<Int>(), Future<Int>())
        first.completeWith(context: immediate, future: Try(Future(value: 1)))
        second.completeWith(context: immediate, future: Try<Future<Int>>.failure(TestError.first))
        XCTAssertEqual(first.result?.value, 1)
        XCTAssertEqual(second.result?.error as? TestError, .first)
        let stream = FutureStream<Int>()
        stream.completeWith(context: immediate, stream: Try(FutureStream(value: 2)))
        stream.completeWith(context: immediate, stream: Try<FutureStream<Int>>.failure(TestError.first))
        stream.completeWith(context: immediate, future: Try(Future(value: 3)))
        stream.completeWith(context: immediate, future: Try<Future<Int>>.failure(TestError.second))
        XCTAssertEqual(stream.futures.map { $0.result?.value }, [2, nil, 3, nil])
        XCTAssertEqual(stream.futures.compactMap { $0.result?.error as? TestError }, [.first, .second])
    }
}
