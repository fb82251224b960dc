import XCTest

@testable import BlueCapFutures

final class DroppedCountTests: XCTestCase {
    func testWhatIsDisplacedBeforeAnybodyListensIsCounted() {
        let promise = StreamPromise<Int>(capacity: 2)
        promise.success(1)
        promise.success(contentsOf: [2, 3, 4])
        XCTAssertEqual(promise.stream.droppedCount, 2)
    }

    func testAStreamThatKeepsNothingCountsAllElementsWithoutAHandler() {
        let promise = StreamPromise<Int>(capacity: 0)
        promise.success(1)
        promise.success(contentsOf: [2, 3])
        XCTAssertEqual(promise.stream.droppedCount, 3)
    }

    func testWhatAHandlerHasReceivedIsNotDropped() {
        let promise = StreamPromise<Int>(capacity: 1)
        let received = Locked(0)
        promise.stream.onSuccess(context: ImmediateContext()) { _ in received.withLock { $0 += 1 } }
        for number in 0..<10 { promise.success(number) }
        promise.success(contentsOf: Array(0..<10))
        XCTAssertEqual(received.withLock { $0 }, 20)
        XCTAssertEqual(promise.stream.droppedCount, 0)
    }

    func testAnUnboundedStreamDropsNothing() {
        let promise = StreamPromise<Int>()
        promise.success(contentsOf: Array(0..<10_000))
        let received = Locked(0)
        promise.stream.onSuccess(context: ImmediateContext()) { _ in received.withLock { $0 += 1 } }
        XCTAssertEqual(received.withLock { $0 }, 10_000)
        XCTAssertEqual(promise.stream.droppedCount, 0)
    }
}
