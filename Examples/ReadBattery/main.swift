import BlueCapKit

let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
let manager = CentralManager()
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let found = try await manager.startScanning(forServiceUUIDs: [CBUUID(string: "180F")], timeout: 30).first().value
manager.stopScanning()
let percent: UInt8 = try await found.run(timeout: .seconds(30)) { try await $0.read(level) }
print(found.name, percent, "%")
