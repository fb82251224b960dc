import BlueCapFutures
import XCTest

/// The laws hold for futures that are complete and for futures that complete later, on every context.
final class FutureLawTests: XCTestCase {
    private let outcomes: [Try<Int>] = [.success(3), .failure(TestError.first)]

    private let addOne: @Sendable (Int) -> Future<Int> = { Future(value: $0 + 1) }
    private let half: @Sendable (Int) -> Future<Int> = {
        $0 % 2 == 0 ? Future(value: $0 / 2) : Future(error: TestError.second)
    }

    func testMappingTheIdentityChangesNothing() {
        compare { future, context in (future.map(context: context) { $0 }, future) }
    }

    func testMappingTwiceIsMappingTheComposition() {
        compare { future, context in
            (
                future.map(context: context) { $0 + 1 }.map(context: context) { $0 * 2 },
                future.map(context: context) { ($0 + 1) * 2 }
            )
        }
    }

    func testFlatMappingToAnotherFutureOfTheSameIsTheIdentity() {
        compare { future, context in (future.flatMap(context: context) { Future(value: $0) }, future) }
    }

    func testFlatMappingAValueIsCallingTheFunction() {
        let addOne = addOne
        compare { future, context in
            (
                Future(value: 5).flatMap(context: context) { addOne($0) },
                addOne(5)
            )
        }
    }

    func testFlatMapIsAssociative() {
        let (addOne, half) = (addOne, half)
        compare { future, context in
            (
                future.flatMap(context: context) { addOne($0) }.flatMap(context: context) { half($0) },
                future.flatMap(context: context) { value in addOne(value).flatMap(context: context) { half($0) } }
            )
        }
    }

    func testRecoveringWithTheSameErrorChangesNothing() {
        compare { future, context in (future.recover(context: context) { throw $0 }, future) }
        compare { future, context in
            (future.recoverWith(context: context) { error -> Future<Int> in Future(error: error) }, future)
        }
    }

    func testAValueNeedsNoRecovery() {
        compare { future, context in
            (
                future.map(context: context) { $0 }.recover(context: context) { _ in 0 },
                future.recover(context: context) { _ in 0 }
            )
        }
    }

    /// Checks that both futures have the same outcome, whenever the first input completes and wherever handlers run.
    private func compare(
        _ make: (Future<Int>, any ExecutionContext) -> (Future<Int>, Future<Int>),
        file: StaticString = #filePath, line: UInt = #line
    ) {
        let queue = Queue("laws")
        for outcome in outcomes {
            for context in [ImmediateContext(), QueueContext(queue: queue), MaxStackDepthContext()]
                as [any ExecutionContext]
            {
                for isLate in [false, true] {
                    let promise = Promise<Int>()
                    if !isLate { promise.complete(outcome) }
                    let (left, right) = make(promise.future, context)
                    if isLate { promise.complete(outcome) }
                    let both = expectation(description: "both complete")
                    both.expectedFulfillmentCount = 2
                    left.onComplete(context: ImmediateContext()) { _ in both.fulfill() }
                    right.onComplete(context: ImmediateContext()) { _ in both.fulfill() }
                    wait(for: [both], timeout: 60)
                    XCTAssertEqual(left.result?.value, right.result?.value, file: file, line: line)
                    XCTAssertEqual(
                        left.result?.error as? TestError, right.result?.error as? TestError, file: file, line: line)
                }
            }
        }
    }
}
