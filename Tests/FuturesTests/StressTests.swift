import BlueCapFutures
import TestBasics
import XCTest

/// Many threads at once. The test's seed decides what each does, not how they interleave.
final class StressTests: RandomTestCase {
    private let immediate = ImmediateContext()

    func testHandlersRunOnceAndInOrderWhileAnotherThreadCompletes() {
        var random = TestRandom(self)
        for round in 0..<40 {
            let queue = Queue("stress")
            let contexts: [any ExecutionContext] = [immediate, QueueContext(queue: queue)]
            let context = contexts[random.below(2)]
            let promise = Promise<Int>()
            let seen = Recorder<Int>()
            let count = 50 + random.below(200)
            let pause = random.below(3_000)
            inParallel([
                { for number in 0..<count { promise.future.onComplete(context: context) { _ in seen(number) } } },
                {
                    spin(pause)
                    promise.success(1)
                },
            ])
            // What was added while the other thread was delivering is delivered by that thread, which has returned by now.
            drain(queue)
            XCTAssertEqual(seen.all, Array(0..<count), "round \(round)")
        }
    }

    func testOneOfManyCompletionsWins() {
        for round in 0..<40 {
            let promise = Promise<Int>()
            let seen = Recorder<Int>()
            let won = Recorder<Int>()
            promise.future.onSuccess(context: immediate) { seen($0) }
            inParallel(
                (0..<4).map { number in { if promise.success(number) { won(number) } } })
            XCTAssertEqual(seen.count, 1, "round \(round)")
            XCTAssertEqual(seen.all, won.all, "round \(round)")
        }
    }

    func testAHandlerIsEitherRunOrCancelledNeverBoth() {
        var random = TestRandom(self)
        for round in 0..<40 {
            let promise = Promise<Int>()
            let ran = Recorder<Int>()
            let cancelled = Recorder<Int>()
            let tokens = (0..<50).map { _ in CancelToken() }
            for (number, token) in tokens.enumerated() {
                promise.future.onSuccess(context: immediate, cancelToken: token) { _ in ran(number) }
            }
            let pause = random.below(2_000)
            let order = tokens.indices.shuffled(using: &random)
            inParallel([
                { for number in order where promise.future.cancel(tokens[number]) { cancelled(number) } },
                {
                    spin(pause)
                    promise.success(1)
                },
            ])
            XCTAssertEqual(ran.all, ran.all.sorted(), "round \(round)")
            XCTAssertEqual((ran.all + cancelled.all).sorted(), Array(tokens.indices), "round \(round)")
        }
    }

    func testLateHandlersOfABusyStreamMissNothingAndSeeNothingTwice() {
        var random = TestRandom(self)
        for round in 0..<20 {
            let queue = Queue("stress")
            let promise = StreamPromise<Int>(capacity: 8)
            let total = 2_000
            let handlers = 12
            let recorders = (0..<handlers).map { _ in Recorder<Int>() }
            let onQueue = (0..<handlers).map { _ in Bool.random(using: &random) }
            let pauses = (0..<handlers).map { _ in random.below(3_000) }
            let batch = 1 + random.below(5)
            inParallel([
                {
                    for start in stride(from: 0, to: total, by: batch) {
                        promise.success(contentsOf: Array(start..<min(start + batch, total)))
                    }
                },
                {
                    for index in 0..<handlers {
                        spin(pauses[index])
                        let recorder = recorders[index]
                        let context: any ExecutionContext =
                            onQueue[index] ? QueueContext(queue: queue) : ImmediateContext()
                        promise.stream.onSuccess(context: context) { recorder($0) }
                    }
                },
            ])
            drain(queue)
            for recorder in recorders {
                let seen = recorder.all
                XCTAssertEqual(seen, Array((seen.first ?? total)..<total), "round \(round)")
                XCTAssertGreaterThanOrEqual(seen.count, 8, "round \(round)")
            }
        }
    }

    func testRacingProducersGiveAllHandlersTheSameOrder() {
        for round in 0..<20 {
            let queue = Queue("stress")
            let promise = StreamPromise<Int>(capacity: round % 2 * 16)
            let direct = Recorder<Int>()
            let mapped = Recorder<Int>()
            let queued = Recorder<Int>()
            promise.stream.onSuccess(context: immediate) { direct($0) }
            promise.stream.map(context: immediate) { $0 }.withFilter(context: immediate) { _ in true }
                .onSuccess(context: immediate) { mapped($0) }
            promise.stream.onSuccess(context: QueueContext(queue: queue)) { queued($0) }
            inParallel(
                (0..<4).map { producer in
                    { for number in 0..<500 { promise.success(producer * 500 + number) } }
                })
            drain(queue)
            XCTAssertEqual(direct.count, 2_000, "round \(round)")
            XCTAssertEqual(direct.all, mapped.all, "round \(round)")
            XCTAssertEqual(direct.all, queued.all, "round \(round)")
            for producer in 0..<4 {
                let own = direct.all.filter { $0 / 500 == producer }
                XCTAssertEqual(own, own.sorted(), "round \(round)")
            }
        }
    }

    func testCancellingWhileElementsArriveStopsAtOnePointForGood() {
        var random = TestRandom(self)
        for round in 0..<30 {
            let promise = StreamPromise<Int>(capacity: 0)
            let token = CancelToken()
            let cancelled = Recorder<Int>()
            let seen = Recorder<Int>()
            let pause = random.below(4_000)
            promise.stream.onSuccess(context: immediate, cancelToken: token) { seen($0) }
            inParallel([
                { for number in 0..<1_000 { promise.success(number) } },
                {
                    spin(pause)
                    if promise.stream.cancel(token) { cancelled(1) }
                },
            ])
            let atTheEnd = seen.count
            promise.success(-1)
            XCTAssertEqual(cancelled.count, 1, "round \(round)")
            XCTAssertEqual(seen.count, atTheEnd, "round \(round)")
            XCTAssertEqual(seen.all, Array(0..<atTheEnd), "round \(round)")
        }
    }

    func testChainsAcrossThreadsDeliverTheirValue() {
        var random = TestRandom(self)
        for round in 0..<10 {
            let queues = (0..<3).map { QueueContext(queue: Queue("stress \($0)")) as any ExecutionContext }
            let contexts = queues + [immediate, MaxStackDepthContext()]
            let promise = Promise<Int>()
            var last = promise.future
            for _ in 0..<200 {
                let context = contexts[random.below(contexts.count)]
                last =
                    Bool.random(using: &random)
                    ? last.map(context: context) { $0 + 1 }
                    : last.flatMap(context: context) { value -> Future<Int> in future(context: context) { value + 1 } }
            }
            let done = expectation(description: "the chain completed")
            last.onComplete(context: immediate) { _ in done.fulfill() }
            promise.success(0)
            wait(for: [done], timeout: 60)
            XCTAssertEqual(last.result?.value, 200, "round \(round)")
        }
    }

    /// Runs `works` at the same time, from nearly the same moment, and returns when all have returned.
    private func inParallel(_ works: [@Sendable () -> Void]) {
        let ready = Locked(0)
        let group = DispatchGroup()
        for work in works {
            group.enter()
            Thread.detachNewThread {
                ready.withLock { $0 += 1 }
                while ready.withLock({ $0 }) < works.count { sched_yield() }
                work()
                group.leave()
            }
        }
        group.wait()
    }
}

/// Does nothing for a while that depends on `turns` only.
private func spin(_ turns: Int) {
    let counter = Locked(0)
    for _ in 0..<turns / 10 { counter.withLock { $0 += 1 } }
}
