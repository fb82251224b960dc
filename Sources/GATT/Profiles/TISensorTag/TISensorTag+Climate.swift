public import Foundation

extension TISensorTag {
    /// The infrared thermometer, a TMP006: it measures something at a distance, and itself.
    public enum TemperatureService: ServiceConfigurable {
        public static let uuid = "F000AA00-0451-4000-B000-000000000000"
        public static let name = "TI Temperature"
        public static let tag = TISensorTag.tag

        /// The temperatures of the object before the sensor and of the sensor itself, in °C.
        public struct Data: RawArrayDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "F000AA01-0451-4000-B000-000000000000"
            public static let name = "Temperature Data"
            public static let properties: CBCharacteristicProperties = [.read, .notify]
            public static let initialValue: Foundation.Data? = Data(objectRaw: -172, ambientRaw: 3388).serialize()

            /// The sensor's voltage in steps of 156.25 nV.
            public let objectRaw: Int16
            /// The sensor's own temperature in steps of 1/128 °C.
            public let ambientRaw: Int16

            public init(objectRaw: Int16, ambientRaw: Int16) {
                self.objectRaw = objectRaw
                self.ambientRaw = ambientRaw
            }

            /// Two numbers.
            public static let size = 2
            public var rawValue: [Int16] { [objectRaw, ambientRaw] }
            public init?(rawValue: [Int16]) {
                guard rawValue.count == 2 else { return nil }
                self.init(objectRaw: rawValue[0], ambientRaw: rawValue[1])
            }

            /// The temperature of the sensor itself in °C.
            public var ambient: Double { Double(ambientRaw) / 128 }

            /// The temperature of the object in °C; not a number when the voltage is impossible.
            ///
            /// By the formula of the "TMP006 User's Guide" (SBOU107), with the SensorTag's S0 of 6.4e-14.
            public var object: Double {
                let voltage = Double(objectRaw) * 156.25e-9
                let die = ambient + 273.15
                let difference = die - 298.15
                let sensitivity = 6.4e-14 * (1 + 1.75e-3 * difference - 1.678e-5 * difference * difference)
                let offset = -2.94e-5 - 5.7e-7 * difference + 4.63e-9 * difference * difference
                let seebeck = voltage - offset + 13.4 * (voltage - offset) * (voltage - offset)
                return pow(pow(die, 4) + seebeck / sensitivity, 0.25) - 273.15
            }

            public static let stringValues: [String] = []

            /// `"object"` and `"ambient"` in °C, and `"objectRaw"` and `"ambientRaw"`, the numbers on the air.
            public var stringValue: [String: String] {
                [
                    "object": String(format: "%.2f", object), "ambient": String(format: "%.2f", ambient),
                    "objectRaw": "\(objectRaw)", "ambientRaw": "\(ambientRaw)",
                ]
            }

            /// The value out of the numbers on the air.
            public init?(stringValue: [String: String]) {
                self.init(rawValue: ["objectRaw", "ambientRaw"].compactMap { stringValue[$0].flatMap { Int16($0) } })
            }
        }

        /// Whether the thermometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let uuid = "F000AA02-0451-4000-B000-000000000000"
            public static let name = "Temperature Enabled"
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
        }
    }

    /// The hygrometer, a Sensirion SHT21.
    public enum HygrometerService: ServiceConfigurable {
        public static let uuid = "F000AA20-0451-4000-B000-000000000000"
        public static let name = "TI Hygrometer"
        public static let tag = TISensorTag.tag

        /// The temperature in °C and the relative humidity in percent (SHT21 data sheet, 6.1 and 6.2).
        public struct Data: RawArrayDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "F000AA21-0451-4000-B000-000000000000"
            public static let name = "Hygrometer Data"
            public static let properties: CBCharacteristicProperties = [.read, .notify]
            public static let initialValue: Foundation.Data? = Data(temperatureRaw: 2600, humidityRaw: 3500).serialize()

            /// The temperature on the air, in steps of 175.72/65536 °C from -46.85 °C.
            public let temperatureRaw: UInt16
            /// The humidity on the air, in steps of 125/65536 % from -6 %; the two lowest bits are the sensor's status.
            public let humidityRaw: UInt16

            public init(temperatureRaw: UInt16, humidityRaw: UInt16) {
                self.temperatureRaw = temperatureRaw
                self.humidityRaw = humidityRaw
            }

            /// Two numbers.
            public static let size = 2
            public var rawValue: [UInt16] { [temperatureRaw, humidityRaw] }
            public init?(rawValue: [UInt16]) {
                guard rawValue.count == 2 else { return nil }
                self.init(temperatureRaw: rawValue[0], humidityRaw: rawValue[1])
            }

            /// The temperature in °C.
            public var temperature: Double { -46.85 + 175.72 / 65536 * Double(temperatureRaw) }
            /// The relative humidity in percent.
            public var humidity: Double { -6 + 125 / 65536 * Double(humidityRaw & ~3) }

            public static let stringValues: [String] = []

            /// `"temperature"` in °C, `"humidity"` in %, and `"temperatureRaw"` and `"humidityRaw"` as on the air.
            public var stringValue: [String: String] {
                [
                    "temperature": String(format: "%.2f", temperature), "humidity": String(format: "%.2f", humidity),
                    "temperatureRaw": "\(temperatureRaw)", "humidityRaw": "\(humidityRaw)",
                ]
            }

            /// The value out of the numbers on the air.
            public init?(stringValue: [String: String]) {
                self.init(
                    rawValue: ["temperatureRaw", "humidityRaw"].compactMap { stringValue[$0].flatMap { UInt16($0) } })
            }
        }

        /// Whether the hygrometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let uuid = "F000AA22-0451-4000-B000-000000000000"
            public static let name = "Hygrometer Enabled"
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
        }
    }
}
