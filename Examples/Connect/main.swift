import BlueCapKit

let manager = CentralManager()
let (battery, level) = (CBUUID(string: "180F"), CBUUID(string: "2A19"))
try await manager.waitUntilPoweredOn()
let found = try await manager.startScanning(forServiceUUIDs: [battery], timeout: 30).first().value
manager.stopScanning()
for try await (peripheral, event) in found.connect(connectionTimeout: 10).values {
    guard event == .connect else { break }
    let service = try await peripheral.discoverServices([battery]).value.service(battery)
    let value = try await service?.discoverCharacteristics([level]).value.characteristic(level)?.read().value
    print(peripheral.name, value?.dataValue?.first ?? 0, "%")
    peripheral.disconnect()
}
