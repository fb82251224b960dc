import BlueCapFutures
import XCTest

/// Handlers and operators can be cancelled in every state, without an effect on others.
final class CancelTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testWhatWasNeverRegisteredCannotBeCancelled() {
        XCTAssertFalse(Future(value: 1).cancel(CancelToken()))
        XCTAssertFalse(FutureStream<Int>().cancel(CancelToken()))
        let promise = Promise<Int>()
        promise.future.onSuccess(context: immediate) { _ in }
        XCTAssertFalse(promise.future.cancel(CancelToken()))
        XCTAssertFalse(promise.future.cancel(.uncancellable))
    }

    // MARK: Streams that end with their last reader

    private func selfEnding() -> (stream: FutureStream<Int>, ends: Recorder<Bool>) {
        let (stream, ends) = (FutureStream<Int>(), Recorder<Bool>())
        stream.lastReaderEnded = { [weak stream] in
            stream?.finish()
            ends(true)
        }
        return (stream, ends)
    }

    func testAHandlerThatIsAddedBeforeTheLastOneIsCancelledKeepsTheStream() {
        for isAddedFirst in [true, false] {
            let (stream, ends) = selfEnding()
            let (first, second, third) = (CancelToken(), CancelToken(), CancelToken())
            let seen = Recorder<Int>()
            stream.onSuccess(context: immediate, cancelToken: first) { [weak stream, immediate] _ in
                if !isAddedFirst {
                    stream?.onSuccess(context: immediate, cancelToken: third) { _ in XCTFail("cancelled") }
                }
                stream?.onSuccess(context: immediate, cancelToken: second) { seen($0) }
                stream?.cancel(first)
                stream?.cancel(third)
            }
            stream.success(1)
            stream.success(2)
            XCTAssertEqual(ends.all, [])
            XCTAssertEqual(seen.all, [1, 2])
            stream.cancel(second)
            XCTAssertEqual(ends.all, [true])
            XCTAssertTrue(stream.isFinished)
        }
    }

    func testTheLastReaderOfAnOperatorIsThatOfItsSource() {
        let immediate = immediate
        let operators: [(FutureStream<Int>) -> FutureStream<Int>] = [
            { $0.map(context: immediate) { $0 } },
            { $0.map { $0 } },
            { $0.withFilter(context: immediate) { _ in true }.andThen(context: immediate) { _ in } },
            { $0.recover(context: immediate) { _ in 0 }.mapError(context: immediate) { $0 } },
            { $0.flatMap(context: immediate) { Future(value: $0) } },
            { $0.recoverWith(context: immediate) { _ in Future(value: 0) } },
            { $0.take(5) },
            { $0.latest(context: immediate) },
            { $0.throttle(1) },
            { FutureStream(context: immediate, dependent: $0) },
        ]
        for (number, derive) in operators.enumerated() {
            let (stream, ends) = selfEnding()
            let (derived, token, other) = (derive(stream), CancelToken(), CancelToken())
            derived.onSuccess(context: immediate, cancelToken: token) { _ in }
            stream.onSuccess(context: immediate, cancelToken: other) { _ in }
            derived.cancel(token)
            XCTAssertTrue(derived.isFinished, "operator \(number)")
            XCTAssertEqual(ends.all, [], "operator \(number)")
            stream.cancel(other)
            XCTAssertEqual(ends.all, [true], "operator \(number)")
        }
    }

    func testOneTokenCancelsAllItsHandlersAndNoOthers() {
        let promise = Promise<Int>()
        let token = CancelToken()
        let seen = Recorder<String>()
        promise.future.onSuccess(context: immediate, cancelToken: token) { _ in seen("cancelled") }
        promise.future.onComplete(context: immediate, cancelToken: token) { _ in seen("cancelled") }
        promise.future.onSuccess(context: immediate, cancelToken: CancelToken()) { _ in seen("other token") }
        promise.future.onSuccess(context: immediate) { _ in seen("no token") }
        XCTAssertTrue(promise.future.cancel(token))
        promise.success(1)
        XCTAssertEqual(seen.all, ["other token", "no token"])
    }

    func testEitherOfTwoHandlersCanBeCancelled() {
        for cancelled in 0..<2 {
            let promise = Promise<Int>()
            let seen = Recorder<Int>()
            let tokens = [CancelToken(), CancelToken()]
            for (number, token) in tokens.enumerated() {
                promise.future.onSuccess(context: immediate, cancelToken: token) { _ in seen(number) }
            }
            XCTAssertTrue(promise.future.cancel(tokens[cancelled]))
            XCTAssertFalse(promise.future.cancel(tokens[cancelled]))
            promise.success(1)
            XCTAssertEqual(seen.all, [1 - cancelled])
        }
    }

    func testACancelledCombinatorNeverCompletes() {
        let promise = Promise<Int>()
        let token = CancelToken()
        let results: [Future<Int>] = [
            promise.future.map(context: immediate, cancelToken: token) { $0 },
            promise.future.flatMap(context: immediate, cancelToken: token) { Future(value: $0) },
            promise.future.withFilter(context: immediate, cancelToken: token) { _ in true },
            promise.future.recover(context: immediate, cancelToken: token) { _ in 0 },
            promise.future.andThen(context: immediate, cancelToken: token) { _ in },
            promise.future.mapError(context: immediate, cancelToken: token) { $0 },
        ]
        XCTAssertTrue(promise.future.cancel(token))
        promise.success(1)
        XCTAssertFalse(results.contains { $0.completed })
    }

    func testAfterItHasRunAHandlerCannotBeCancelled() {
        let promise = Promise<Int>()
        let token = CancelToken()
        promise.future.onSuccess(context: immediate, cancelToken: token) { _ in }
        promise.success(1)
        XCTAssertFalse(promise.future.cancel(token))
    }

    func testAHandlerMayCancelTheNextOne() {
        let promise = Promise<Int>()
        let token = CancelToken()
        let seen = Recorder<String>()
        promise.future.onSuccess(context: immediate) { _ in
            seen("first")
            XCTAssertTrue(promise.future.cancel(token))
        }
        promise.future.onSuccess(context: immediate, cancelToken: token) { _ in seen("second") }
        promise.success(1)
        XCTAssertEqual(seen.all, ["first"])
    }

    func testAStreamHandlerMayCancelItself() {
        let promise = StreamPromise<Int>()
        let token = CancelToken()
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: immediate, cancelToken: token) { value in
            seen(value)
            if value == 2 { XCTAssertTrue(promise.stream.cancel(token)) }
        }
        for value in 1...4 { promise.success(value) }
        XCTAssertEqual(seen.all, [1, 2])
    }

    func testAHandlerAddedByAHandlerCanBeCancelledBeforeItReceivesAnything() {
        let promise = StreamPromise<Int>(capacity: 5)
        let token = CancelToken()
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: immediate) { value in
            guard value == 1 else { return }
            promise.stream.onSuccess(context: ImmediateContext(), cancelToken: token) { seen($0) }
            XCTAssertTrue(promise.stream.cancel(token))
        }
        promise.success(1)
        promise.success(2)
        XCTAssertEqual(seen.all, [])
    }

    func testNothingComesFromTheStreamsOfACancelledFlatMap() {
        let outer = StreamPromise<Int>()
        let inner = StreamPromise<Int>()
        let token = CancelToken()
        let result = outer.stream.flatMap(context: immediate, cancelToken: token) { _ -> FutureStream<Int> in
            inner.stream
        }
        outer.success(0)
        inner.success(1)
        XCTAssertTrue(outer.stream.cancel(token))
        inner.success(2)
        XCTAssertEqual(result.count, 1)
    }

    func testCancellingReleasesWhatTheHandlerHolds() {
        final class Held: Sendable {}
        let promise = Promise<Int>()
        let stream = StreamPromise<Int>()
        let token = CancelToken()
        weak var inFuture: Held?
        weak var inStream: Held?
        do {
            let (first, second) = (Held(), Held())
            (inFuture, inStream) = (first, second)
            promise.future.onSuccess(context: immediate, cancelToken: token) { _ in _ = first }
            stream.stream.onSuccess(context: immediate, cancelToken: token) { _ in _ = second }
        }
        XCTAssertNotNil(inFuture)
        XCTAssertNotNil(inStream)
        promise.future.cancel(token)
        stream.stream.cancel(token)
        XCTAssertNil(inFuture)
        XCTAssertNil(inStream)
    }
}
