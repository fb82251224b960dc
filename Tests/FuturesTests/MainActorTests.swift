import BlueCapFutures
import XCTest

/// Handlers that change state of the main actor. That this file compiles without a warning is a part of the test.
@MainActor
final class MainActorTests: XCTestCase {
    private var seen: [String] = []

    private var awaited: (count: Int, expectation: XCTestExpectation)?

    private func note(_ text: String) {
        seen.append(Thread.isMainThread ? text : "\(text), off the main thread")
        if let awaited, seen.count == awaited.count { awaited.expectation.fulfill() }
    }

    /// Does `work` on another thread, and waits in the main run loop until `count` notes are there.
    private func wait(for count: Int, _ work: @escaping @Sendable () -> Void) {
        let expectation = expectation(description: "\(count) notes")
        awaited = (count, expectation)
        DispatchQueue.global().async(execute: work)
        wait(for: [expectation], timeout: 60)
    }

    func testHandlersOfAFutureChangeStateOfTheMainActor() {
        let (good, bad) = (Promise<Int>(), Promise<Int>())
        good.future.onSuccess(on: MainActor.self) { self.note("success \($0)") }
        good.future.onComplete(on: MainActor.self) { self.note("complete \($0.value ?? 0)") }
        good.future.onFailure(on: MainActor.self) { self.note("failure \($0)") }
        bad.future.onSuccess(on: MainActor.self) { self.note("success \($0)") }
        bad.future.onFailure(on: MainActor.self) { self.note("failure \($0)") }
        wait(for: 3) {
            good.success(1)
            bad.failure(TestError.first)
        }
        XCTAssertEqual(seen, ["success 1", "complete 1", "failure first"])
    }

    func testHandlersOfAStreamReceiveItsElementsInOrderOnTheMainActor() {
        let source = StreamPromise<Int>(capacity: 1)
        source.success(0)
        source.stream.onComplete(on: MainActor.self) { self.note("\($0.value ?? -1)") }
        source.stream.onFailure(on: MainActor.self) { self.note("failure \($0)") }
        wait(for: 5) {
            source.success(1)
            source.failure(TestError.second)
            source.success(2)
        }
        XCTAssertEqual(seen.filter { !$0.hasPrefix("failure") }, ["0", "1", "-1", "2"])
        XCTAssertEqual(seen.filter { $0.hasPrefix("failure") }, ["failure second"])
        seen = []
        let values = StreamPromise<Int>()
        values.stream.onSuccess(on: MainActor.self) { self.note("\($0)") }
        wait(for: 1_000) { for value in 0..<1_000 { values.success(value) } }
        XCTAssertEqual(seen, (0..<1_000).map(String.init))
    }

    func testOperatorsRunOnTheMainActor() {
        let (promise, source) = (Promise<Int>(), StreamPromise<Int>())
        promise.future
            .map(on: MainActor.self) { value in
                self.note("map")
                return value + 1
            }
            .flatMap(on: MainActor.self) { value -> Future<Int> in
                self.note("flatMap")
                throw TestError.first
            }
            .recoverWith(on: MainActor.self) { error in
                self.note("recoverWith \(error)")
                return Future(value: self.seen.count)
            }
            .onSuccess(on: MainActor.self) { self.note("\($0)") }
        source.stream
            .map(on: MainActor.self) { value in
                if value == 0 { throw TestError.second }
                return "\(value)"
            }
            .flatMap(on: MainActor.self) { Future(value: "element \($0)") }
            .onComplete(on: MainActor.self) { self.note($0.value ?? "error") }
        wait(for: 4) { promise.success(1) }
        XCTAssertEqual(seen, ["map", "flatMap", "recoverWith first", "3"])
        wait(for: 6) {
            source.success(0)
            source.success(5)
        }
        XCTAssertEqual(seen.suffix(2), ["error", "element 5"])
    }

    func testAHandlerOfACompleteFutureRunsAfterTheCall() {
        Future(value: 1).onSuccess(on: MainActor.self) { self.note("handler \($0)") }
        note("call")
        wait(for: 2) {}
        XCTAssertEqual(seen, ["call", "handler 1"])
    }

    func testAHandlerOnTheMainActorIsTakenBack() {
        let (promise, token) = (Promise<Int>(), CancelToken())
        promise.future.onSuccess(on: MainActor.self, cancelToken: token) { self.note("cancelled \($0)") }
        promise.future.onSuccess(on: MainActor.self) { self.note("kept \($0)") }
        XCTAssertTrue(promise.future.cancel(token))
        wait(for: 1) { promise.success(1) }
        XCTAssertEqual(seen, ["kept 1"])
    }

    func testAnAwaitingTaskAndHandlersShareTheMainActor() async throws {
        let promise = Promise<Int>()
        promise.future.onSuccess(on: MainActor.self) { self.note("handler \($0)") }
        DispatchQueue.global().async { promise.success(2) }
        _ = try await promise.future.map(on: MainActor.self) { self.note("map \($0)") }.value
        XCTAssertEqual(seen, ["handler 2", "map 2"])
    }
}
