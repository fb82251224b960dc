import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// `await manager.waitUntilPoweredOn()` and `poweredOn()` in virtual time, for both managers.
final class PoweredOnTests: XCTestCase {
    /// With a number of seconds, or `nil` for no limit.
    private typealias Wait = @Sendable (Int?) async throws -> Void

    private func waits(on simulator: Simulator) -> [Wait] {
        let central = try! CentralManager(configuration: .init(busAddress: simulator.address))
        let peripheral = try! PeripheralManager(configuration: .init(busAddress: simulator.address))
        return [
            { try await central.waitUntilPoweredOn(timeout: $0.map { .seconds($0) }) },
            { try await peripheral.waitUntilPoweredOn(timeout: $0.map { .seconds($0) }) },
            { try await central.poweredOn(timeout: $0.map(TimeInterval.init) ?? .infinity) },
            { try await peripheral.poweredOn(timeout: $0.map(TimeInterval.init) ?? .infinity) },
        ]
    }

    /// The states with which the waits of both managers end after 5 seconds.
    private func states(_ prepare: (Simulator) -> Void) async -> [ManagerState?] {
        let simulator = Simulator.inProcess(room: .empty)
        prepare(simulator)
        var states: [ManagerState?] = []
        for wait in waits(on: simulator) {
            let start = simulator.seconds
            let task = Task(executorPreference: simulator.taskExecutor) { try await wait(5) }
            await simulator.advance(by: 6)
            do {
                try await task.value
                states.append(.poweredOn)
            } catch let error as BluetoothUnavailableError {
                XCTAssertFalse(error.explanation.isEmpty)
                XCTAssertGreaterThanOrEqual(simulator.seconds - start, 5)
                states.append(error.state)
            } catch {
                XCTFail("\(error)")
                states.append(nil)
            }
        }
        return states
    }

    func testTheErrorSaysWhyBluetoothIsNotUsable() async {
        let on = await states { _ in }
        XCTAssertEqual(on, Array(repeating: .poweredOn, count: 4))
        let off = await states { $0.simulatePowerOff() }
        XCTAssertEqual(off, Array(repeating: .poweredOff, count: 4))
        let blocked = await states { $0.simulateRfkill(true) }
        XCTAssertEqual(blocked, Array(repeating: .poweredOff, count: 4))
        let none = await states { $0.simulateAdapterRemoval() }
        XCTAssertEqual(none, Array(repeating: .unsupported, count: 4))
        let dead = await states { $0.simulateDaemonStop() }
        XCTAssertEqual(dead, Array(repeating: .unsupported, count: 4))
        let denied = await states { $0.simulateAccessDenied() }
        XCTAssertEqual(denied, Array(repeating: .unauthorized, count: 4))
    }

    func testItWaitsUntilTheAdapterIsOn() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        for wait in waits(on: simulator) {
            let ended = Story()
            let task = Task(executorPreference: simulator.taskExecutor) {
                try await wait(nil)
                ended.add("on")
            }
            await simulator.advance(by: 3_600)
            XCTAssertEqual(ended.lines, [])
            simulator.simulatePowerOn()
            await simulator.advance(by: 5)
            XCTAssertEqual(ended.lines, ["on"])
            try await task.value
            simulator.simulatePowerOff()
            await simulator.advance(by: 5)
        }
    }

    func testAPropertySaysWhetherTheAdapterIsOn() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let central = try CentralManager(configuration: .init(busAddress: simulator.address))
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertFalse(central.isPoweredOn || peripheral.isPoweredOn)
        XCTAssertTrue(simulator.advance(until: { central.isPoweredOn && peripheral.isPoweredOn }, limit: 5))
        simulator.simulatePowerOff()
        simulator.advance(by: 1)
        XCTAssertFalse(central.isPoweredOn || peripheral.isPoweredOn)
    }

    func testACancelledTaskStopsWaiting() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        for wait in waits(on: simulator) {
            let task = Task(executorPreference: simulator.taskExecutor) { try await wait(nil) }
            await simulator.advance(by: 5)
            await simulator.expectCancellation(of: task)
        }
    }

    func testTheEndOfTheManagerEndsTheWait() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let task = Task(executorPreference: simulator.taskExecutor) { try await manager.waitUntilPoweredOn() }
        await simulator.advance(by: 5)
        manager.invalidate()
        await simulator.advance(by: 1)
        await task.expectThrown(BluetoothUnavailableError.self)
    }
}
