import BlueCapKit
import BlueZSimulator
import XCTest

final class BatteryTests: XCTestCase {
    func testTheBatteryIsRead() async throws {
        let simulator = Simulator.inProcess(room: .furnished)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let percent = try await simulator.run { try await readBattery(manager) }
        XCTAssertEqual(percent, 64)
    }
}

// The function under test, as in README.md.

/// Returns the battery level, in percent, of the first peripheral that advertises one.
func readBattery(_ manager: CentralManager) async throws -> UInt8 {
    let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
    try await manager.waitUntilPoweredOn(timeout: .seconds(10))
    let services = [CBUUID(string: "180F")]
    for try await peripheral in manager.startScanning(forServiceUUIDs: services, timeout: .seconds(30)) {
        manager.stopScanning()
        return try await peripheral.run(timeout: .seconds(30)) { try await $0.read(level) }
    }
    throw CancellationError()  // the loop has ended because the task was cancelled
}
