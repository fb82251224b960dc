import BlueCapKit
import BlueCapServiceLifecycle
import BlueZSimulator
import Foundation
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import XCTest

/// Services end what their managers have begun.
final class ManagerServiceTests: XCTestCase {
    private static let uuid = CBUUID(string: "180F")

    private func central(_ simulator: Simulator) throws -> CentralManager {
        try CentralManager(configuration: .init(busAddress: simulator.address))
    }

    private func peripheral(_ simulator: Simulator) throws -> PeripheralManager {
        try PeripheralManager(configuration: .init(busAddress: simulator.address))
    }

    /// A scan, a ranging and a link.
    private func beginCentral(_ manager: CentralManager, _ simulator: Simulator) async throws {
        simulator.add(VirtualPeripheral("C0:FF:EE:00:00:01", name: "Tag", services: [VirtualService("180F")]))
        try await manager.poweredOn(timeout: 10)
        let tag = try await manager.startScanning().first().value
        _ = manager.startRangingBeacons()
        _ = try await tag.connect().first().value as Void
        XCTAssertEqual(manager.statistics.peripherals.connected, 1)
    }

    private func expectNothing(of manager: CentralManager, _ simulator: Simulator) {
        XCTAssertFalse(manager.isScanning)
        XCTAssertEqual(simulator.discoverySessions, [])
        XCTAssertEqual(manager.peripherals.map(\.state), [.disconnected])
        XCTAssertEqual(manager.statistics.peripherals.connected, 0)
    }

    private func beginPeripheral(_ manager: PeripheralManager, _ simulator: Simulator) async throws {
        try await manager.add(MutableService(uuid: Self.uuid))
        try await manager.startAdvertising("Battery", uuids: [Self.uuid])
        try await manager.startAdvertising(AdvertisingData(kind: .broadcast, isDiscoverable: false))
        XCTAssertEqual(simulator.applications.count, 1)
        XCTAssertEqual(simulator.advertisements.count, 2)
    }

    private func expectNothing(of manager: PeripheralManager, _ simulator: Simulator) {
        XCTAssertEqual(manager.services, [])
        XCTAssertFalse(manager.isAdvertising)
        XCTAssertEqual(simulator.applications, [])
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testGracefulShutdownEndsScansAndLinks() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let manager = try central(simulator)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await CentralManagerService(manager).run() }
                try await beginCentral(manager, simulator)
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
        expectNothing(of: manager, simulator)
    }

    func testGracefulShutdownEndsServicesAndAdvertisements() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let manager = try peripheral(simulator)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await PeripheralManagerService(manager).run() }
                try await beginPeripheral(manager, simulator)
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
        expectNothing(of: manager, simulator)
    }

    func testServicesAreRemovedThoughNothingIsAdvertised() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let manager = try peripheral(simulator)
        try await manager.add(MutableService(uuid: Self.uuid))
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await PeripheralManagerService(manager).run()
        }
        expectNothing(of: manager, simulator)
    }

    func testACancelledTaskEndsTheSame() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let (central, peripheral) = (try central(simulator), try peripheral(simulator))
        try await beginCentral(central, simulator)
        try await beginPeripheral(peripheral, simulator)
        let tasks = [
            Task { try await CentralManagerService(central).run() },
            Task { try await PeripheralManagerService(peripheral).run() },
        ]
        for task in tasks { task.cancel() }
        for task in tasks {
            let result = await task.result
            XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        }
        expectNothing(of: central, simulator)
        expectNothing(of: peripheral, simulator)
    }

    func testTheTimeLimitEndsTheWait() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let manager = try peripheral(simulator)
        try await beginPeripheral(manager, simulator)
        simulator.simulateSlowReplies(by: 3_600)
        let begin = ContinuousClock.now
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await PeripheralManagerService(manager, timeout: .milliseconds(100)).run()
        }
        XCTAssertLessThan(ContinuousClock.now - begin, .seconds(10))
        XCTAssertFalse(manager.isAdvertising)
    }

    /// A service that uses the manager until shutdown, as an application's does.
    private struct Beacon: ServiceLifecycle.Service {
        let manager: PeripheralManager
        let begun: AsyncStream<Void>.Continuation

        func run() async throws {
            try await manager.startAdvertising("Beacon")
            begun.yield()
            try await gracefulShutdown()
            XCTAssertTrue(manager.isAdvertising, "The manager's service is shut down after this one.")
        }
    }

    func testAGroupShutsTheManagerDownLast() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        let manager = try peripheral(simulator)
        let (begins, begun) = AsyncStream.makeStream(of: Void.self)
        let group = ServiceGroup(
            services: [PeripheralManagerService(manager), Beacon(manager: manager, begun: begun)],
            logger: Logger(label: "test"))
        async let run: Void = group.run()
        for await _ in begins { break }
        await group.triggerGracefulShutdown()
        // The group takes a service that returns for a failure, unless it is shutting down.
        try await run
        expectNothing(of: manager, simulator)
    }
}
