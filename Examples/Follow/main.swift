import BlueCapKit

// Follows a heart rate strap. After a crash or a restart it restores its connection and subscription.
let measurement = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
let manager = try CentralManager(configuration: .init(restoreIdentifier: "us.gnos.BlueCap.follow"))
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let restored = try await manager.whenStateRestored().map { peripherals, _, _ in peripherals.first }.value
let strap =
    if let restored {
        restored
    } else {
        try await manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")]).first().value
    }
manager.stopScanning()
try await withThrowingDiscardingTaskGroup { group in
    let changes = strap.stayConnected()
    group.addTask {
        for try await change in changes { print(change) }
    }
    group.addTask {
        for try await event in strap.notificationEvents(measurement) {
            switch event {
            case .value(let data): print(restored == nil ? "new" : "restored", data)
            case .gap: print("values may be missing here")
            }
        }
    }
}
