public import Foundation

extension BluetoothSIG {
    /// Generic Access (Core Specification, Vol 3, Part C, 12), which every device has. BlueZ does not export it.
    public enum GenericAccessService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1800", "Generic Access", tag: BluetoothSIG.tag,
            [DeviceName.profile, Appearance.profile, PreferredConnectionParameters.profile])

        /// The device's name, up to 248 bytes of UTF-8.
        public enum DeviceName: DeclaredCharacteristic {
            public static let declaration = CharacteristicDeclaration("2A00", "Device Name", [.read, .write])
        }

        /// The device's appearance: a category in the upper ten bits, a kind within it in the lower six.
        public struct Appearance: RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A01", "Appearance", [.read])

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// The name of the kind, such as `"Watch"`, or `nil` if `AssignedNumbers` has none.
            public var kind: String? { AssignedNumbers.appearanceName(rawValue) }

            /// The number under the characteristic's name, and the name of the kind under `"Kind"`.
            public var stringValue: [String: String] {
                var texts = [Appearance.name: "\(rawValue)"]
                texts["Kind"] = kind
                return texts
            }

            public init?(stringValue: [String: String]) {
                guard let rawValue: UInt16 = TextFields(stringValue).number(Appearance.name) else { return nil }
                self.rawValue = rawValue
            }
        }

        /// The connection parameters that the peripheral prefers.
        public struct PreferredConnectionParameters: RawArrayDeserializable, StringDeserializable,
            DeclaredCharacteristic, Hashable
        {
            public static let declaration = CharacteristicDeclaration(
                "2A04", "Peripheral Preferred Connection Parameters", [.read])
            private static let keys = ["Minimum Interval", "Maximum Interval", "Latency", "Supervision Timeout"]

            /// Shortest interval, longest interval, latency, time-out: four numbers.
            public static let size = 4
            public let rawValue: [UInt16]

            public init?(rawValue: [UInt16]) {
                guard rawValue.count == 4 else { return nil }
                self.rawValue = rawValue
            }

            /// The shortest interval in milliseconds, 7.5 to 4000 in steps of 1.25; `nil` for "no specific minimum".
            public var minimumInterval: Double? { rawValue[0] == 0xFFFF ? nil : Double(rawValue[0]) * 1.25 }
            /// The longest interval in milliseconds, 7.5 to 4000 in steps of 1.25; `nil` for "no specific maximum".
            public var maximumInterval: Double? { rawValue[1] == 0xFFFF ? nil : Double(rawValue[1]) * 1.25 }
            /// How many connection events the peripheral may skip, 0 to 499.
            public var latency: UInt16 { rawValue[2] }
            /// The supervision time-out in milliseconds, 100 to 32 000: the link counts as lost after so long a silence.
            public var supervisionTimeout: Double? { rawValue[3] == 0xFFFF ? nil : Double(rawValue[3]) * 10 }

            /// The four numbers as transmitted: steps of 1.25 ms, 1.25 ms, 1 event and 10 ms.
            public var stringValue: [String: String] { TextFields.texts(rawValue, Self.keys) }

            public init?(stringValue: [String: String]) {
                self.init(rawValue: TextFields(stringValue).numbers(of: Self.keys))
            }
        }
    }

    /// The maker, model and revisions of the device (Device Information Service 1.2).
    public enum DeviceInformationService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "180A", "Device Information", tag: BluetoothSIG.tag,
            [
                ManufacturerName.profile, ModelNumber.profile, SerialNumber.profile, HardwareRevision.profile,
                FirmwareRevision.profile, SoftwareRevision.profile, SystemID.profile, PnPID.profile,
                CharacteristicProfile(
                    uuid: "2A2A", name: "IEEE 11073-20601 Regulatory Certification Data List",
                    permissions: [.readable], properties: [.read]),
            ])

        private static func text(_ uuid: String, _ name: String) -> CharacteristicDeclaration {
            CharacteristicDeclaration(uuid, name, [.read], permissions: [.readable])
        }

        /// The maker's name; text.
        public enum ManufacturerName: DeviceInformationText {
            public static let declaration = text("2A29", "Manufacturer Name String")
        }
        /// The maker's number of the model; text.
        public enum ModelNumber: DeviceInformationText {
            public static let declaration = text("2A24", "Model Number String")
        }
        /// The serial number of this device; text.
        public enum SerialNumber: DeviceInformationText {
            public static let declaration = text("2A25", "Serial Number String")
        }
        /// The revision of the hardware; text.
        public enum HardwareRevision: DeviceInformationText {
            public static let declaration = text("2A27", "Hardware Revision String")
        }
        /// The revision of the firmware; text.
        public enum FirmwareRevision: DeviceInformationText {
            public static let declaration = text("2A26", "Firmware Revision String")
        }
        /// The revision of the software; text.
        public enum SoftwareRevision: DeviceInformationText {
            public static let declaration = text("2A28", "Software Revision String")
        }

        /// An identifier of 64 bits: the maker's number of the device in the lower 40, the IEEE's of the maker above.
        public struct SystemID: RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A23", "System ID", [.read])

            public let rawValue: UInt64
            public init(rawValue: UInt64) { self.rawValue = rawValue }

            /// The number that the maker gave to the device, 40 bits.
            public var manufacturerIdentifier: UInt64 { rawValue & 0xFF_FFFF_FFFF }
            /// The number that the IEEE gave to the maker, 24 bits.
            public var organizationIdentifier: UInt32 { UInt32(rawValue >> 40) }

            /// Sixteen hexadecimal digits, the maker's number first.
            public var stringValue: [String: String] { [SystemID.name: String(format: "%016llx", rawValue)] }

            public init?(stringValue: [String: String]) {
                guard let text = TextFields(stringValue).text(SystemID.name), let rawValue = UInt64(text, radix: 16)
                else { return nil }
                self.rawValue = rawValue
            }
        }

        /// The maker, the product and its version, by the numbers that Plug and Play uses.
        public struct PnPID: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A50", "PnP ID", [.read])

            /// The registry of the vendor's number: 1 the Bluetooth SIG, 2 the USB Implementer's Forum.
            public let vendorSource: UInt8
            /// The vendor's number.
            public let vendor: UInt16
            /// The vendor's number of the product.
            public let product: UInt16
            /// The version as binary coded decimal: 0x0213 is 2.1.3.
            public let version: UInt16

            /// Creates an identification of its numbers.
            public init(vendorSource: UInt8, vendor: UInt16, product: UInt16, version: UInt16) {
                self.vendorSource = vendorSource
                (self.vendor, self.product, self.version) = (vendor, product, version)
            }

            public static func deserialize(_ data: Data) -> PnPID? {
                ValueReader.read(data) { reader in
                    PnPID(
                        vendorSource: try reader.next(), vendor: try reader.next(), product: try reader.next(),
                        version: try reader.next())
                }
            }

            public func serialize() -> Data {
                .joined(vendorSource.serialize(), [vendor, product, version].serialized())
            }

            /// Four numbers, the first in decimal and the others in hexadecimal digits.
            public var stringValue: [String: String] {
                [
                    "Vendor ID Source": "\(vendorSource)", "Vendor ID": String(format: "%04x", vendor),
                    "Product ID": String(format: "%04x", product), "Product Version": String(format: "%04x", version),
                ]
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                let numbers: [UInt16] = fields.numbers(of: ["Vendor ID", "Product ID", "Product Version"], radix: 16)
                guard let source: UInt8 = fields.number("Vendor ID Source"), numbers.count == 3 else { return nil }
                self.init(vendorSource: source, vendor: numbers[0], product: numbers[1], version: numbers[2])
            }
        }
    }

    /// The state of the battery (Battery Service 1.1).
    public enum BatteryService: DeclaredService {
        public static let declaration = ServiceDeclaration("180F", "Battery", tag: BluetoothSIG.tag, [Level.profile])

        /// How full the battery is in percent: 0 to 100, other numbers give `nil`.
        public struct Level: DeclaredQuantity {
            public static let declaration = CharacteristicDeclaration(
                "2A19", "Battery Level", [.read, .notify], unit: "%")

            public let rawValue: UInt8
            public init?(rawValue: UInt8) {
                guard rawValue <= 100 else { return nil }
                self.rawValue = rawValue
            }
        }
    }

    /// The transmission power of the device (Tx Power Service 1.0).
    public enum TxPowerService: DeclaredService {
        public static let declaration = ServiceDeclaration("1804", "Tx Power", tag: BluetoothSIG.tag, [Level.profile])

        /// The power in dBm: -100 to 20, other numbers give `nil`.
        public struct Level: DeclaredQuantity {
            public static let declaration = CharacteristicDeclaration(
                "2A07", "Tx Power Level", [.read, .notify], unit: "dBm")

            public let rawValue: Int8
            public init?(rawValue: Int8) {
                guard (-100...20).contains(rawValue) else { return nil }
                self.rawValue = rawValue
            }
        }
    }

    /// The alert of a device that has lost its link (Link Loss Service 1.0.1).
    public enum LinkLossService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1803", "Link Loss", tag: BluetoothSIG.tag, [AlertLevel.profile])

        /// The loudness of the alert when the link is lost.
        public enum AlertLevel: UInt8, AlertLevelCharacteristic {
            /// No alert.
            case none = 0
            /// A mild alert.
            case mild = 1
            /// A high alert.
            case high = 2
            public static let declaration = alertLevel([.read, .write])
        }
    }

    /// Makes the device alert at once (Immediate Alert Service 1.0).
    public enum ImmediateAlertService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1802", "Immediate Alert", tag: BluetoothSIG.tag, [AlertLevel.profile])

        /// The loudness of the alert from now on. It is written without response, and cannot be read.
        public enum AlertLevel: UInt8, AlertLevelCharacteristic {
            /// No alert; ends an alert.
            case none = 0
            /// A mild alert.
            case mild = 1
            /// A high alert.
            case high = 2
            public static let declaration = alertLevel([.writeWithoutResponse], permissions: [.writeable])
        }
    }
}

/// A text about the device that can only be read.
public protocol DeviceInformationText: DeclaredCharacteristic {}

/// The loudness of an alert (Alert Level, 2A06).
public protocol AlertLevelCharacteristic: RawDeserializable, StringDeserializable, DeclaredCharacteristic,
    CaseIterable, Hashable
{}

extension AlertLevelCharacteristic {
    fileprivate static func alertLevel(
        _ properties: CBCharacteristicProperties, permissions: CBAttributePermissions = [.readable, .writeable]
    ) -> CharacteristicDeclaration {
        CharacteristicDeclaration(
            "2A06", "Alert Level", properties, permissions: permissions,
            texts: ["No Alert", "Mild Alert", "High Alert"])
    }
}
