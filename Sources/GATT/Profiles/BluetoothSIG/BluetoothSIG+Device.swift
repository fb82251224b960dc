import Foundation

extension BluetoothSIG {
    /// Generic Access (Core Specification, Vol 3, Part C, 12): what each device has. BlueZ keeps it to itself.
    public enum GenericAccessService: ServiceConfigurable {
        public static let uuid = "1800"
        public static let name = "Generic Access"
        public static let tag = BluetoothSIG.tag

        /// The device's name, up to 248 bytes of UTF-8.
        public enum DeviceName: CharacteristicConfigurable {
            public static let uuid = "2A00"
            public static let name = "Device Name"
            public static let properties: CBCharacteristicProperties = [.read, .write]
        }

        /// What the device looks like: a category in the upper ten bits, a kind within it in the lower six.
        public struct Appearance: RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A01"
            public static let name = "Appearance"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }

            /// What people call it, such as `"Watch"`, or `nil` when there is no word for it.
            public var kind: String? { AssignedNumbers.appearanceName(rawValue) }

            /// The number under the characteristic's name, and what people call it under `"Kind"`.
            public var stringValue: [String: String] {
                var texts = [Appearance.name: "\(rawValue)"]
                texts["Kind"] = kind
                return texts
            }

            public init?(stringValue: [String: String]) {
                guard let rawValue = stringValue[Appearance.name].flatMap({ UInt16($0) }) else { return nil }
                self.rawValue = rawValue
            }
        }

        /// The connection that the peripheral would like to have.
        public struct PreferredConnectionParameters: RawArrayDeserializable, StringDeserializable,
            CharacteristicConfigurable, Hashable
        {
            public static let uuid = "2A04"
            public static let name = "Peripheral Preferred Connection Parameters"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []

            /// Shortest interval, longest interval, latency, time-out: four numbers.
            public static let size = 4
            public let rawValue: [UInt16]

            public init?(rawValue: [UInt16]) {
                guard rawValue.count == 4 else { return nil }
                self.rawValue = rawValue
            }

            /// The shortest interval in milliseconds, 7.5 to 4000 in steps of 1.25; `nil` for "no wish".
            public var minimumInterval: Double? { rawValue[0] == 0xFFFF ? nil : Double(rawValue[0]) * 1.25 }
            /// The longest interval in milliseconds, 7.5 to 4000 in steps of 1.25; `nil` for "no wish".
            public var maximumInterval: Double? { rawValue[1] == 0xFFFF ? nil : Double(rawValue[1]) * 1.25 }
            /// How many connection events the peripheral may sleep through, 0 to 499.
            public var latency: UInt16 { rawValue[2] }
            /// How long without a sign of life until the link counts as lost, in milliseconds, 100 to 32 000.
            public var supervisionTimeout: Double? { rawValue[3] == 0xFFFF ? nil : Double(rawValue[3]) * 10 }

            private static let keys = ["Minimum Interval", "Maximum Interval", "Latency", "Supervision Timeout"]

            /// The four numbers as they are on the air: steps of 1.25 ms, 1.25 ms, 1 event and 10 ms.
            public var stringValue: [String: String] {
                Dictionary(
                    uniqueKeysWithValues: zip(PreferredConnectionParameters.keys, rawValue.map { "\($0)" }))
            }

            public init?(stringValue: [String: String]) {
                self.init(
                    rawValue: PreferredConnectionParameters.keys.compactMap { stringValue[$0].flatMap { UInt16($0) } })
            }
        }
    }

    /// The state of the battery (Battery Service 1.1).
    public enum BatteryService: ServiceConfigurable {
        public static let uuid = "180F"
        public static let name = "Battery"
        public static let tag = BluetoothSIG.tag

        /// How full the battery is in percent: 0 to 100, other numbers give `nil`.
        public struct Level: ScaledCharacteristic {
            public static let uuid = "2A19"
            public static let name = "Battery Level"
            public static let unit = "%"
            public static let properties: CBCharacteristicProperties = [.read, .notify]

            public let rawValue: UInt8
            public init?(rawValue: UInt8) {
                guard rawValue <= 100 else { return nil }
                self.rawValue = rawValue
            }
        }
    }

    /// The power at which the device sends (Tx Power Service 1.0).
    public enum TxPowerService: ServiceConfigurable {
        public static let uuid = "1804"
        public static let name = "Tx Power"
        public static let tag = BluetoothSIG.tag

        /// The power in dBm: -100 to 20, other numbers give `nil`.
        public struct Level: ScaledCharacteristic {
            public static let uuid = "2A07"
            public static let name = "Tx Power Level"
            public static let unit = "dBm"
            public static let properties: CBCharacteristicProperties = [.read, .notify]

            public let rawValue: Int8
            public init?(rawValue: Int8) {
                guard (-100...20).contains(rawValue) else { return nil }
                self.rawValue = rawValue
            }
        }
    }
}
