import BlueCapFutures
import XCTest

final class ContextTests: XCTestCase {
    func testAQueueContextRunsOnItsQueueAndNeverBeforeItReturns() {
        let key = DispatchSpecificKey<String>()
        let queue = DispatchQueue(label: "context")
        queue.setSpecific(key: key, value: "here")
        queue.suspend()
        let seen = Recorder<String?>()
        Future(value: 1).onSuccess(context: QueueContext(queue: Queue(queue))) { _ in
            seen(DispatchQueue.getSpecific(key: key))
        }
        XCTAssertEqual(seen.count, 0)
        queue.resume()
        queue.sync {}
        XCTAssertEqual(seen.all, ["here"])
    }

    func testTheImmediateContextRunsOnTheThreadThatCompletes() {
        let promise = Promise<Int>()
        let threads = Recorder<Bool>()
        let queue = Queue("completing")
        promise.future.onSuccess(context: ImmediateContext()) { _ in threads(Thread.isMainThread) }
        queue.sync { _ = promise.success(1) }
        promise.future.onSuccess(context: ImmediateContext()) { _ in threads(Thread.isMainThread) }
        XCTAssertEqual(threads.count, 2)
        XCTAssertEqual(threads.all.last, true)
    }

    func testTheStackDepthContextHopsWhenTheStackIsDeep() {
        let context = MaxStackDepthContext()
        let depths = Recorder<Int>()
        let done = expectation(description: "the innermost ran")
        @Sendable func nest(_ depth: Int) {
            depths(depth)
            if depth == 50 { return done.fulfill() }
            context.execute { nest(depth + 1) }
        }
        nest(0)
        XCTAssertGreaterThanOrEqual(depths.count, MaxStackDepthContext.maximumDepth)
        wait(for: [done], timeout: 60)
        XCTAssertEqual(depths.all, Array(0...50))
    }

    func testTheDefaultContextCanBeReplaced() {
        let before = QueueContext.futuresDefault
        defer { QueueContext.futuresDefault = before }
        let context = HeldContext()
        QueueContext.futuresDefault = context
        let mapped = Future(value: 1).map { $0 + 1 }
        XCTAssertFalse(mapped.completed)
        context.run()
        XCTAssertEqual(mapped.result?.value, 2)
    }

    func testQueuesRunAndDelay() {
        let queue = Queue("work")
        XCTAssertEqual(queue.sync { 5 }, 5)
        let done = expectation(description: "async and delayed work ran")
        done.expectedFulfillmentCount = 2
        queue.async { done.fulfill() }
        queue.delay(0.01) { done.fulfill() }
        wait(for: [done], timeout: 60)
    }

    func testAHandlerMayRegisterOnItsOwnQueueWithoutWaitingForItself() {
        let queue = Queue("own")
        let context = QueueContext(queue: queue)
        let done = expectation(description: "inner handler ran")
        let promise = Promise<Int>()
        promise.future.onSuccess(context: context) { _ in
            promise.future.onSuccess(context: context) { _ in done.fulfill() }
        }
        promise.success(1)
        wait(for: [done], timeout: 60)
    }
}
