import BlueCapKit
import BlueZSimulator
import XCTest

/// The code under test: returns the battery level of the first peripheral that has one.
func firstLevel(_ manager: CentralManager) async throws -> UInt8 {
    let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
    try await manager.waitUntilPoweredOn(timeout: .seconds(10))
    let stream = manager.startScanning(forServiceUUIDs: [CBUUID(string: "180F")], timeout: .seconds(30))
    let found = try await stream.first().value
    manager.stopScanning()
    return try await found.run(timeout: .seconds(30)) { try await $0.read(level) }
}

final class FirstLevelTests: XCTestCase {
    /// Reads the level of a virtual peripheral. The fault is in effect from half a second before it is discovered.
    private func readLevel(_ fault: @escaping @Sendable (Simulator) async -> Void = { _ in }) async throws -> UInt8 {
        let simulator = Simulator.inProcess(room: .empty)
        let level = VirtualCharacteristic("2A19", [.read], value: [80])
        simulator.add(
            VirtualPeripheral(
                "C0:FF:EE:00:18:0F", advertisement: Advertisement(localName: "Tag", serviceUUIDs: ["180F"]),
                appearsAfter: 1, services: [VirtualService("180F", characteristics: [level])]))
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        return try await simulator.run {
            async let level = firstLevel(manager)
            await simulator.advance(by: .milliseconds(500))
            await fault(simulator)
            return try await level
        }
    }

    func testTheLevelIsRead() async throws {
        let level = try await readLevel()
        XCTAssertEqual(level, 80)
    }

    func testRefusedConnectionsAreTriedAgain() async throws {
        let level = try await readLevel { $0.simulateConnectFailures(2, of: "C0:FF:EE:00:18:0F") }
        XCTAssertEqual(level, 80)
    }

    func testTheScanContinuesAfterARestartOfBluetoothd() async throws {
        let level = try await readLevel { simulator in
            simulator.simulateDaemonDeath()
            await simulator.advance(by: .seconds(2))
            simulator.simulateDaemonReturn()
        }
        XCTAssertEqual(level, 80)
    }

    func testAnAbsentPeripheralIsAnError() async throws {
        do {
            let level = try await readLevel { $0.simulateOutOfRange(of: "C0:FF:EE:00:18:0F") }
            XCTFail("The level is \(level).")
        } catch CentralManagerError.peripheralScanTimeout {}
    }
}
