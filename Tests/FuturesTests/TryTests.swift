import BlueCapFutures
import XCTest

final class TryTests: XCTestCase {
    private let success = Try(2)
    private let failure = Try<Int>(TestError.first)

    func testATryIsMadeOfAValueAnErrorOrATask() {
        XCTAssertEqual(success.value, 2)
        XCTAssertTrue(success.isSuccess())
        XCTAssertEqual(failure.error as? TestError, .first)
        XCTAssertTrue(failure.isFailure())
        XCTAssertEqual(Try { 3 }.value, 3)
        XCTAssertEqual(Try<Int> { throw TestError.second }.error as? TestError, .second)
    }

    func testMappingTouchesValuesOnlyAndWhatItThrowsIsTheFailure() {
        XCTAssertEqual(success.map { $0 * 2 }.value, 4)
        XCTAssertEqual(failure.map { $0 * 2 }.error as? TestError, .first)
        XCTAssertEqual(success.map { _ -> Int in throw TestError.second }.error as? TestError, .second)
        XCTAssertEqual(success.flatMap { Try("\($0)") }.value, "2")
        XCTAssertEqual(success.flatMap { _ in Try<Int>(TestError.second) }.error as? TestError, .second)
        XCTAssertEqual(success.flatMap { _ -> Try<Int> in throw TestError.second }.error as? TestError, .second)
    }

    func testRecoveryTouchesErrorsOnly() {
        XCTAssertEqual(success.recover { _ in 9 }.value, 2)
        XCTAssertEqual(failure.recover { _ in 9 }.value, 9)
        XCTAssertEqual(failure.recover { _ in throw TestError.second }.error as? TestError, .second)
        XCTAssertEqual(failure.recoverWith { _ in Try(8) }.value, 8)
        XCTAssertEqual(failure.recoverWith { _ in throw TestError.second }.error as? TestError, .second)
        XCTAssertEqual(failure.mapError { _ in TestError.second }.error as? TestError, .second)
        XCTAssertEqual(success.mapError { _ in TestError.second }.value, 2)
    }

    func testAFilterThatRefusesLeavesNoElement() {
        XCTAssertEqual(success.filter { $0 == 2 }.value, 2)
        XCTAssertEqual(success.filter { $0 != 2 }.error as? FuturesError, .noSuchElement)
        XCTAssertEqual(failure.filter { $0 == 2 }.error as? TestError, .first)
    }

    func testTheRestOfTheVocabulary() {
        var seen: [Int] = []
        success.forEach { seen.append($0) }
        failure.forEach { seen.append($0) }
        XCTAssertEqual(seen, [2])
        XCTAssertEqual(success.toOptional(), 2)
        XCTAssertNil(failure.toOptional())
        XCTAssertEqual(failure.getOrElse(5), 5)
        XCTAssertEqual(failure.orElse(Try(6)).value, 6)
        XCTAssertEqual(failure ?? 7, 7)
        XCTAssertEqual((failure ?? Try(8)).value, 8)
        XCTAssertEqual(success ?? 7, 2)
        XCTAssertEqual([Try(1), Try(2)].sequence().value ?? [], [1, 2])
        XCTAssertEqual([success, failure].sequence().error as? TestError, .first)
    }

    func testOptionalsFilterAndForEach() {
        let some: Int? = 3
        XCTAssertEqual(some.filter { $0 > 2 }, 3)
        XCTAssertNil(some.filter { $0 > 3 })
        var seen: [Int] = []
        some.forEach { seen.append($0) }
        Int?.none.forEach { seen.append($0) }
        XCTAssertEqual(seen, [3])
    }
}
