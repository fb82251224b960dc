import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// BlueZ reports the end of a link before that of the power. A program that called `reconnect()` in the `.disconnect` had
/// begun a try by then, which ended with a second `.disconnect`: one power-off was counted twice against
/// `disconnectRetries`.
final class OnePowerOffTests: XCTestCase {
    private let address: VirtualAddress = "C0:00:00:00:00:01"

    private struct Scene {
        let simulator: Simulator
        let manager: CentralManager
        let peripheral: Peripheral
        let journal = Journal()
    }

    /// A peripheral that is connected to, by a program that reconnects in each `.disconnect`, unless it does not.
    private func scene(
        disconnectRetries: UInt, timeout: TimeInterval = .infinity, reconnects: Bool = true
    ) throws -> Scene {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(.strap(link: VirtualLink(connectLatency: 1)))
        let (manager, peripheral) = try simulator.firstPeripheral()
        let scene = Scene(simulator: simulator, manager: manager, peripheral: peripheral)
        let stream = peripheral.connect(disconnectRetries: disconnectRetries, connectionTimeout: timeout)
        scene.journal.watch(stream)
        stream.onSuccess(context: ImmediateContext()) { peripheral, event in
            if reconnects, event == .disconnect || event == .timeout { peripheral.reconnect() }
        }
        XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 10))
        simulator.advance(by: 5)
        return scene
    }

    func testOneLossIsOneDisconnectAlsoIfTheProgramReconnectsInIt() throws {
        for loss in AdapterLoss.all {
            let scene = try scene(disconnectRetries: 1)
            loss.go(scene.simulator)
            scene.simulator.advance(by: 30)
            XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect], loss.name)
            loss.back(scene.simulator)
            XCTAssertTrue(
                scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 60), loss.name)
            XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect, .connect], loss.name)
            XCTAssertEqual(scene.peripheral.disconnectionCount, 1, loss.name)
        }
    }

    func testEachLossCountsOnceAgainstTheRetries() throws {
        for loss in AdapterLoss.all {
            let scene = try scene(disconnectRetries: 2)
            for _ in 1...3 {
                loss.go(scene.simulator)
                scene.simulator.advance(by: 15)
                loss.back(scene.simulator)
                scene.simulator.advance(by: 60)
            }
            XCTAssertEqual(
                scene.journal.connectionEvents,
                [.connect, .disconnect, .connect, .disconnect, .connect, .giveUp], loss.name)
        }
    }

    /// The try of the run that was next ended with a second `.disconnect`, which was one too many.
    func testOneLossIsOneDisconnectAlsoIfTheNextRunConnectsBetweenItsSignals() throws {
        for loss in AdapterLoss.all {
            for pause in [0, 0.5] {
                let scene = try scene(disconnectRetries: 1, reconnects: false)
                let runs = (0..<2).map { _ in
                    scene.peripheral.run { _ in try await Promise<Void>().future.value }
                }
                scene.simulator.advance(by: 1)
                if pause > 0 {
                    scene.simulator.simulateLinkLoss(of: address)
                    scene.simulator.advance(by: pause)
                    XCTAssertEqual(scene.peripheral.state, .connecting, loss.name)
                }
                loss.go(scene.simulator)
                scene.simulator.advance(by: 30)
                XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect], "\(loss.name), \(pause)")
                XCTAssertTrue(runs[0].completed)
                XCTAssertFalse(runs[1].completed, "It waits for the adapter.")
                loss.back(scene.simulator)
                XCTAssertTrue(
                    scene.simulator.advance(until: { scene.peripheral.state == .connected }, limit: 60), loss.name)
                XCTAssertEqual(
                    scene.journal.connectionEvents, [.connect, .disconnect, .connect], "\(loss.name), \(pause)")
            }
        }
    }

    /// A loss that was reported long ago hid each later loss of the adapter.
    func testAnAdapterThatGoesLongAfterTheLinkIsALossOfItsOwn() throws {
        for loss in AdapterLoss.all {
            let scene = try scene(disconnectRetries: 2)
            scene.simulator.remove(address)
            XCTAssertTrue(
                scene.simulator.advance(
                    until: { scene.journal.connectionEvents == [.connect, .disconnect] }, limit: 30), loss.name)
            scene.simulator.advance(by: 60)
            XCTAssertEqual(scene.peripheral.state, .connecting, loss.name)
            loss.go(scene.simulator)
            scene.simulator.advance(by: 5)
            XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect, .disconnect], loss.name)
            XCTAssertEqual(scene.peripheral.state, .connecting, "It waits for the adapter.")
        }
    }

    func testTheTryThatWaitsForTheAdapterRunsOut() throws {
        for loss in AdapterLoss.all {
            let scene = try scene(disconnectRetries: .max, timeout: 10)
            loss.go(scene.simulator)
            scene.simulator.advance(by: 9)
            XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect], loss.name)
            scene.simulator.advance(by: 3)
            XCTAssertEqual(scene.journal.connectionEvents, [.connect, .disconnect, .timeout], loss.name)
        }
    }
}
