import BlueCapKit

func serveBattery(_ manager: PeripheralManager) async throws {
    let level = MutableCharacteristic(profile: RawCharacteristicProfile<BluetoothSIG.BatteryService.Level>())
    level.unsubscribedUpdatePolicy = .latest  // a central that subscribes later receives only the newest level
    let battery = MutableService(uuid: "180F")
    battery.characteristics = [level]
    try await manager.add(battery)
    try await manager.startAdvertising("Battery", uuids: [battery.uuid])
    for percent in (0...100).reversed() {
        try level.update(UInt8(percent))
        try await Task.sleep(for: .seconds(1))
    }
}

try await serveBattery(PeripheralManager(configuration: .init()))
