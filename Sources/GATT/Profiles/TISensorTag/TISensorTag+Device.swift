public import Foundation

extension TISensorTag {
    /// The two keys.
    public enum KeyPressedService: ServiceConfigurable {
        public static let uuid = "FFE0"
        public static let name = "TI Key Pressed"
        public static let tag = TISensorTag.tag

        /// Which keys are down: one bit each, the right one the lowest.
        public enum State: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
            case none = 0
            case buttonOne = 1
            case buttonTwo = 2
            case both = 3
            public static let uuid = "FFE1"
            public static let name = "Key Pressed"
            public static let properties: CBCharacteristicProperties = [.notify]
            public static let initialValue: Foundation.Data? = State.none.serialize()
            public static let stringValues = ["None", "Button One", "Button Two", "Both"]
        }

        /// The keys' state, under the name that the other services use.
        public typealias Data = State
    }

    /// The SensorTag's test of itself.
    public enum SensorTagTestService: ServiceConfigurable {
        public static let uuid = "F000AA60-0451-4000-B000-000000000000"
        public static let name = "TI Sensor Tag Test"
        public static let tag = TISensorTag.tag

        /// Which sensors passed the test: a set bit each.
        public struct Data: OptionSet, RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "F000AA61-0451-4000-B000-000000000000"
            public static let name = "Test Data"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let initialValue: Foundation.Data? = Data(rawValue: 0x3F).serialize()
            public static let stringValues = [
                "Thermometer", "Hygrometer", "Magnetometer", "Accelerometer", "Gyroscope", "Barometer",
            ]

            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// The infrared thermometer passed.
            public static let thermometer = Data(rawValue: 0x01)
            /// The hygrometer passed.
            public static let hygrometer = Data(rawValue: 0x02)
            /// The magnetometer passed.
            public static let magnetometer = Data(rawValue: 0x04)
            /// The accelerometer passed.
            public static let accelerometer = Data(rawValue: 0x08)
            /// The gyroscope passed.
            public static let gyroscope = Data(rawValue: 0x10)
            /// The barometer passed.
            public static let barometer = Data(rawValue: 0x20)
        }

        /// Whether the SensorTag is in test mode.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let uuid = "F000AA62-0451-4000-B000-000000000000"
            public static let name = "Test Enabled"
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
        }
    }
}
