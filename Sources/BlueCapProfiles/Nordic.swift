import Foundation

/// Services of Nordic Semiconductor's development kits and samples.
public enum Nordic {
    static let tag = "Nordic"

    /// The profiles of all services with their characteristics, for a `ProfileManager`.
    public static var serviceProfiles: [ServiceProfile] {
        [
            UARTService.profile, LEDButtonService.profile, DeviceTemperatureService.profile,
            DeviceAddressService.profile, secureDFU,
        ]
    }

    /// Secure device firmware update: requests and responses differ by procedure; the string form is the bytes.
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
    public enum UARTService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "6E400001-B5A3-F393-E0A9-E50E24DCCA9E", "Nordic UART", tag: Nordic.tag,
            [RX.profile, TX.profile])

        /// The bytes that the central sends to the device, shown as text if they are UTF-8.
        public enum RX: DeclaredCharacteristic {
            public static let declaration = CharacteristicDeclaration(
                "6E400002-B5A3-F393-E0A9-E50E24DCCA9E", "UART RX", [.write, .writeWithoutResponse],
                permissions: [.writeable])
        }

        /// The bytes that the device sends to the central, shown as text if they are UTF-8.
        public enum TX: DeclaredCharacteristic {
            public static let declaration = CharacteristicDeclaration(
                "6E400003-B5A3-F393-E0A9-E50E24DCCA9E", "UART TX", [.notify], permissions: [.readable])
        }
    }

    /// A button and a lamp (nRF Connect SDK, "LED Button Service").
    public enum LEDButtonService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "00001523-1212-EFDE-1523-785FEABCD123", "Nordic LED Button", tag: Nordic.tag,
            [Button.profile, LED.profile])

        /// Whether the button is down.
        public enum Button: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
            /// The button is up.
            case released = 0
            /// The button is down.
            case pressed = 1
            public static let declaration = CharacteristicDeclaration(
                "00001524-1212-EFDE-1523-785FEABCD123", "Button", [.read, .notify], texts: ["Released", "Pressed"])
        }

        /// Whether the lamp is lit.
        public enum LED: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
            /// The lamp is dark.
            case off = 0
            /// The lamp is lit.
            case on = 1
            public static let declaration = CharacteristicDeclaration(
                "00001525-1212-EFDE-1523-785FEABCD123", "LED", [.read, .write], texts: ["Off", "On"])
        }
    }

    /// The temperature of the chip, as samples for the nRF51 publish it.
    public enum DeviceTemperatureService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "2F0A0003-69AA-F316-3E78-4194989A6C1A", "Nordic Device Temperature", tag: Nordic.tag,
            [Data.profile])

        /// The temperature in °C, in steps of a quarter (nRF51 Series Reference Manual, TEMP).
        public struct Data: DeclaredQuantity {
            public static let declaration = CharacteristicDeclaration(
                "2F0A0004-69AA-F316-3E78-4194989A6C1A", "Device Temperature Data", [.read, .notify], unit: "°C",
                stepsPerUnit: 4.0)

            public let rawValue: Int16
            public init?(rawValue: Int16) { self.rawValue = rawValue }
        }
    }

    /// The Bluetooth address of the chip, as samples for the nRF51 publish it.
    public enum DeviceAddressService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "2F0A0005-69AA-F316-3E78-4194989A6C1A", "Nordic Device Address", tag: Nordic.tag,
            [Address.profile, AddressType.profile])

        /// The address: six bytes, the least significant first.
        public struct Address: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                "2F0A0006-69AA-F316-3E78-4194989A6C1A", "Device Address", [.read])

            /// Six bytes.
            public static let size = 6
            public let rawValue: [UInt8]

            public init?(rawValue: [UInt8]) {
                guard rawValue.count == 6 else { return nil }
                self.rawValue = rawValue
            }

            /// The bytes of an address.
            public init(_ address: BluetoothAddress) {
                rawValue = Array(address.rawValue.serialize().prefix(6))
            }

            /// The address of the bytes.
            public var address: BluetoothAddress {
                BluetoothAddress(rawValue: rawValue.reversed().reduce(0) { $0 << 8 | UInt64($1) })
            }

            /// The address in text: `"C0:26:DF:12:34:56"`.
            public var stringValue: [String: String] { [Address.name: address.description] }

            public init?(stringValue: [String: String]) {
                guard let address = stringValue[Address.name].flatMap({ BluetoothAddress($0) }) else { return nil }
                self.init(address)
            }
        }

        /// Whether the address is public or random.
        public enum AddressType: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            DeclaredCharacteristic
        {
            /// A public address, which the manufacturer has assigned.
            case `public` = 0
            /// A random address, which the device has chosen.
            case random = 1
            public static let declaration = CharacteristicDeclaration(
                "2F0A0007-69AA-F316-3E78-4194989A6C1A", "Device Address Type", [.read], texts: ["Public", "Random"])
        }
    }
}
