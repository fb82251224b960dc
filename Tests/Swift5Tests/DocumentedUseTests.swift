// Code that was written for the documented API, compiled in the Swift 5 language mode. Only the import has changed, and the types are private.
// That it compiles is half the test.
import BlueCapFutures
import XCTest

private enum AppError: Error {
    case invalidValue
    case recovered
}

/// A class with a completion block, as the documents have it.
private class AsyncRequester {
    var value: Int? = 1

    func request(completion: @escaping (Int?, Error?) -> Void) {
        completion(value, nil)
    }
}

private extension AsyncRequester {
    func futureRequest() -> Future<Int?> {
        return future(method: request)
    }

    func streamRequest() -> FutureStream<Int?> {
        return futureStream(method: request)
    }
}

/// A context written before `Sendable` existed.
private struct CountingContext: ExecutionContext {
    class Counter { var count = 0 }
    let counter = Counter()

    func execute(_ task: @escaping () -> Void) {
        counter.count += 1
        task()
    }
}

/// A type of elements that is not Sendable.
private class Peripheral {
    let name: String
    init(name: String) { self.name = name }
}

class DocumentedUseTests: XCTestCase {
    let immediate = ImmediateContext()
    var handled = 0

    func testClosuresMayChangeWhatTheyCapture() {
        var count = 0
        let promise = Promise<Int>()
        promise.future.onSuccess(context: immediate) { value in
            count += value
            self.handled += 1
        }
        promise.future.onFailure(context: immediate) { _ in XCTFail("There is no failure.") }
        promise.success(2)
        XCTAssertEqual(count, 2)
        XCTAssertEqual(handled, 1)
    }

    func testElementsNeedNotBeSendable() {
        let promise = StreamPromise<(peripheral: Peripheral, connectionEvent: Int)>(capacity: 10)
        var names = [String]()
        promise.stream.onSuccess(context: immediate) { (peripheral, connectionEvent) in
            names.append("\(peripheral.name) \(connectionEvent)")
        }
        promise.success((peripheral: Peripheral(name: "sensor"), connectionEvent: 1))
        XCTAssertEqual(names, ["sensor 1"])
        let restored = Promise<(peripherals: [Peripheral], options: [String: AnyObject])>()
        restored.future.onSuccess(context: immediate) { (peripherals, _) in
            names.append(peripherals[0].name)
        }
        restored.success((peripherals: [Peripheral(name: "restored")], options: [:]))
        XCTAssertEqual(names, ["sensor 1", "restored"])
    }

    func testOldContextsStillConform() {
        let context = CountingContext()
        let mapped = Future(value: 1).map(context: context) { $0 + 1 }
        XCTAssertEqual(mapped.result?.value, 2)
        XCTAssertEqual(context.counter.count, 1)
    }

    func testRequestsBecomeFuturesAndStreams() {
        let requester = AsyncRequester()
        XCTAssertEqual(requester.futureRequest().result?.value, 1)
        XCTAssertEqual(requester.streamRequest().count, 1)
        requester.value = nil
        // Declared to be of an optional type: two nils are a value.
        XCTAssertEqual(requester.futureRequest().result?.value, .some(nil))
    }

    func testAChainAsDocumented() {
        let done = expectation(description: "onSuccess")
        let asyncTask = { 3 }
        let mapped = future {
            asyncTask()
        }.map { value -> String in
            guard value > 0 else {
                throw AppError.invalidValue
            }
            return "\(value)"
        }.flatMap { value -> Future<Int> in
            Future(value: Int(value)! + 1)
        }.withFilter { value in
            value > 0
        }.andThen { value in
            XCTAssertEqual(value, 4)
        }.recover { error -> Int in
            guard let appError = error as? AppError else {
                throw error
            }
            XCTFail("\(appError)")
            return 0
        }.recoverWith { error -> Future<Int> in
            throw error
        }.mapError { _ in
            AppError.recovered
        }
        mapped.onSuccess { value in
            XCTAssertEqual(value, 4)
            done.fulfill()
        }
        mapped.forEach { _ in }
        mapped.onFailure { error in
            XCTFail("\(error)")
        }
        waitForExpectations(timeout: 60)
    }

    func testAThrowingFutureAsDocumented() {
        let recovered: Future<Int> = future(context: immediate) {
            throw AppError.invalidValue
        }
        XCTAssertTrue(recovered.recover(context: immediate) { _ in 1 }.result!.isSuccess())
        XCTAssertEqual(future(1 + 1).completed || true, true)
    }

    func testAStreamFromAFutureAsDocumented() {
        let scan = StreamPromise<Int>()
        let stream = Future(value: ()).flatMap(capacity: 10, context: immediate) { _ -> FutureStream<Int> in
            scan.stream
        }.flatMap(context: immediate) { value -> Future<Int> in
            guard value < 10 else { throw AppError.invalidValue }
            return Future(value: value * 2)
        }
        var values = [Int]()
        var errors = 0
        stream.onSuccess(context: immediate) { values.append($0) }
        stream.onFailure(context: immediate) { error in
            switch error {
            case AppError.invalidValue: errors += 1
            default: XCTFail("\(error)")
            }
        }
        scan.success(1)
        scan.success(20)
        scan.success(2)
        XCTAssertEqual(values, [2, 4])
        XCTAssertEqual(errors, 1)
    }

    func testSequencesAsDocumented() {
        let futures = [future(context: immediate) { 1 }, future(context: immediate) { 2 }, Future(value: 3)]
        XCTAssertEqual(futures.fold(context: immediate, initial: 0) { $0 + $1 }.result?.value, 6)
        XCTAssertEqual(futures.sequence(context: immediate).result?.value ?? [], [1, 2, 3])
        XCTAssertEqual([1, 2].traverse(context: immediate) { Future(value: $0 * 2) }.result?.value ?? [], [2, 4])
    }

    func testPromisesAsDocumented() {
        let promise = Promise<Int>()
        let another = Promise<Int>()
        promise.completeWith(context: immediate, future: another.future)
        another.failure(AppError.invalidValue)
        XCTAssertTrue(promise.completed)
        let anotherFuture = Future<Int>()
        anotherFuture.completeWith(context: immediate, future: Future(value: 1))
        XCTAssertEqual(anotherFuture.result?.value, 1)
        let resolved = Future<Int>(resolver: { complete in complete(.success(2)) })
        XCTAssertEqual(resolved.result?.value, 2)
    }

    func testCancellingAsDocumented() {
        let cancelToken = CancelToken()
        let promise = Promise<Int>()
        let mapped = promise.future.flatMap(cancelToken: cancelToken) { value -> Future<Int> in
            Future(value: value)
        }
        mapped.onSuccess(cancelToken: cancelToken) { _ in XCTFail("It was cancelled.") }
        XCTAssertTrue(promise.future.cancel(cancelToken))
        promise.success(1)
        XCTAssertFalse(mapped.completed)
    }

    func testQueuesAsDocumented() {
        let queue = Queue("us.gnos.myqueue")
        var ran = 0
        queue.sync {
            ran += 1
        }
        let result = queue.sync { () -> Int in
            ran += 1
            return ran
        }
        XCTAssertEqual(result, 2)
        let done = expectation(description: "async")
        queue.async {
            ran += 1
            done.fulfill()
        }
        waitForExpectations(timeout: 60)
        queue.delay(0.001) {}
        _ = QueueContext(queue: queue)
        _ = [QueueContext.main, QueueContext.global]
    }

    func testAStreamIsASequenceWithItsOwnOperators() async throws {
        let stream = FutureStream<Peripheral>()
        stream.success(Peripheral(name: "Strap"))
        stream.finish()
        let names = stream.map(context: immediate) { $0.name }
        XCTAssertTrue(type(of: names) == FutureStream<String>.self)
        var seen: [String] = []
        for try await peripheral in stream { seen.append(peripheral.name) }
        for try await name in names { seen.append(name) }
        XCTAssertEqual(seen, ["Strap", "Strap"])
    }
}
