import BlueCapFutures
import XCTest

/// `future(expression)` was evaluated later, on the default queue, and the right side of `??` by the thread that completed
/// the left: state was read after it had changed, and main-actor state off the main actor.
final class ExpressionInPlaceTests: XCTestCase {
    private final class Counter {
        var n = 0
    }

    @MainActor private final class Model {
        var level = 1
        var reads: [Bool] = []
        var cached: Int {
            reads.append(Thread.isMainThread)
            return level
        }

        func reading() -> Future<Int> { future(cached) }
        func reading(or left: Future<Int>) -> Future<Int> { left ?? self.cached }
    }

    private struct Failure: Error {}

    func testAnExpressionIsEvaluatedBeforeTheCallReturns() {
        let counter = Counter()
        let made = future(counter.n)
        counter.n = 1
        XCTAssertEqual(made.result?.value, 0)
    }

    func testTheValueBesideAFutureIsReadBeforeTheOperatorReturns() {
        let counter = Counter()
        let promise = Promise<Int>()
        let made = promise.future ?? counter.n
        counter.n = 1
        promise.failure(Failure())
        XCTAssertEqual(made.result?.value, 0)
    }

    @MainActor
    func testStateOfTheMainActorIsReadOnTheMainActor() {
        let model = Model()
        let promise = Promise<Int>()
        let (made, recovered) = (model.reading(), model.reading(or: promise.future))
        model.level = 2
        let isComplete = expectation(description: "complete")
        recovered.onComplete(context: ImmediateContext()) { _ in isComplete.fulfill() }
        DispatchQueue.global().async { promise.failure(Failure()) }
        wait(for: [isComplete], timeout: 60)
        XCTAssertEqual(made.result?.value, 1)
        XCTAssertEqual(recovered.result?.value, 1)
        XCTAssertEqual(model.reads, [true, true])
    }

    func testTheValueBesideAFutureThatHasSucceededIsNotRead() {
        var count = 0
        func fallback() -> Int {
            count += 1
            return 5
        }
        XCTAssertEqual((Future(value: 1) ?? fallback()).result?.value, 1)
        XCTAssertEqual(count, 0)
        XCTAssertEqual((Future<Int>(error: Failure()) ?? fallback()).result?.value, 5)
        XCTAssertEqual(count, 1)
    }

    func testTheRequestBesideAFutureIsMadeOnlyAfterAFailure() {
        let count = Locked(0)
        @Sendable func request() -> Future<Int> {
            count.withLock { $0 += 1 }
            return Future(value: 7)
        }
        let (good, bad) = (Promise<Int>(), Promise<Int>())
        let results = (good.future ?? request(), bad.future ?? request())
        XCTAssertEqual(count.withLock { $0 }, 0)
        good.success(1)
        XCTAssertEqual(count.withLock { $0 }, 0)
        bad.failure(Failure())
        XCTAssertEqual(count.withLock { $0 }, 1)
        XCTAssertEqual(results.0.result?.value, 1)
        XCTAssertEqual(results.1.result?.value, 7)
    }

    func testWhatTheRightSideThrowsIsTheFailure() {
        func fallback() throws -> Int { throw FuturesError.invalidValue }
        let made = Future<Int>(error: Failure()) ?? (try fallback())
        XCTAssertEqual(made.result?.error as? FuturesError, .invalidValue)
    }
}
