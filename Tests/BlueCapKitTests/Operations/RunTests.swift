import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import TestBasics
import TestSupport
import XCTest

@testable import BlueCapKit

/// Runs: scripts that have a peripheral to themselves.
final class RunTests: RandomTestCase {
    private let control = CharacteristicIdentifier(uuid: "2A39", service: ServiceIdentifier(uuid: "180D"))
    private let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
    private let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
    private let answers = ChosenAnswers()
    /// What the works of a test did, in their order.
    private let story = Story()

    private func stage(link: VirtualLink = VirtualLink()) throws -> AttributeStage {
        try AttributeStage(
            [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic("2A37", [.notify], value: [0, 72]),
                        VirtualCharacteristic("2A38", [.read], value: [1]),
                        VirtualCharacteristic("2A39", [.write], value: [0]),
                    ])
            ], link: link, behavior: answers)
    }

    private func connects(_ stage: AttributeStage) -> Int { stage.simulator.statistics.count(of: "Connect") }

    private func readRun(_ stage: AttributeStage) -> Future<Data> {
        stage.peripheral.run { [location] in try await $0.read(location) }
    }

    /// Three runs, of which the first waits for a reply that does not come.
    private func threeAtWork(_ stage: AttributeStage) -> [Future<Data>] {
        answers.answerReads(of: "2A38", .never)
        let runs = (0..<3).map { _ in readRun(stage) }
        stage.simulator.expect("linked") { stage.isLinked }
        stage.simulator.advance(by: 1)
        return runs
    }

    // MARK: The plain way

    func testARunConnectsDoesItsWorkAndEndsTheLinkThatItHasMade() throws {
        let stage = try stage()
        let future: Future<UInt8> = stage.peripheral.run { [control, location] connected in
            try await connected.write(Data([7]), to: control)
            return try await connected.read(location)
        }
        XCTAssertEqual(try stage.wait(future), 1)
        XCTAssertEqual(answers.written, [[7]])
        stage.simulator.expect("disconnected") {
            stage.simulator.links.isEmpty && stage.peripheral.state == .disconnected
        }
        XCTAssertEqual(connects(stage), 1)
    }

    func testALinkOfTheApplicationStays() throws {
        let stage = try stage().connected()
        try stage.wait(readRun(stage))
        stage.simulator.advance(by: 10)
        XCTAssertTrue(stage.isLinked)
        XCTAssertEqual(connects(stage), 1)
    }

    func testALinkThatTheApplicationAsksForMeanwhileStays() throws {
        let stage = try stage()
        let future = readRun(stage)
        stage.simulator.advance(by: 0.01)
        stage.peripheral.connect()
        try stage.wait(future)
        stage.simulator.advance(by: 10)
        XCTAssertTrue(stage.isLinked)
    }

    func testRunsWaitForEachOtherInTheOrderOfAsking() throws {
        let stage = try stage()
        let futures = (0..<10).map { number -> Future<Void> in
            stage.peripheral.run { [control] connected in
                for part in 0..<3 { try await connected.write(Data([UInt8(number), UInt8(part)]), to: control) }
            }
        }
        XCTAssertEqual(stage.peripheral.operations.count, 10)
        for future in futures { try stage.wait(future) }
        XCTAssertEqual(answers.written, (0..<30).map { [UInt8($0 / 3), UInt8($0 % 3)] })
        XCTAssertEqual(stage.peripheral.operations.count, 0)
        XCTAssertEqual(connects(stage), 1, "The next run uses the same link.")
        stage.simulator.expect("disconnected") { stage.simulator.links.isEmpty }
    }

    func testSingleOperationsHaveTheirPlacesInTheSameQueue() throws {
        let stage = try stage()
        let (answers, control) = (answers, control)
        let first = stage.peripheral.operations.write(UInt8(1), to: control)
        let run: Future<Int> = stage.peripheral.run { connected in
            try await connected.write(Data([2]), to: control)
            return answers.written.count
        }
        let last: Future<UInt8> = stage.peripheral.operations.read(location)
        try stage.wait(first)
        XCTAssertEqual(try stage.wait(run), 2)
        XCTAssertEqual(try stage.wait(last), 1)
    }

    func testWhatIsAskedForBesidesDoesNotWait() throws {
        let stage = try stage().connected()
        let gate = Promise<Void>()
        let run: Future<Void> = stage.peripheral.run { _ in try await gate.future.value }
        let besides: Future<Data> = stage.peripheral.read(location)
        XCTAssertEqual(try stage.wait(besides), Data([1]))
        XCTAssertFalse(run.completed)
        gate.success(())
        try stage.wait(run)
    }

    func testWhatTheWorkThrowsIsTheFailure() throws {
        struct Refusal: Error {}
        let stage = try stage()
        let run: Future<Int> = stage.peripheral.run { _ in throw Refusal() }
        XCTAssertTrue(stage.failure(of: run) is Refusal)
        let unknown = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
        let read = stage.peripheral.run { try await $0.read(unknown) as Data }
        guard case PeripheralError.serviceNotFound? = stage.failure(of: read) else { return XCTFail("no failure") }
    }

    func testAResponseThatIsNotifiedIsReceivedAfterTheRequest() throws {
        let stage = try stage()
        let simulator = stage.simulator
        let asked = Locked(false)
        let run: Future<[Data]> = stage.peripheral.run { [rate, control] connected in
            let values = try await connected.notifications(rate)
            try await connected.write(Data([1]), to: control)
            asked.withLock { $0 = true }
            var answer: [Data] = []
            for try await part in values {
                answer.append(part)
                if answer.count == 3 { break }
            }
            try await connected.stopNotifications(rate)
            return answer
        }
        stage.simulator.expect("asked") { asked.withLock { $0 } }
        for part in UInt8(0)..<3 {
            simulator.notify(AttributeStage.address, characteristic: .uuid("2A37"), value: [part])
        }
        XCTAssertEqual(try stage.wait(run), [Data([0]), Data([1]), Data([2])])
    }

    func testAnExpiredPeripheralIsListedAgain() throws {
        let stage = try stage()
        let manager = try XCTUnwrap(stage.manager)
        _ = manager.startScanning()
        stage.simulator.remove(AttributeStage.address)
        stage.simulator.expect("expired", within: 600) { manager.peripherals.isEmpty }
        manager.stopScanning()
        let run = stage.peripheral.run(timeout: 5) { [location] in try await $0.read(location) as Data }
        XCTAssertEqual(manager.peripherals, [stage.peripheral])
        XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .connectionTimeout)
    }

    // MARK: What goes wrong

    func testALostLinkFailsTheRunAndTheNextOneConnectsAnew() throws {
        let stage = try stage()
        let (story, location) = (story, location)
        answers.answerReads(of: "2A38", .never)
        let run = stage.peripheral.run { connected in
            story.add("begins")
            do {
                return try await connected.read(location) as Data
            } catch {
                story.add("\(error)")
                _ = try? await connected.read(location) as Data
                story.add(Task.isCancelled ? "is cancelled" : "goes on")
                throw error
            }
        }
        let next: Future<Data> = stage.peripheral.operations.read(location)
        stage.simulator.expect("begun") { !story.lines.isEmpty }
        stage.simulator.advance(by: 1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .disconnected)
        XCTAssertEqual(try stage.wait(next), Data([1]))
        XCTAssertEqual(story.lines.last, "is cancelled")
        XCTAssertEqual(connects(stage), 2)
    }

    func testTheApplicationsDisconnectFailsAllRuns() throws {
        let stage = try stage()
        let runs = threeAtWork(stage)
        stage.peripheral.disconnect()
        for run in runs { XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .forcedDisconnect) }
        stage.simulator.advance(by: 10)
        XCTAssertEqual(connects(stage), 1)
        XCTAssertEqual(stage.peripheral.state, .disconnected)
    }

    func testDisconnectAllFailsAlsoThoseWhoWaitForTheEndOfWork() throws {
        let stage = try stage()
        let gate = Promise<Void>()
        let stubborn: Future<Void> = stage.peripheral.run { _ in
            await withCheckedContinuation { continuation in
                gate.future.onComplete(context: ImmediateContext()) { _ in continuation.resume() }
            }
        }
        let next: Future<Data> = stage.peripheral.operations.read(location)
        stage.simulator.expect("linked") { stage.isLinked }
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: stubborn) as? PeripheralError, .disconnected)
        stage.manager?.disconnectAllPeripherals()
        XCTAssertEqual(stage.failure(of: next) as? PeripheralError, .forcedDisconnect)
        gate.success(())
        stage.simulator.advance(by: 10)
        XCTAssertEqual(connects(stage), 1)
    }

    func testTerminateFailsAllRunsAlsoWhileTheyConnect() throws {
        let stage = try stage(link: VirtualLink(connectLatency: 5))
        let runs = (0..<3).map { _ in readRun(stage) }
        stage.simulator.advance(by: 1)
        stage.peripheral.terminate()
        for run in runs { XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .forcedDisconnect) }
        stage.simulator.expect("forgotten") { stage.manager?.peripherals.isEmpty == true }
    }

    func testTheTimeIsUpWhileConnecting() throws {
        let stage = try stage(link: VirtualLink(connectLatency: 15))
        let before = stage.simulator.seconds
        let run = stage.peripheral.run(timeout: 3) { [location] in try await $0.read(location) as Data }
        XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .connectionTimeout)
        XCTAssertEqual(stage.simulator.seconds - before, 3, accuracy: 0.1)
        stage.simulator.expect("at rest") { stage.peripheral.state == .disconnected }
        stage.simulator.advance(by: 30)
        XCTAssertEqual(stage.simulator.links.count, 0)
    }

    func testTheTimeIsUpAtWorkAndTheNextRunWaitsForTheEndOfTheWork() throws {
        let stage = try stage().connected()
        let (story, location) = (story, location)
        let gate = Promise<Void>()
        let stubborn: Future<Void> = stage.peripheral.run(timeout: 2) { connected in
            await withCheckedContinuation { continuation in
                gate.future.onComplete(context: ImmediateContext()) { _ in continuation.resume() }
            }
            do {
                _ = try await connected.read(location) as Data
            } catch {
                story.add("\(error is CancellationError)")
            }
            story.add("first ends")
        }
        let next: Future<Void> = stage.peripheral.run { _ in story.add("second") }
        XCTAssertEqual(stage.failure(of: stubborn) as? PeripheralError, .runTimeout)
        stage.simulator.advance(by: 10)
        XCTAssertFalse(next.completed)
        gate.success(())
        try stage.wait(next)
        XCTAssertEqual(story.lines, ["true", "first ends", "second"])
    }

    func testWaitingForItsTurnDoesNotCount() throws {
        let stage = try stage().connected()
        answers.answerReads(of: "2A38", .value([1], after: 10), .value([2], after: 1))
        let first: Future<UInt8> = stage.peripheral.operations.read(location)
        let second: Future<UInt8> = stage.peripheral.operations.read(location, timeout: .seconds(2))
        XCTAssertEqual(try stage.wait(first), 1)
        XCTAssertEqual(try stage.wait(second), 2)
    }

    func testARefusalThatNoRetryCuresIsTheFailure() throws {
        let stage = try stage()
        stage.simulator.simulateConnectFailures(
            1, error: DaemonError(name: "org.bluez.Error.AuthenticationFailed", message: "Authentication Failed"),
            of: AttributeStage.address)
        let run = readRun(stage)
        guard case PeripheralError.connectionFailed(let failure)? = stage.failure(of: run) else {
            return XCTFail("no failure")
        }
        XCTAssertEqual(failure.name, "org.bluez.Error.AuthenticationFailed")
    }

    func testTheDaemonsDeathFailsTheRunAndTheNextOneWaitsForItsReturn() throws {
        let stage = try stage()
        answers.answerReads(of: "2A38", .never)
        let run = readRun(stage)
        let next: Future<Data> = stage.peripheral.operations.read(location)
        stage.simulator.expect("linked") { stage.isLinked }
        stage.simulator.advance(by: 1)
        stage.simulator.simulateDaemonDeath()
        XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .disconnected)
        stage.simulator.advance(by: 20)
        XCTAssertFalse(next.completed)
        stage.simulator.simulateDaemonReturn()
        XCTAssertEqual(try stage.wait(next), Data([1]))
    }

    func testTheManagersEndFailsAllRuns() throws {
        let stage = try stage()
        let runs = threeAtWork(stage)
        stage.endManager()
        for run in runs { XCTAssertEqual(stage.failure(of: run) as? PeripheralError, .disconnected) }
        let late = readRun(stage)
        XCTAssertEqual(stage.failure(of: late) as? PeripheralError, .disconnected)
    }

    func testATimeThatIsNoneIsRefused() throws {
        let stage = try stage()
        for timeout in [0, -1, TimeInterval.nan] {
            let run: Future<Void> = stage.peripheral.run(timeout: timeout) { _ in }
            guard case PeripheralError.invalidArgument? = stage.failure(of: run, limit: 0.1) else {
                return XCTFail("\(timeout)")
            }
        }
    }

    // MARK: Cancelling

    func testARunIsCancelledWhileItWaitsAndWhileItWorks() throws {
        let stage = try stage().connected()
        let story = story
        answers.answerReads(of: "2A38", .never)
        let (first, second) = (CancelToken(), CancelToken())
        let atWork = stage.peripheral.run(cancelToken: first) { [location] connected in
            defer { story.add("first ends") }
            return try await connected.read(location) as Data
        }
        let waiting: Future<Void> = stage.peripheral.run(cancelToken: second) { _ in story.add("second") }
        let third: Future<Void> = stage.peripheral.run { _ in story.add("third") }
        stage.simulator.advance(by: 1)
        XCTAssertTrue(waiting.cancel(second))
        XCTAssertTrue(stage.failure(of: waiting, limit: 0.1) is CancellationError)
        XCTAssertTrue(atWork.cancel(first))
        XCTAssertTrue(stage.failure(of: atWork, limit: 0.1) is CancellationError)
        try stage.wait(third)
        XCTAssertEqual(story.lines, ["first ends", "third"])
    }

    func testAllAreCancelled() throws {
        let stage = try stage()
        let runs = threeAtWork(stage)
        stage.peripheral.operations.cancelAll()
        for run in runs { XCTAssertTrue(stage.failure(of: run, limit: 0.1) is CancellationError) }
        XCTAssertEqual(stage.peripheral.operations.count, 0)
        stage.simulator.expect("disconnected") { stage.peripheral.state == .disconnected }
    }

    // MARK: Inside each other

    func testARunInsideARunFailsAtOnce() throws {
        let stage = try stage()
        let (peripheral, location) = (stage.peripheral, location)
        // A task on Swift's own threads would race with the virtual time.
        let executor = peripheral.session.loop.taskExecutor
        let run: Future<[String]> = peripheral.run { connected in
            var failures: [String] = []
            do { try await peripheral.run { _ in } } catch { failures.append("\(error)") }
            do { _ = try await peripheral.operations.read(location).value as Data } catch {
                failures.append("\(error)")
            }
            do {
                try await Task(executorPreference: executor) { try await peripheral.run { _ in } }.value
            } catch { failures.append("\(error)") }
            _ = try await connected.read(location) as Data
            return failures
        }
        XCTAssertEqual(try stage.wait(run), .init(repeating: "\(PeripheralError.runInsideRun)", count: 3))
    }

    func testATaskThatARunHasBegunMayRunAfterIt() throws {
        let stage = try stage().connected()
        let peripheral = stage.peripheral
        let gate = Promise<Void>()
        let executor = peripheral.session.loop.taskExecutor
        let run: Future<Task<String, any Error>> = peripheral.run { _ in
            Task(executorPreference: executor) {
                try await gate.future.value
                return try await peripheral.run { _ in "done" }
            }
        }
        let task = try stage.wait(run)
        gate.success(())
        let (_, outcome) = self.task(stage) { try await task.value }
        XCTAssertEqual(try stage.wait(outcome), "done")
    }

    func testAHandleOfARunIsOfNoUseAfterIt() throws {
        let stage = try stage().connected()
        let run: Future<ConnectedPeripheral> = stage.peripheral.run { $0 }
        let connected = try stage.wait(run)
        let location = location
        let late = Future { try await connected.read(location) as Data }
        let outcome = expectation(description: "late")
        late.onFailure(context: ImmediateContext()) { error in
            XCTAssertEqual(error as? PeripheralError, .runEnded)
            outcome.fulfill()
        }
        wait(for: [outcome], timeout: 60)
    }

    // MARK: In async code

    /// A task in the stage's time.
    private func task<T: Sendable>(
        _ stage: AttributeStage, _ work: @escaping @Sendable () async throws -> T
    ) -> (task: Task<Void, Never>, future: Future<T>) {
        let promise = Promise<T>()
        let task = Task(executorPreference: stage.peripheral.session.loop.taskExecutor) {
            do { promise.success(try await work()) } catch { promise.failure(error) }
        }
        return (task, promise.future)
    }

    func testTheAsyncFormYieldsTheValueItself() throws {
        let stage = try stage()
        let (peripheral, location) = (stage.peripheral, location)
        let (_, future) = task(stage) { () -> UInt8 in
            let value: UInt8 = try await peripheral.run(timeout: .seconds(10)) { try await $0.read(location) }
            let again: Future<UInt8> = peripheral.run { try await $0.read(location) }
            return try await value + again.value
        }
        XCTAssertEqual(try stage.wait(future), 2)
    }

    func testACancelledTaskCancelsItsRunAndWaitsForTheEndOfTheWork() throws {
        let stage = try stage().connected()
        let (peripheral, location, story) = (stage.peripheral, location, story)
        answers.answerReads(of: "2A38", .never)
        let (task, future) = task(stage) {
            defer { story.add("after") }
            return try await peripheral.run { connected in
                defer { story.add("work ends") }
                return try await connected.read(location) as Data
            }
        }
        stage.simulator.advance(by: 1)
        task.cancel()
        XCTAssertTrue(stage.failure(of: future) is CancellationError)
        XCTAssertEqual(story.lines, ["work ends", "after"])
    }

    func testACancelledTaskAsksForNothing() throws {
        let stage = try stage()
        let peripheral = stage.peripheral
        let (task, future) = task(stage) { try await peripheral.run { _ in } }
        task.cancel()
        XCTAssertTrue(stage.failure(of: future) is CancellationError)
        XCTAssertEqual(peripheral.operations.count, 0)
    }

    // MARK: By chance

    func testByChanceEachRunIsSettledOnceAndNoTwoWorkTogether() throws {
        var random = TestRandom(self)
        for round in 0..<8 {
            let stage = try stage()
            let (atWork, settled, control) = (Locked(0), Locked<[Int: Int]>([:]), control)
            var tokens: [(Future<Void>, CancelToken)] = []
            for number in 0..<120 {
                let token = CancelToken()
                let future: Future<Void> = stage.peripheral.run(
                    timeout: .random(in: 0.2...20, using: &random), cancelToken: token
                ) { connected in
                    XCTAssertEqual(
                        atWork.withLock {
                            $0 += 1; return $0
                        }, 1)
                    defer { atWork.withLock { $0 -= 1 } }
                    for part in UInt8(0)..<5 { try await connected.write(Data([part]), to: control) }
                }
                future.onComplete(context: ImmediateContext()) { _ in settled.withLock { $0[number, default: 0] += 1 } }
                tokens.append((future, token))
                switch Int.random(in: 0..<10, using: &random) {
                case 0: stage.simulator.simulateLinkLoss(of: AttributeStage.address)
                case 1: stage.peripheral.connect()
                case 2: stage.peripheral.disconnect()
                case 3, 4:
                    if let (future, token) = tokens.randomElement(using: &random) { future.cancel(token) }
                case 5 where number % 20 == 5: stage.peripheral.operations.cancelAll()
                default: break
                }
                stage.simulator.advance(by: .random(in: 0...0.3, using: &random))
            }
            stage.peripheral.disconnect()
            stage.simulator.expect("settled, round \(round)", within: 300) { settled.withLock { $0.count } == 120 }
            stage.simulator.expect("at rest", within: 300) { stage.peripheral.state == .disconnected }
            XCTAssertEqual(settled.withLock { Set($0.values) }, [1], "round \(round)")
            XCTAssertEqual(stage.peripheral.operations.count, 0)
        }
    }
}

/// Lines that several tasks write.
final class Story: Sendable {
    private let state = Locked<[String]>([])
    var lines: [String] { state.withLock { $0 } }
    func add(_ line: String) { state.withLock { $0.append(line) } }
}
