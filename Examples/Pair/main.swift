import BlueCapKit

let state = CharacteristicIdentifier(uuid: "AA11", service: ServiceIdentifier(uuid: "AA10"))
let manager = try CentralManager(configuration: .init(pairingPolicy: .justWorks))
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let stream = manager.startScanning(forServiceUUIDs: [CBUUID(string: "AA10")], timeout: .seconds(30))
let door = try await stream.first().value
manager.stopScanning()
let isLocked: UInt8 = try await door.run(timeout: .seconds(60)) { door in
    try await door.pair()  // asks nothing, and needs no pairing if there is a bond
    return try await door.read(state)
}
print(door.name, isLocked == 1 ? "is locked" : "is open")
