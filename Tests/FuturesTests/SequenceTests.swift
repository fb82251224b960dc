import BlueCapFutures
import XCTest

final class SequenceTests: XCTestCase {
    private let immediate = ImmediateContext()

    func testASequenceKeepsItsOrderWhateverTheOrderOfCompletion() {
        let promises = (0..<4).map { _ in Promise<Int>() }
        let all = promises.map(\.future).sequence(context: immediate)
        for index in [2, 0, 3, 1] { promises[index].success(index) }
        XCTAssertEqual(all.result?.value, [0, 1, 2, 3])
    }

    func testASequenceFailsAsSoonAsOneFails() {
        let promises = (0..<3).map { _ in Promise<Int>() }
        let all = promises.map(\.future).sequence(context: immediate)
        promises[2].failure(TestError.first)
        XCTAssertEqual(all.result?.error as? TestError, .first)
    }

    func testSequencesOfNothingAreComplete() {
        XCTAssertEqual([Future<Int>]().sequence(context: immediate).result?.value, [])
        XCTAssertEqual([Future<Int>]().fold(context: immediate, initial: 1) { $0 + $1 }.result?.value, 1)
        XCTAssertEqual([Int]().traverse(context: immediate) { Future(value: $0) }.result?.value, [])
        XCTAssertEqual([Future<Int>]().firstCompleted().result?.error as? FuturesError, .noSuchElement)
    }

    func testOrderedElementsAreSortedAndEqualOnesKeepTheirOrder() {
        XCTAssertEqual([3, 1, 2].ordered(), [1, 2, 3])
        XCTAssertEqual([Int]().ordered(), [])
        let words = (0..<200).map { (key: $0 * 7 % 5, place: $0) }.ordered { $0.key < $1.key }
        for (word, next) in zip(words, words.dropFirst()) { XCTAssert((word.key, word.place) < (next.key, next.place)) }
    }

    func testAFoldCombinesInTheOrderOfTheSequence() {
        let promises = (0..<4).map { _ in Promise<Int>() }
        let folded = promises.map(\.future).fold(context: immediate, initial: "") { $0 + "\($1)" }
        for index in [2, 0, 3, 1] { promises[index].success(index) }
        XCTAssertEqual(folded.result?.value, "0123")
    }

    func testAFoldFailsWithAFutureOrWithItsClosure() {
        let futures = [Future(value: 1), Future<Int>(error: TestError.first)]
        XCTAssertEqual(
            futures.fold(context: immediate, initial: 0) { $0 + $1 }.result?.error as? TestError, .first)
        XCTAssertEqual(
            [Future(value: 1)].fold(context: immediate, initial: 0) { _, _ in throw TestError.second }
                .result?.error as? TestError, .second)
    }

    func testLongSequencesAreCompleteWhenTheCallReturns() {
        let futures = (0..<10_000).map { Future(value: $0) }
        XCTAssertEqual(futures.fold(context: immediate, initial: 0) { $0 + $1 }.result?.value, 49_995_000)
        XCTAssertEqual(futures.sequence(context: immediate).result?.value?.count, 10_000)
        XCTAssertEqual(
            (0..<10_000).traverse(context: immediate) { Future(value: $0 * 2) }.result?.value?.last, 19_998)
    }

    func testATraversalStartsEverythingAndKeepsTheOrder() {
        let promises = (0..<3).map { _ in Promise<Int>() }
        let all = (0..<3).traverse(context: immediate) { promises[$0].future }
        for index in [2, 1, 0] { promises[index].success(index * 10) }
        XCTAssertEqual(all.result?.value, [0, 10, 20])
    }

    func testTheFirstOfManyDecides() {
        let promises = (0..<3).map { _ in Promise<Int>() }
        let completed = promises.map(\.future).firstCompleted()
        let succeeded = promises.map(\.future).firstSucceeded()
        promises[1].failure(TestError.first)
        XCTAssertEqual(completed.result?.error as? TestError, .first)
        XCTAssertFalse(succeeded.completed)
        promises[2].success(2)
        XCTAssertEqual(succeeded.result?.value, 2)
    }

    func testZippingWaitsForAllAndFailsWithTheFirstFailure() {
        let first = Promise<Int>()
        let second = Promise<String>()
        let pair = first.future.zip(second.future)
        second.success("b")
        XCTAssertFalse(pair.completed)
        first.success(1)
        XCTAssertEqual(pair.result?.value?.0, 1)
        XCTAssertEqual(pair.result?.value?.1, "b")
        let failing = zip(Promise<Int>().future, Future<Int>(error: TestError.first), Future(value: 1))
        XCTAssertEqual(failing.result?.error as? TestError, .first)
    }
}
