import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

private let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
private let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))

private func makeSimulator() -> Simulator {
    let simulator = Simulator.inProcess(room: .empty)
    simulator.add(
        VirtualPeripheral(
            "C0:00:00:00:00:01", addressType: .random, advertisement: Advertisement(localName: "Strap"),
            interval: 0.1,
            services: [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic(
                            "2A37", [.notify], notifications: .cycle([[0, 72], [0, 74]], every: 1)),
                        VirtualCharacteristic("2A38", [.read], value: [1]),
                    ])
            ], link: VirtualLink(callLatency: 0.03)))
    return simulator
}

private func makeManager(on simulator: Simulator) -> CentralManager {
    try! CentralManager(configuration: .init(busAddress: simulator.address))
}

private func found(by manager: CentralManager) async throws -> Peripheral {
    try await manager.poweredOn()
    for try await peripheral in manager.startScanning().values {
        manager.stopScanning()
        return peripheral
    }
    throw FuturesError.noSuchElement
}

/// `async` code over BlueCapKit in virtual time: `await simulator.advance(by:)`.
final class VirtualTaskTests: XCTestCase {
    // MARK: Tasks on the simulator's executor

    func testTasksGoOnToTheirNextWaitBeforeTheCallReturns() async throws {
        let simulator = makeSimulator()
        let manager = makeManager(on: simulator)
        let story = Story()
        let executor = simulator.taskExecutor
        let task = Task(executorPreference: executor) {
            let peripheral = try await found(by: manager)
            story.add("found \(peripheral.name)")
            let value: UInt8 = try await peripheral.run { try await $0.read(location) }
            story.add("read \(value)")
        }
        XCTAssertEqual(story.lines, [])
        await simulator.run()
        XCTAssertEqual(story.lines, [])
        let start = simulator.seconds
        await simulator.advance(until: { story.lines == ["found Strap"] }, limit: 10)
        XCTAssertLessThan(simulator.seconds - start, 1)
        await simulator.advance(by: 10)
        XCTAssertEqual(story.lines, ["found Strap", "read 1"])
        try await task.value
        XCTAssertEqual(simulator.seconds - start, 10, accuracy: 1)
    }

    func testSeveralTasksAndALoopTakeTurnsInTheSameOrderEachTime() async throws {
        var stories: Set<[String]> = []
        for _ in 0..<20 {
            let simulator = makeSimulator()
            let manager = makeManager(on: simulator)
            let story = Story()
            let first = Task(executorPreference: simulator.taskExecutor) { try await found(by: manager) }
            await simulator.advance(by: 2)
            let peripheral = try await first.value
            peripheral.connect(timeoutRetries: .max)
            await simulator.advance(until: { peripheral.state == .connected }, limit: 10)
            let tasks = (0..<4).map { number in
                Task(executorPreference: simulator.taskExecutor) {
                    async let value: UInt8 = peripheral.run { try await $0.read(location) }
                    story.add("task \(number)")
                    let result = try await value
                    story.add("task \(number) has \(result)")
                }
            }
            let beats = Task(executorPreference: simulator.taskExecutor) {
                for try await value in peripheral.notifications(rate).values {
                    story.add("beat \(value.last ?? 0)")
                }
            }
            await simulator.advance(by: 20)
            for task in tasks { try await task.value }
            beats.cancel()
            await simulator.run()
            try await beats.value
            let lines = story.lines
            XCTAssertEqual(lines.filter { $0.hasSuffix("has 1") }.count, 4)
            XCTAssertGreaterThan(lines.filter { $0.hasPrefix("beat") }.count, 3)
            stories.insert(lines)
        }
        XCTAssertEqual(stories.count, 1, "\(stories)")
    }

    func testAnOperationIsGivenTheTimeThatItNeeds() async throws {
        let simulator = makeSimulator()
        let manager = makeManager(on: simulator)
        let start = simulator.seconds
        let value = try await simulator.run { () -> UInt8 in
            let peripheral = try await found(by: manager)
            return try await peripheral.run { try await $0.read(location) }
        }
        XCTAssertEqual(value, 1)
        XCTAssertLessThan(simulator.seconds - start, 10)
    }

    func testAnOperationThatTakesTooLongIsCancelled() async throws {
        let simulator = makeSimulator()
        let story = Story()
        let start = simulator.seconds
        do {
            try await simulator.run(limit: .seconds(5)) {
                await withTaskCancellationHandler {
                    await simulator.advance(by: .seconds(60))
                } onCancel: {
                    story.add("cancelled")
                }
            }
            XCTFail("The operation has ended.")
        } catch {
            XCTAssertEqual(error as? SimulatorError, .limitExceeded(.seconds(5)))
        }
        XCTAssertEqual(story.lines, ["cancelled"])
        XCTAssertEqual(simulator.seconds - start, 5, accuracy: 0.1)
        await simulator.advance(by: .seconds(60))
    }

    func testATaskOfTheSimulatorWaitsForVirtualTime() async throws {
        let simulator = makeSimulator()
        let story = Story()
        let start = simulator.seconds
        for (name, seconds) in [("second", 2.0), ("first", 1.0), ("too late", 60)] {
            Task(executorPreference: simulator.taskExecutor) {
                await simulator.advance(by: seconds)
                story.add("\(name) at \(Int((simulator.seconds - start).rounded()))")
            }
        }
        await simulator.advance(by: 30)
        XCTAssertEqual(story.lines, ["first at 1", "second at 2"])
        XCTAssertEqual(simulator.seconds - start, 30, accuracy: 0.001)
    }

    func testATaskOfTheSimulatorWaitsForACondition() async {
        let simulator = Simulator.inProcess(room: .empty)
        let story = Story()
        let start = simulator.seconds
        Task(executorPreference: simulator.taskExecutor) {
            await simulator.advance(by: 1.5)
            story.add("event")
        }
        let waiting = Task(executorPreference: simulator.taskExecutor) {
            let holds = await simulator.advance(until: { story.lines == ["event"] }, limit: 10)
            let seconds = simulator.seconds - start
            return (holds, seconds, await simulator.advance(until: { false }, limit: 5), simulator.seconds - start)
        }
        await simulator.advance(by: 60)
        let (holds, seconds, never, end) = await waiting.value
        XCTAssertTrue(holds)
        XCTAssertEqual(seconds, 1.5, accuracy: 0.001)
        XCTAssertFalse(never)
        XCTAssertEqual(end, 6.5, accuracy: 0.001)
    }

    func testEverythingOfAnInstantHasHappenedWhenAWaitOfATaskEnds() async {
        let simulator = Simulator.inProcess(room: .empty)
        let story = Story()
        let (promise, executor) = (Promise<Int>(), simulator.taskExecutor)
        Task(executorPreference: executor) {
            await simulator.advance(by: 1)
            story.add("waited")
        }
        Task(executorPreference: executor) {
            await simulator.advance(by: 1)
            promise.success(1)
        }
        Task(executorPreference: executor) {
            _ = try? await promise.future.map(context: ImmediateContext()) { $0 + 1 }.value
            story.add("value")
        }
        await simulator.advance(by: 1)
        XCTAssertEqual(Set(story.lines), ["waited", "value"])
    }

    // MARK: Tasks elsewhere

    @MainActor
    func testTasksOfTheMainActorGetTurns() async throws {
        let simulator = makeSimulator()
        let manager = makeManager(on: simulator)
        var lines: [String] = []
        let task = Task {
            try await manager.poweredOn()
            lines.append("powered on")
            let peripheral = try await found(by: manager)
            lines.append("found \(peripheral.name)")
            let value: UInt8 = try await peripheral.run { try await $0.read(location) }
            lines.append("read \(value)")
        }
        // No promise is made for these: it may take more than one call, and as long as Swift's threads take.
        let end = ContinuousClock.now + .seconds(60)
        while lines.count < 3, ContinuousClock.now < end { await simulator.advance(by: 1) }
        XCTAssertEqual(lines, ["powered on", "found Strap", "read 1"])
        try await task.value
    }

    func testTasksOnOtherExecutorsGetTurns() async throws {
        let simulator = makeSimulator()
        let manager = makeManager(on: simulator)
        let task = Task { try await found(by: manager).name }
        let name = Locked<String?>(nil)
        let watcher = Task {
            let found = try? await task.value
            name.withLock { $0 = found }
        }
        // No promise is made for these: it may take more than one call, and as long as Swift's threads take.
        let end = ContinuousClock.now + .seconds(60)
        while name.withLock({ $0 }) == nil, ContinuousClock.now < end { await simulator.advance(by: 1) }
        await watcher.value
        XCTAssertEqual(name.withLock { $0 }, "Strap")
    }
}
