import BlueCapFutures
import XCTest

/// Futures and streams release what they no longer need.
final class MemoryTests: XCTestCase {
    private final class Held: Sendable {}

    private let immediate = ImmediateContext()

    func testACompletedChainHoldsNothing() {
        weak var captured: Held?
        weak var middle: Future<Int>?
        let promise = Promise<Int>()
        do {
            let held = Held()
            captured = held
            let mapped = promise.future.map(context: immediate) { value -> Int in
                _ = held
                return value
            }
            middle = mapped
            mapped.flatMap(context: immediate) { value -> Future<Int> in
                _ = held
                return Future(value: value)
            }.onComplete(context: immediate) { _ in _ = held }
        }
        XCTAssertNotNil(captured)
        promise.success(1)
        XCTAssertNil(captured)
        XCTAssertNil(middle)
        XCTAssertTrue(promise.completed)
    }

    func testAChainOfAReleasedPromiseIsReleased() {
        weak var captured: Held?
        weak var last: Future<Int>?
        do {
            let promise = Promise<Int>()
            let held = Held()
            captured = held
            last = promise.future.map(context: immediate) { value -> Int in
                _ = held
                return value
            }
        }
        XCTAssertNil(captured)
        XCTAssertNil(last)
    }

    func testAnOperatorReleasesItsClosureIfItsSourceIsNeverCompletedOrTheOperatorIsCancelled() {
        var results: [Future<Int>] = []
        func holds(_ context: any ExecutionContext, _ giveUp: (inout Promise<Int>?, CancelToken) -> Void) -> Bool {
            weak var captured: Held?
            var promise: Promise<Int>? = Promise()
            let token = CancelToken()
            do {
                let held = Held()
                captured = held
                results += [
                    promise?.future.map(context: context, cancelToken: token) { value -> Int in
                        _ = held
                        return value
                    },
                    promise?.future.flatMap(context: context, cancelToken: token) { value -> Future<Int> in
                        _ = held
                        return Future(value: value)
                    },
                    promise?.future.recover(context: context, cancelToken: token) { _ -> Int in
                        _ = held
                        return 1
                    },
                ].compactMap { $0 }
            }
            XCTAssertNotNil(captured)
            giveUp(&promise, token)
            return captured != nil
        }
        for context in [immediate, HeldContext()] as [any ExecutionContext] {
            XCTAssertFalse(holds(context) { promise, _ in promise = nil })
            XCTAssertFalse(holds(context) { promise, token in XCTAssertEqual(promise?.future.cancel(token), true) })
        }
        XCTAssertEqual(results.count, 12)
        XCTAssertFalse(results.contains { $0.completed })
    }

    func testValuesOfEverySizeArriveAndAreReleased() {
        struct Weak {
            weak var held: Held?
        }
        struct Large {
            let held: Held
            let numbers = (1, 2, 3, 4, 5, 6, 7, 8)
        }
        weak var first: Held?
        weak var second: Held?
        do {
            let (small, large) = (Held(), Held())
            (first, second) = (small, large)
            let inside = Future(value: small)
            let elsewhere = Future(value: Large(held: large))
            let observing = Future(value: Weak(held: small))
            XCTAssertTrue(inside.result?.value === small)
            XCTAssertEqual(elsewhere.result?.value?.numbers.7, 8)
            XCTAssertTrue(elsewhere.map(context: immediate) { $0.held }.result?.value === large)
            XCTAssertTrue(observing.result?.value?.held === small)
            XCTAssertEqual(Future<Int?>(value: nil).result?.value, .some(nil))
            XCTAssertTrue(Future(value: ()).result?.isSuccess() ?? false)
        }
        XCTAssertNil(first)
        XCTAssertNil(second)
    }

    func testAChainOnAQueueHoldsNothingOnceItHasRun() {
        weak var captured: Held?
        let queue = Queue("memory")
        let promise = Promise<Int>()
        do {
            let held = Held()
            captured = held
            promise.future.map(context: QueueContext(queue: queue)) { value -> Int in
                _ = held
                return value
            }.onSuccess(context: QueueContext(queue: queue)) { _ in _ = held }
        }
        promise.success(1)
        for _ in 0..<4 { drain(queue) }
        XCTAssertNil(captured)
    }

    func testAFinishedStreamLetsItsHandlersGo() {
        weak var captured: Held?
        let promise = StreamPromise<Int>()
        do {
            let held = Held()
            captured = held
            promise.stream.map(context: immediate) { $0 }.onSuccess(context: immediate) { _ in _ = held }
        }
        promise.success(1)
        XCTAssertNotNil(captured)
        promise.finish()
        XCTAssertNil(captured)
    }

    func testAStreamThatIsGivenUpLetsItsChainGo() {
        weak var captured: Held?
        do {
            let promise = StreamPromise<Int>()
            let held = Held()
            captured = held
            promise.stream.map(context: immediate) { $0 }.onSuccess { _ in _ = held }
        }
        XCTAssertNil(captured)
    }

    func testAStreamThatNobodyHoldsKeepsNothing() {
        final class Counted: Sendable {
            let gone: Recorder<Int>
            init(_ gone: Recorder<Int>) { self.gone = gone }
            deinit { gone(1) }
        }
        let promise = StreamPromise<Int>(capacity: 0)
        let source = FutureStream(context: immediate, dependent: promise.stream)
        let made = Recorder<Int>()
        let gone = Recorder<Int>()
        _ = source.map(context: immediate) { value -> Counted in
            made(value)
            return Counted(gone)
        }
        promise.success(1)
        promise.success(2)
        XCTAssertEqual(made.all, [1, 2], "The mapping may be there for its effect.")
        XCTAssertEqual(gone.count, 2)
    }

    func testAStreamReleasesWhatItEvicts() {
        weak var first: Held?
        let promise = StreamPromise<Held>(capacity: 2)
        do {
            let held = Held()
            first = held
            promise.success(held)
        }
        promise.success(Held())
        XCTAssertNotNil(first)
        promise.success(Held())
        XCTAssertNil(first)
    }

    func testWhatAnEvictedElementDoesWhenItGoesMayUseTheStream() {
        final class Reentrant: Sendable {
            let promise: StreamPromise<Reentrant>?
            let counted: Recorder<Int>
            init(_ promise: StreamPromise<Reentrant>?, _ counted: Recorder<Int>) {
                self.promise = promise
                self.counted = counted
            }
            deinit { counted(promise?.stream.count ?? -1) }
        }
        let promise = StreamPromise<Reentrant>(capacity: 1)
        let counted = Recorder<Int>()
        promise.success(Reentrant(promise, counted))
        promise.success(Reentrant(nil, counted))
        XCTAssertEqual(counted.all, [1])
    }
}
