import BlueCapKit
import BlueZSimulator
import Foundation
import XCTest

/// `await manager.poweredOn()` in virtual time, for both managers.
final class PoweredOnTests: XCTestCase {
    private typealias Wait = @Sendable (TimeInterval) async throws -> Void

    private func waits(on simulator: Simulator) -> [Wait] {
        var configuration = CentralManager.Configuration()
        configuration.busAddress = simulator.address
        let central = CentralManager(configuration: configuration)
        var serving = PeripheralManager.Configuration()
        serving.busAddress = simulator.address
        let peripheral = PeripheralManager(configuration: serving)
        return [{ try await central.poweredOn(timeout: $0) }, { try await peripheral.poweredOn(timeout: $0) }]
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
            } catch let error as BluetoothUnavailable {
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
        XCTAssertEqual(on, [.poweredOn, .poweredOn])
        let off = await states { $0.simulatePowerOff() }
        XCTAssertEqual(off, [.poweredOff, .poweredOff])
        let blocked = await states { $0.simulateRfkill(true) }
        XCTAssertEqual(blocked, [.poweredOff, .poweredOff])
        let none = await states { $0.simulateAdapterRemoval() }
        XCTAssertEqual(none, [.unsupported, .unsupported])
        let dead = await states { $0.simulateDaemonStop() }
        XCTAssertEqual(dead, [.unsupported, .unsupported])
        let denied = await states { $0.simulateAccessDenied() }
        XCTAssertEqual(denied, [.unauthorized, .unauthorized])
    }

    func testItWaitsUntilTheAdapterIsOn() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        for wait in waits(on: simulator) {
            let ended = Story()
            let task = Task(executorPreference: simulator.taskExecutor) {
                try await wait(.infinity)
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

    func testACancelledTaskStopsWaiting() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        for wait in waits(on: simulator) {
            let task = Task(executorPreference: simulator.taskExecutor) { try await wait(.infinity) }
            await simulator.advance(by: 5)
            task.cancel()
            await simulator.run()
            let result = await task.result
            XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        }
    }

    func testTheEndOfTheManagerEndsTheWait() async {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.simulatePowerOff()
        var configuration = CentralManager.Configuration()
        configuration.busAddress = simulator.address
        let manager = CentralManager(configuration: configuration)
        let task = Task(executorPreference: simulator.taskExecutor) { try await manager.poweredOn() }
        await simulator.advance(by: 5)
        manager.invalidate()
        await simulator.advance(by: 1)
        let result = await task.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is BluetoothUnavailable, "\($0)") }
    }
}
