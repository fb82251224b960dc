import Foundation

extension TISensorTag {
    /// The infrared thermometer, a TMP006: it measures an object at a distance and its own temperature.
    public enum TemperatureService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA00"), "TI Temperature", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile])

        /// The temperatures of the object before the sensor and of the sensor itself, in °C.
        public struct Data: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA01"), "Temperature Data", [.read, .notify],
                initialValue: Data(objectRaw: -172, ambientRaw: 3388).serialize())

            /// The sensor's voltage in steps of 156.25 nV.
            public let objectRaw: Int16
            /// The sensor's own temperature in steps of 1/128 °C.
            public let ambientRaw: Int16

            /// Creates a measurement of transmitted numbers.
            public init(objectRaw: Int16, ambientRaw: Int16) {
                (self.objectRaw, self.ambientRaw) = (objectRaw, ambientRaw)
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

            /// The temperature of the object in °C; not a number if the voltage is impossible.
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

            /// `"object"` and `"ambient"` in °C, and `"objectRaw"` and `"ambientRaw"`, the transmitted numbers.
            public var stringValue: [String: String] {
                [
                    "object": String(format: "%.2f", object), "ambient": String(format: "%.2f", ambient),
                    "objectRaw": "\(objectRaw)", "ambientRaw": "\(ambientRaw)",
                ]
            }

            /// Creates the value from the transmitted numbers.
            public init?(stringValue: [String: String]) {
                self.init(rawValue: TextFields(stringValue).numbers(of: ["objectRaw", "ambientRaw"]))
            }
        }

        /// Whether the thermometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let declaration = switchOff("AA02", "Temperature Enabled")
        }
    }

    /// The hygrometer, a Sensirion SHT21.
    public enum HygrometerService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA20"), "TI Hygrometer", tag: TISensorTag.tag,
            [Data.profile, Enabled.profile])

        /// The temperature in °C and the relative humidity in percent (SHT21 data sheet, 6.1 and 6.2).
        public struct Data: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA21"), "Hygrometer Data", [.read, .notify],
                initialValue: Data(temperatureRaw: 2600, humidityRaw: 3500).serialize())

            /// The temperature as transmitted, in steps of 175.72/65536 °C from -46.85 °C.
            public let temperatureRaw: UInt16
            /// The humidity as transmitted, in steps of 125/65536 % from -6 %; the two lowest bits are the sensor's status.
            public let humidityRaw: UInt16

            /// Creates a measurement of transmitted numbers.
            public init(temperatureRaw: UInt16, humidityRaw: UInt16) {
                (self.temperatureRaw, self.humidityRaw) = (temperatureRaw, humidityRaw)
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

            /// `"temperature"` in °C, `"humidity"` in %, and `"temperatureRaw"` and `"humidityRaw"` as transmitted.
            public var stringValue: [String: String] {
                [
                    "temperature": String(format: "%.2f", temperature), "humidity": String(format: "%.2f", humidity),
                    "temperatureRaw": "\(temperatureRaw)", "humidityRaw": "\(humidityRaw)",
                ]
            }

            /// Creates the value from the transmitted numbers.
            public init?(stringValue: [String: String]) {
                self.init(rawValue: TextFields(stringValue).numbers(of: ["temperatureRaw", "humidityRaw"]))
            }
        }

        /// Whether the hygrometer measures.
        public enum Enabled: UInt8, SensorTagSwitch {
            case no = 0
            case yes = 1
            public static let declaration = switchOff("AA22", "Hygrometer Enabled")
        }
    }

    /// The barometer, an Epcos T5400. Its numbers are meaningful only together with its calibration.
    ///
    /// Write ``Enabled/calibrate``, read ``Calibration``, write ``Enabled/yes``; then ``Data`` has
    /// ``Data/pressure(_:)`` and ``Data/temperature(_:)``.
    public enum BarometerService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            TISensorTag.uuid("AA40"), "TI Barometer", tag: TISensorTag.tag,
            [Data.profile, Calibration.profile, Enabled.profile])

        /// The temperature and the pressure before calibration.
        public struct Data: RawPairDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA41"), "Barometer Data", [.read, .notify],
                initialValue: SerDe.serialize(Int16(-2343)) + SerDe.serialize(UInt16(33995)))

            /// The temperature before calibration.
            public let temperatureRaw: Int16
            /// The pressure before calibration.
            public let pressureRaw: UInt16

            public init?(rawValue1: Int16, rawValue2: UInt16) {
                (temperatureRaw, pressureRaw) = (rawValue1, rawValue2)
            }

            public var rawValue1: Int16 { temperatureRaw }
            public var rawValue2: UInt16 { pressureRaw }

            /// The temperature in °C (T5400 application note: c1 · t / 2²⁴ + c2 / 2¹⁰).
            public func temperature(_ calibration: Calibration) -> Double {
                Double(calibration.c1) * Double(temperatureRaw) / 0x1p24 + Double(calibration.c2) / 0x1p10
            }

            /// The pressure in Pa (T5400 application note).
            public func pressure(_ calibration: Calibration) -> Double {
                let t = Double(temperatureRaw)
                let sensitivity =
                    Double(calibration.c3) + Double(calibration.c4) * t / 0x1p17 + Double(calibration.c5) * t * t
                    / 0x1p34
                let offset =
                    Double(calibration.c6) * 0x1p14 + Double(calibration.c7) * t / 0x1p3
                    + Double(calibration.c8) * t * t / 0x1p19
                return (sensitivity * Double(pressureRaw) + offset) / 0x1p14
            }

            /// `"temperatureRaw"` and `"pressureRaw"`, the transmitted numbers.
            public var stringValue: [String: String] {
                ["temperatureRaw": "\(temperatureRaw)", "pressureRaw": "\(pressureRaw)"]
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let temperatureRaw: Int16 = fields.number("temperatureRaw"),
                    let pressureRaw: UInt16 = fields.number("pressureRaw")
                else { return nil }
                self.init(rawValue1: temperatureRaw, rawValue2: pressureRaw)
            }
        }

        /// The eight constants that the maker measured for this sensor.
        public struct Calibration: RawArrayPairDeserializable, StringDeserializable, DeclaredCharacteristic,
            Hashable
        {
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA43"), "Barometer Calibration Data", [.read],
                initialValue: SerDe.serialize([UInt16]([45697, 25592, 48894, 36174]))
                    + SerDe.serialize([Int16]([7001, 1990, -2369, 5542])))
            private static let keys1 = ["c1", "c2", "c3", "c4"]
            private static let keys2 = ["c5", "c6", "c7", "c8"]

            /// The constants without a sign: temperature's slope and offset, sensitivity and its slope.
            public let c1, c2, c3, c4: UInt16
            /// The constants with a sign: sensitivity's curve, the offset, its slope and its curve.
            public let c5, c6, c7, c8: Int16

            /// Four numbers without a sign.
            public static let size1 = 4
            /// Four numbers with a sign.
            public static let size2 = 4
            public var rawValue1: [UInt16] { [c1, c2, c3, c4] }
            public var rawValue2: [Int16] { [c5, c6, c7, c8] }

            public init?(rawValue1: [UInt16], rawValue2: [Int16]) {
                guard rawValue1.count == 4, rawValue2.count == 4 else { return nil }
                (c1, c2, c3, c4) = (rawValue1[0], rawValue1[1], rawValue1[2], rawValue1[3])
                (c5, c6, c7, c8) = (rawValue2[0], rawValue2[1], rawValue2[2], rawValue2[3])
            }

            /// `"c1"` to `"c8"`.
            public var stringValue: [String: String] {
                TextFields.texts(rawValue1, Self.keys1).merging(TextFields.texts(rawValue2, Self.keys2)) { $1 }
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                self.init(rawValue1: fields.numbers(of: Self.keys1), rawValue2: fields.numbers(of: Self.keys2))
            }
        }

        /// Whether the barometer measures, or reads out its calibration.
        public enum Enabled: UInt8, CaseIterable, RawDeserializable, StringDeserializable, DeclaredCharacteristic {
            /// The barometer is off.
            case no = 0
            /// The barometer measures.
            case yes = 1
            /// The barometer is to read out its calibration.
            case calibrate = 2
            public static let declaration = CharacteristicDeclaration(
                TISensorTag.uuid("AA42"), "Barometer Enabled", [.read, .write], initialValue: Enabled.no.serialize(),
                texts: ["No", "Yes", "Calibrate"])
        }
    }
}
