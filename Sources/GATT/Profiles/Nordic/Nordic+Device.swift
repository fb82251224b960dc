import Foundation

extension Nordic {
    /// The temperature of the chip, as samples for the nRF51 publish it.
    public enum DeviceTemperatureService: ServiceConfigurable {
        public static let uuid = "2F0A0003-69AA-F316-3E78-4194989A6C1A"
        public static let name = "Nordic Device Temperature"
        public static let tag = Nordic.tag

        /// The temperature in °C, in steps of a quarter (nRF51 Series Reference Manual, TEMP).
        public struct Data: ScaledCharacteristic {
            public static let uuid = "2F0A0004-69AA-F316-3E78-4194989A6C1A"
            public static let name = "Device Temperature Data"
            public static let unit = "°C"
            public static let stepsPerUnit = 4.0
            public static let properties: CBCharacteristicProperties = [.read, .notify]

            public let rawValue: Int16
            public init?(rawValue: Int16) { self.rawValue = rawValue }
        }
    }

    /// The Bluetooth address of the chip, as samples for the nRF51 publish it.
    public enum DeviceAddressService: ServiceConfigurable {
        public static let uuid = "2F0A0005-69AA-F316-3E78-4194989A6C1A"
        public static let name = "Nordic Device Address"
        public static let tag = Nordic.tag

        /// The address: six bytes, the last as written first.
        public struct Address: RawArrayDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2F0A0006-69AA-F316-3E78-4194989A6C1A"
            public static let name = "Device Address"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []

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

            /// The address that the bytes are.
            public var address: BluetoothAddress {
                BluetoothAddress(rawValue: rawValue.reversed().reduce(0) { $0 << 8 | UInt64($1) })
            }

            /// The address as people write it: `"C0:26:DF:12:34:56"`.
            public var stringValue: [String: String] { [Address.name: address.description] }

            public init?(stringValue: [String: String]) {
                guard let address = stringValue[Address.name].flatMap({ BluetoothAddress($0) }) else { return nil }
                self.init(address)
            }
        }

        /// Whether the address is public or random.
        public enum AddressType: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            CharacteristicConfigurable
        {
            case `public` = 0
            case random = 1
            public static let uuid = "2F0A0007-69AA-F316-3E78-4194989A6C1A"
            public static let name = "Device Address Type"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues = ["Public", "Random"]
        }
    }
}
