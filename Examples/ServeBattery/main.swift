import BlueCapKit
import Foundation

let level = MutableCharacteristic(profile: RawCharacteristicProfile<BluetoothSIG.BatteryService.Level>())
level.unsubscribedUpdatePolicy = .latest  // a central that subscribes later receives only the newest level
let battery = MutableService(uuid: "180F")
battery.characteristics = [level]
let manager = PeripheralManager()
try await manager.add(battery).value
try await manager.startAdvertising("Battery", uuids: [battery.uuid]).value
for percent in (0...100).reversed() {
    try level.update(withData: Data([UInt8(percent)]))
    try await Task.sleep(for: .seconds(1))
}
