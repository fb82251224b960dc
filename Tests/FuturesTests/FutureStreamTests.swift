import BlueCapFutures
import XCTest

final class FutureStreamTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testALateHandlerReceivesWhatIsKeptAndThenWhatComes() {
        let promise = StreamPromise<Int>(capacity: 3)
        for value in 1...5 { promise.success(value) }
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: immediate) { seen($0) }
        promise.success(6)
        XCTAssertEqual(seen.all, [3, 4, 5, 6])
        XCTAssertEqual(promise.stream.futures.map { $0.result?.value }, [4, 5, 6])
    }

    func testAFailureIsAnElementAndDoesNotEndTheStream() {
        let promise = StreamPromise<Int>()
        let values = Recorder<Int>()
        let errors = Recorder<TestError?>()
        promise.stream.onSuccess(context: immediate) { values($0) }
        promise.stream.onFailure(context: immediate) { errors($0 as? TestError) }
        promise.success(1)
        promise.failure(TestError.first)
        promise.success(2)
        XCTAssertEqual(values.all, [1, 2])
        XCTAssertEqual(errors.all, [.first])
        XCTAssertEqual(promise.stream.count, 3)
    }

    func testAStreamOfCapacityZeroKeepsNothing() {
        let promise = StreamPromise<Int>(capacity: 0)
        let seen = Recorder<Int>()
        promise.success(1)
        promise.stream.onSuccess(context: immediate) { seen($0) }
        promise.success(2)
        XCTAssertEqual(seen.all, [2])
        XCTAssertEqual(promise.stream.count, 0)
    }

    func testAWatchedStreamOfUnlimitedCapacityKeepsTheLatest() {
        let promise = StreamPromise<Int>()
        for value in 0..<10_000 { promise.success(value) }
        XCTAssertEqual(promise.stream.count, 10_000)
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: immediate) { seen($0) }
        for value in 10_000..<20_000 { promise.success(value) }
        XCTAssertEqual(seen.all, Array(0..<20_000))
        XCTAssertEqual(promise.stream.count, FutureStream<Int>.watchedCapacity)
        XCTAssertEqual(promise.stream.futures.first?.result?.value, 20_000 - FutureStream<Int>.watchedCapacity)
    }

    func testWhatAHandlerAddsIsDeliveredAfterItReturns() {
        let promise = StreamPromise<Int>()
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: immediate) { value in
            if value < 3 { promise.success(value + 1) }
            seen(value)
        }
        promise.success(1)
        XCTAssertEqual(seen.all, [1, 2, 3])
    }

    func testABatchWakesAHandlersContextOnce() {
        let promise = StreamPromise<Int>()
        let context = HeldContext()
        let seen = Recorder<Int>()
        promise.stream.map(context: immediate) { $0 * 2 }.onSuccess(context: context) { seen($0) }
        promise.success(contentsOf: Array(1...100))
        XCTAssertEqual(context.count, 1)
        context.run()
        XCTAssertEqual(seen.all, (1...100).map { $0 * 2 })
    }

    func testElementsOfRacingProducersReachAllHandlersInOneOrder() {
        let promise = StreamPromise<Int>(capacity: 0)
        let first = Recorder<Int>()
        let second = Recorder<Int>()
        let queue = Queue("handlers")
        promise.stream.onSuccess(context: immediate) { first($0) }
        promise.stream.onSuccess(context: QueueContext(queue: queue)) { second($0) }
        DispatchQueue.concurrentPerform(iterations: 8) { producer in
            for value in 0..<1_000 { promise.success(producer * 1_000 + value) }
        }
        drain(queue)
        XCTAssertEqual(first.count, 8_000)
        XCTAssertEqual(first.all, second.all)
        for producer in 0..<8 {
            let own = first.all.filter { $0 / 1_000 == producer }
            XCTAssertEqual(own, own.sorted())
        }
    }

    func testACancelledHandlerReceivesNothingMore() {
        let promise = StreamPromise<Int>()
        let context = HeldContext()
        let token = CancelToken()
        let seen = Recorder<Int>()
        promise.stream.onSuccess(context: context, cancelToken: token) { seen($0) }
        promise.success(1)
        context.run()
        promise.success(2)
        XCTAssertTrue(promise.stream.cancel(token))
        XCTAssertFalse(promise.stream.cancel(token))
        context.run()
        promise.success(3)
        context.run()
        XCTAssertEqual(seen.all, [1])
    }
}
