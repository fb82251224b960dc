import BlueCapKit
import BlueZSimulator

/// The documents' peripheral, a TI SensorTag, of which they use the accelerometer.
enum Sensor {
    static let address: VirtualAddress = "C0:FF:EE:00:AA:10"
    static let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)
    static let dataUUID = CBUUID(string: TISensorTag.AccelerometerService.Data.uuid)
    static let enabledUUID = CBUUID(string: TISensorTag.AccelerometerService.Enabled.uuid)
    static let updatePeriodUUID = CBUUID(string: TISensorTag.AccelerometerService.UpdatePeriod.uuid)

    /// All that discovery finds: `bluetoothd` shows generic access (from 5.80 on) and generic attribute too.
    static let serviceUUIDs = [CBUUID(string: "1800"), CBUUID(string: "1801"), serviceUUID, CBUUID(string: "180F")]

    static let peripheral = VirtualPeripheral(
        address, addressType: .random, rssi: .constant(-52),
        advertisement: Advertisement(
            localName: "SensorTag", serviceUUIDs: [serviceUUID.uuidString], manufacturerData: [0x000D: [3, 0, 0]],
            serviceData: ["180f": [99]], txPower: 4),
        interval: 0.1,
        services: [
            VirtualService(
                serviceUUID.uuidString,
                characteristics: [
                    VirtualCharacteristic(dataUUID.uuidString, [.read, .notify], value: [0xC0, 0xE0, 0xA0]),
                    VirtualCharacteristic(enabledUUID.uuidString, [.read, .write], value: [0]),
                    VirtualCharacteristic(updatePeriodUUID.uuidString, [.read, .write], value: [100]),
                ]),
            VirtualService(
                "180F", characteristics: [VirtualCharacteristic("2A19", [.read, .notify], value: [87])]),
        ])
}

extension AttributeSelector {
    init(_ uuid: CBUUID) { self = .uuid(uuid.uuidString) }
}
