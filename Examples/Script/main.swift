import BlueCapKit

let heartRate = ServiceIdentifier(uuid: "180D")
let location = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
let control = CharacteristicIdentifier(uuid: "2A39", service: heartRate)
let manager = CentralManager()
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let stream = manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")], timeout: .seconds(30))
let found = try await stream.first().value
manager.stopScanning()
let place: UInt8 = try await found.run(timeout: .seconds(30)) { strap in
    try await strap.write(UInt8(1), to: control)  // resets the energy expended
    return try await strap.read(location)
}
print(found.name, place == 1 ? "on the chest" : "at location \(place)")
