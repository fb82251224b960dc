public import Foundation

extension TISensorTag {
    /// The barometer, an Epcos T5400. Its numbers mean something only together with its calibration.
    ///
    /// Write ``Enabled/calibrate``, read ``Calibration``, write ``Enabled/yes``; then ``Data`` has
    /// ``Data/pressure(_:)`` and ``Data/temperature(_:)``.
    public enum BarometerService: ServiceConfigurable {
        public static let uuid = "F000AA40-0451-4000-B000-000000000000"
        public static let name = "TI Barometer"
        public static let tag = TISensorTag.tag

        /// The temperature and the pressure as the sensor sees them, before calibration.
        public struct Data: RawPairDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "F000AA41-0451-4000-B000-000000000000"
            public static let name = "Barometer Data"
            public static let properties: CBCharacteristicProperties = [.read, .notify]
            public static let initialValue: Foundation.Data? =
                SerDe.serialize(Int16(-2343)) + SerDe.serialize(UInt16(33995))

            /// The temperature before calibration.
            public let temperatureRaw: Int16
            /// The pressure before calibration.
            public let pressureRaw: UInt16

            public init?(rawValue1: Int16, rawValue2: UInt16) {
                temperatureRaw = rawValue1
                pressureRaw = rawValue2
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

            public static let stringValues: [String] = []

            /// `"temperatureRaw"` and `"pressureRaw"`, the numbers on the air.
            public var stringValue: [String: String] {
                ["temperatureRaw": "\(temperatureRaw)", "pressureRaw": "\(pressureRaw)"]
            }

            public init?(stringValue: [String: String]) {
                guard let temperatureRaw = stringValue["temperatureRaw"].flatMap({ Int16($0) }),
                    let pressureRaw = stringValue["pressureRaw"].flatMap({ UInt16($0) })
                else { return nil }
                self.init(rawValue1: temperatureRaw, rawValue2: pressureRaw)
            }
        }

        /// The eight constants that the maker measured for this very sensor.
        public struct Calibration: RawArrayPairDeserializable, StringDeserializable, CharacteristicConfigurable,
            Hashable
        {
            public static let uuid = "F000AA43-0451-4000-B000-000000000000"
            public static let name = "Barometer Calibration Data"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let initialValue: Foundation.Data? =
                SerDe.serialize([UInt16]([45697, 25592, 48894, 36174]))
                + SerDe.serialize([Int16]([7001, 1990, -2369, 5542]))

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

            public static let stringValues: [String] = []

            /// `"c1"` to `"c8"`.
            public var stringValue: [String: String] {
                [
                    "c1": "\(c1)", "c2": "\(c2)", "c3": "\(c3)", "c4": "\(c4)", "c5": "\(c5)", "c6": "\(c6)",
                    "c7": "\(c7)", "c8": "\(c8)",
                ]
            }

            public init?(stringValue: [String: String]) {
                self.init(
                    rawValue1: ["c1", "c2", "c3", "c4"].compactMap { stringValue[$0].flatMap { UInt16($0) } },
                    rawValue2: ["c5", "c6", "c7", "c8"].compactMap { stringValue[$0].flatMap { Int16($0) } })
            }
        }

        /// Whether the barometer measures, or reads out its calibration.
        public enum Enabled: UInt8, CaseIterable, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
            case no = 0
            case yes = 1
            case calibrate = 2
            public static let uuid = "F000AA42-0451-4000-B000-000000000000"
            public static let name = "Barometer Enabled"
            public static let properties: CBCharacteristicProperties = [.read, .write]
            public static let initialValue: Foundation.Data? = Enabled.no.serialize()
            public static let stringValues = ["No", "Yes", "Calibrate"]
        }
    }
}
