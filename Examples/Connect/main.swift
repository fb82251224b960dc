import BlueCapKit

let manager = CentralManager()
let (battery, level) = (CBUUID(string: "180F"), CBUUID(string: "2A19"))
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let found = try await manager.startScanning(forServiceUUIDs: [battery], timeout: .seconds(30)).first().value
manager.stopScanning()
try await found.connect(timeout: .seconds(10))
for service in try await found.discoverServices([battery]) {
    for characteristic in try await service.discoverCharacteristics([level]) {
        let percent: UInt8 = try await characteristic.read(timeout: .seconds(5))
        print(found.name, percent, "%")
    }
}
found.disconnect()
