public import Foundation

extension BluetoothSIG {
    /// Who made the device and what it is (Device Information Service 1.2).
    public enum DeviceInformationService: ServiceConfigurable {
        public static let uuid = "180A"
        public static let name = "Device Information"
        public static let tag = BluetoothSIG.tag

        /// The maker's name; text.
        public enum ManufacturerName: DeviceInformationText {
            public static let uuid = "2A29"
            public static let name = "Manufacturer Name String"
        }
        /// The maker's number of the model; text.
        public enum ModelNumber: DeviceInformationText {
            public static let uuid = "2A24"
            public static let name = "Model Number String"
        }
        /// The serial number of this very device; text.
        public enum SerialNumber: DeviceInformationText {
            public static let uuid = "2A25"
            public static let name = "Serial Number String"
        }
        /// The revision of the hardware; text.
        public enum HardwareRevision: DeviceInformationText {
            public static let uuid = "2A27"
            public static let name = "Hardware Revision String"
        }
        /// The revision of the firmware; text.
        public enum FirmwareRevision: DeviceInformationText {
            public static let uuid = "2A26"
            public static let name = "Firmware Revision String"
        }
        /// The revision of the software; text.
        public enum SoftwareRevision: DeviceInformationText {
            public static let uuid = "2A28"
            public static let name = "Software Revision String"
        }

        /// An identifier of 64 bits: the maker's number of the device in the lower 40, the IEEE's of the maker above.
        public struct SystemID: RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A23"
            public static let name = "System ID"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []

            public let rawValue: UInt64
            public init(rawValue: UInt64) { self.rawValue = rawValue }

            /// The number that the maker gave to the device, 40 bits.
            public var manufacturerIdentifier: UInt64 { rawValue & 0xFF_FFFF_FFFF }
            /// The number that the IEEE gave to the maker, 24 bits.
            public var organizationIdentifier: UInt32 { UInt32(rawValue >> 40) }

            /// Sixteen hexadecimal digits, the maker's number first.
            public var stringValue: [String: String] { [SystemID.name: String(format: "%016llx", rawValue)] }

            public init?(stringValue: [String: String]) {
                guard let rawValue = stringValue[SystemID.name].flatMap({ UInt64($0, radix: 16) }) else { return nil }
                self.rawValue = rawValue
            }
        }

        /// The maker, the product and its version, by the numbers that Plug and Play uses.
        public struct PnPID: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A50"
            public static let name = "PnP ID"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []

            /// Who gave the vendor its number: 1 the Bluetooth SIG, 2 the USB Implementer's Forum.
            public let vendorSource: UInt8
            /// The vendor's number.
            public let vendor: UInt16
            /// The vendor's number of the product.
            public let product: UInt16
            /// The version as binary coded decimal: 0x0213 is 2.1.3.
            public let version: UInt16

            public init(vendorSource: UInt8, vendor: UInt16, product: UInt16, version: UInt16) {
                self.vendorSource = vendorSource
                self.vendor = vendor
                self.product = product
                self.version = version
            }

            public static func deserialize(_ data: Data) -> PnPID? {
                var reader = ValueReader(data)
                guard let source: UInt8 = reader.next(), let numbers: [UInt16] = reader.next(count: 3), reader.isAtEnd
                else { return nil }
                return PnPID(vendorSource: source, vendor: numbers[0], product: numbers[1], version: numbers[2])
            }

            public func serialize() -> Data {
                vendorSource.serialize() + [vendor, product, version].serialized()
            }

            /// Four numbers, in hexadecimal digits but for the first.
            public var stringValue: [String: String] {
                [
                    "Vendor ID Source": "\(vendorSource)", "Vendor ID": String(format: "%04x", vendor),
                    "Product ID": String(format: "%04x", product), "Product Version": String(format: "%04x", version),
                ]
            }

            public init?(stringValue: [String: String]) {
                let numbers = ["Vendor ID", "Product ID", "Product Version"].compactMap { key in
                    stringValue[key].flatMap { UInt16($0, radix: 16) }
                }
                guard let source = stringValue["Vendor ID Source"].flatMap({ UInt8($0) }), numbers.count == 3 else {
                    return nil
                }
                self.init(vendorSource: source, vendor: numbers[0], product: numbers[1], version: numbers[2])
            }
        }
    }
}

/// A text about the device that can only be read.
public protocol DeviceInformationText: CharacteristicConfigurable {}

extension DeviceInformationText {
    public static var properties: CBCharacteristicProperties { [.read] }
    public static var permissions: CBAttributePermissions { [.readable] }
}
