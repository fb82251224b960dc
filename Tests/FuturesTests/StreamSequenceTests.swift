import BlueCapFutures
import XCTest

/// A stream is an `AsyncSequence`, and its own operators precede those of `AsyncSequence`.
final class StreamSequenceTests: XCTestCase {
    private let immediate = ImmediateContext()

    /// A type of elements that is not `Sendable`.
    private final class Reading {
        let value: Int
        init(_ value: Int) { self.value = value }
    }

    private func stream(_ values: Int...) -> FutureStream<Int> {
        let promise = StreamPromise<Int>()
        for value in values { promise.success(value) }
        promise.finish()
        return promise.stream
    }

    func testOperatorsOfStreamsReturnStreams() {
        let mapped = stream(1, 2).map(context: immediate) { $0 + 1 }
        let trailing = stream(1, 2).map { $0 + 1 }
        let flat = stream(1).flatMap { Future(value: $0) }
        let first = stream(1).first()
        XCTAssertTrue(type(of: mapped) == FutureStream<Int>.self)
        XCTAssertTrue(type(of: trailing) == FutureStream<Int>.self)
        XCTAssertTrue(type(of: flat) == FutureStream<Int>.self)
        XCTAssertTrue(type(of: first) == Future<Int>.self)
    }

    func testOperatorsOfStreamsReturnStreamsInAnAsynchronousFunction() async throws {
        let mapped = stream(1, 2).map { $0 + 1 }
        let flat = stream(1).flatMap { Future(value: $0) }
        let first = try await stream(7).first().value
        XCTAssertTrue(type(of: mapped) == FutureStream<Int>.self)
        XCTAssertTrue(type(of: flat) == FutureStream<Int>.self)
        XCTAssertEqual(first, 7)
        var seen: [Int] = []
        for try await value in stream(1, 2).map({ $0 + 1 }) { seen.append(value) }
        XCTAssertEqual(seen, [2, 3])
    }

    func testOperatorsThatOnlySequencesHave() async throws {
        let containsTwo = try await stream(1, 2, 3).contains(2)
        let sum = try await stream(1, 2, 3).reduce(0, +)
        let large = try await stream(1, 2, 3).first { $0 > 1 }
        XCTAssertTrue(containsTwo)
        XCTAssertEqual(sum, 6)
        XCTAssertEqual(large, 2)
        var seen: [Int] = []
        for try await value in stream(1, 2, 3).filter({ $0 != 2 }).prefix(2) { seen.append(value) }
        XCTAssertEqual(seen, [1, 3])
    }

    func testTheTransformOfASequenceMayWait() async throws {
        var seen: [String] = []
        for try await text in stream(1, 2).values.map({ "\($0)" }) { seen.append(text) }
        XCTAssertEqual(seen, ["1", "2"])
    }

    func testElementsNeedNotBeSendable() async throws {
        let stream = FutureStream<Reading>(capacity: 2)
        stream.success(Reading(4))
        stream.finish()
        var seen: [Int] = []
        for try await reading in stream { seen.append(reading.value) }
        XCTAssertEqual(seen, [4])
    }

    @MainActor func testALoopOnTheMainActor() async throws {
        var sum = 0
        for try await value in stream(1, 2, 3) { sum += value }
        XCTAssertEqual(sum, 6)
    }

    func testAFunctionMayTakeAnyThrowingSequence() async throws {
        func sum(_ values: some AsyncSequence<Int, any Error>) async throws -> Int { try await values.reduce(0, +) }
        let total = try await sum(stream(1, 2, 3))
        XCTAssertEqual(total, 6)
    }

    func testABusyLoopLosesTheOldestOfMoreThanTheLimit() async throws {
        let promise = StreamPromise<Int>(capacity: 0)
        var iterator = promise.stream.makeAsyncIterator()
        for value in 0...FutureStream<Int>.watchedCapacity { promise.success(value) }
        let first = try await iterator.next()
        XCTAssertEqual(first, 1)
    }
}
