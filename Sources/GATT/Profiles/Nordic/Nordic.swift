/// Services of Nordic Semiconductor's development kits and samples.
public enum Nordic {
    static let tag = "Nordic"

    /// What is known of each service and its characteristics, to be added to a ``ProfileManager``.
    public static var serviceProfiles: [ServiceProfile] {
        [
            ConfiguredServiceProfile<UARTService>(
                StringCharacteristicProfile<UARTService.RX>(), StringCharacteristicProfile<UARTService.TX>()),
            ConfiguredServiceProfile<LEDButtonService>(
                RawCharacteristicProfile<LEDButtonService.Button>(), RawCharacteristicProfile<LEDButtonService.LED>()),
            ConfiguredServiceProfile<DeviceTemperatureService>(
                RawCharacteristicProfile<DeviceTemperatureService.Data>()),
            ConfiguredServiceProfile<DeviceAddressService>(
                RawArrayCharacteristicProfile<DeviceAddressService.Address>(),
                RawCharacteristicProfile<DeviceAddressService.AddressType>()),
            secureDFU,
        ]
    }

    /// Secure device firmware update: requests and responses have a form for each procedure; people see the bytes.
    private static var secureDFU: ServiceProfile {
        let profile = ServiceProfile(uuid: "FE59", name: "Nordic Secure DFU", tag: tag)
        let characteristics: [(uuid: String, name: String, properties: CBCharacteristicProperties)] = [
            ("8EC90001-F315-4F60-9FB8-838830DAEA50", "DFU Control Point", [.write, .notify]),
            ("8EC90002-F315-4F60-9FB8-838830DAEA50", "DFU Packet", [.writeWithoutResponse]),
            ("8EC90003-F315-4F60-9FB8-838830DAEA50", "Buttonless DFU", [.write, .indicate]),
        ]
        for (uuid, name, properties) in characteristics {
            profile.addCharacteristic(
                CharacteristicProfile(uuid: uuid, name: name, permissions: [.writeable], properties: properties))
        }
        return profile
    }

    /// A serial line over Bluetooth (nRF Connect SDK, "Nordic UART Service").
    public enum UARTService: ServiceConfigurable {
        public static let uuid = "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"
        public static let name = "Nordic UART"
        public static let tag = Nordic.tag

        /// What the central sends to the device: bytes, shown as text where they are UTF-8.
        public enum RX: CharacteristicConfigurable {
            public static let uuid = "6E400002-B5A3-F393-E0A9-E50E24DCCA9E"
            public static let name = "UART RX"
            public static let properties: CBCharacteristicProperties = [.write, .writeWithoutResponse]
            public static let permissions: CBAttributePermissions = [.writeable]
        }

        /// What the device sends to the central: bytes, shown as text where they are UTF-8.
        public enum TX: CharacteristicConfigurable {
            public static let uuid = "6E400003-B5A3-F393-E0A9-E50E24DCCA9E"
            public static let name = "UART TX"
            public static let properties: CBCharacteristicProperties = [.notify]
            public static let permissions: CBAttributePermissions = [.readable]
        }
    }

    /// A button and a lamp (nRF Connect SDK, "LED Button Service").
    public enum LEDButtonService: ServiceConfigurable {
        public static let uuid = "00001523-1212-EFDE-1523-785FEABCD123"
        public static let name = "Nordic LED Button"
        public static let tag = Nordic.tag

        /// Whether the button is down.
        public enum Button: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
            case released = 0
            case pressed = 1
            public static let uuid = "00001524-1212-EFDE-1523-785FEABCD123"
            public static let name = "Button"
            public static let properties: CBCharacteristicProperties = [.read, .notify]
            public static let stringValues = ["Released", "Pressed"]
        }

        /// Whether the lamp is lit.
        public enum LED: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
            case off = 0
            case on = 1
            public static let uuid = "00001525-1212-EFDE-1523-785FEABCD123"
            public static let name = "LED"
            public static let properties: CBCharacteristicProperties = [.read, .write]
            public static let stringValues = ["Off", "On"]
        }
    }
}
