import BlueCapDBus

/// A device with services, as `bluetoothd` 5.66 exports it.
extension BlueZMessages {
    static let device: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_56"
    static let service = device.appending("service0028")
    static let characteristic = service.appending("char002a")
    static let descriptor = characteristic.appending("desc002c")

    static func gattService(uuid: String = "0000180d-0000-1000-8000-00805f9b34fb") -> TestInterfaces {
        [
            ("org.freedesktop.DBus.Introspectable", []),
            (
                "org.bluez.GattService1",
                [
                    ("UUID", .string(uuid)), ("Device", .path(device)), ("Primary", .bool(true)),
                    ("Includes", .paths([device.appending("service0010"), device.appending("service00ff")])),
                ]
            ),
        ]
    }

    static func gattCharacteristic(
        uuid: String = "00002a37-0000-1000-8000-00805f9b34fb", flags: [String] = ["read", "notify", "teleport"]
    ) -> TestInterfaces {
        [
            (
                "org.bluez.GattCharacteristic1",
                [
                    ("UUID", .string(uuid)), ("Service", .path(service)), ("Value", .bytes([1, 2])),
                    ("Notifying", .bool(true)), ("Flags", .strings(flags)), ("MTU", .uint16(517)),
                    ("NotifyAcquired", .bool(true)), ("WriteAcquired", .bool(true)),
                ]
            )
        ]
    }

    static func gattDescriptor(uuid: String = "00002902-0000-1000-8000-00805f9b34fb") -> TestInterfaces {
        [
            (
                "org.bluez.GattDescriptor1",
                [
                    ("UUID", .string(uuid)), ("Characteristic", .path(characteristic)), ("Value", .bytes([])),
                    ("Flags", .strings(["read", "write"])),
                ]
            )
        ]
    }

    /// Adapter, device, one service, one characteristic, one descriptor; what is contained first.
    static var connectedDevice: [(ObjectPath, TestInterfaces)] {
        [
            (descriptor, gattDescriptor()), (characteristic, gattCharacteristic()), (service, gattService()),
            (device, [("org.bluez.Device1", fullDevice)]), (adapterPath, adapter()),
        ]
    }

    static func valueChanged(_ value: [UInt8], of path: ObjectPath = characteristic) -> Message {
        propertiesChanged(path, "org.bluez.GattCharacteristic1", [("Value", .bytes(value))])
    }
}
