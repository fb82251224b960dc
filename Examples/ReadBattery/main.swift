import BlueCapKit

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

print("battery:", try await readBattery(CentralManager(configuration: .init())), "%")
