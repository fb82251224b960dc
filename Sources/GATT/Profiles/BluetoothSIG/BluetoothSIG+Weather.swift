import Foundation

// MARK: Wind, rain and the earth's magnetism

extension BluetoothSIG.EnvironmentalSensingService {
    /// The rain that fell in mm, 0 to 65 535.
    public struct Rainfall: ScaledCharacteristic {
        public static let uuid = "2A78"
        public static let name = "Rainfall"
        public static let unit = "mm"
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The speed of the wind over the ground in m/s, 0 to 655.35 in steps of 0.01.
    public struct TrueWindSpeed: ScaledCharacteristic {
        public static let uuid = "2A70"
        public static let name = "True Wind Speed"
        public static let unit = "m/s"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Where the wind over the ground comes from in degrees from north, 0 to 359.99 in steps of 0.01.
    public struct TrueWindDirection: ScaledCharacteristic {
        public static let uuid = "2A71"
        public static let name = "True Wind Direction"
        public static let unit = "°"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The speed of the wind that a moving observer feels in m/s, 0 to 655.35 in steps of 0.01.
    public struct ApparentWindSpeed: ScaledCharacteristic {
        public static let uuid = "2A72"
        public static let name = "Apparent Wind Speed"
        public static let unit = "m/s"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Where that wind comes from in degrees from the bow, 0 to 359.99 in steps of 0.01.
    public struct ApparentWindDirection: ScaledCharacteristic {
        public static let uuid = "2A73"
        public static let name = "Apparent Wind Direction"
        public static let unit = "°"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// How much stronger gusts are than the wind, 0 to 25.5 in steps of 0.1; no unit.
    public struct GustFactor: ScaledCharacteristic {
        public static let uuid = "2A74"
        public static let name = "Gust Factor"
        public static let unit = ""
        public static let stepsPerUnit = 10.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// The angle between magnetic and true north in degrees, 0 to 359.99 in steps of 0.01.
    public struct MagneticDeclination: ScaledCharacteristic {
        public static let uuid = "2A2C"
        public static let name = "Magnetic Declination"
        public static let unit = "°"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Whether the pressure of the air rises or falls.
    public enum BarometricPressureTrend: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
        CharacteristicConfigurable
    {
        case unknown = 0
        case continuouslyFalling = 1
        case continuouslyRising = 2
        case fallingThenSteady = 3
        case risingThenSteady = 4
        case fallingBeforeLesserRise = 5
        case fallingBeforeGreaterRise = 6
        case risingBeforeGreaterFall = 7
        case risingBeforeLesserFall = 8
        case steady = 9
        public static let uuid = "2AA3"
        public static let name = "Barometric Pressure Trend"
        public static let properties: CBCharacteristicProperties = [.read, .notify]
        public static let stringValues = [
            "Unknown", "Continuously Falling", "Continuously Rising", "Falling Then Steady", "Rising Then Steady",
            "Falling Before Lesser Rise", "Falling Before Greater Rise", "Rising Before Greater Fall",
            "Rising Before Lesser Fall", "Steady",
        ]
    }

    /// The magnetic flux density along x and y in tesla, in steps of 0.1 µT.
    public struct MagneticFluxDensity2D: MagneticFluxDensity {
        public static let uuid = "2AA0"
        public static let name = "Magnetic Flux Density - 2D"
        public static let axes = ["x", "y"]

        public let rawValue: [Int16]
        public init?(rawValue: [Int16]) {
            guard rawValue.count == 2 else { return nil }
            self.rawValue = rawValue
        }
    }

    /// The magnetic flux density along x, y and z in tesla, in steps of 0.1 µT.
    public struct MagneticFluxDensity3D: MagneticFluxDensity {
        public static let uuid = "2AA1"
        public static let name = "Magnetic Flux Density - 3D"
        public static let axes = ["x", "y", "z"]

        public let rawValue: [Int16]
        public init?(rawValue: [Int16]) {
            guard rawValue.count == 3 else { return nil }
            self.rawValue = rawValue
        }
    }
}

/// The magnetic flux density along some axes.
public protocol MagneticFluxDensity: RawArrayDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
where RawType == Int16 {
    /// The names of the axes, in the order of the numbers.
    static var axes: [String] { get }
}

extension MagneticFluxDensity {
    /// One number for each axis.
    public static var size: Int { axes.count }
    public static var stringValues: [String] { [] }
    public static var properties: CBCharacteristicProperties { [.read, .notify] }

    /// The flux density along each axis in tesla.
    public var values: [Double] { rawValue.map { Double($0) / 1e7 } }

    /// Each axis by its name, in µT with one digit after the point.
    public var stringValue: [String: String] {
        Dictionary(
            uniqueKeysWithValues: zip(Self.axes, rawValue.map { String(format: "%.1f µT", Double($0) / 10) }))
    }

    public init?(stringValue: [String: String]) {
        let fields = TextFields(stringValue)
        self.init(rawValue: Self.axes.compactMap { fields.scaled($0, unit: "µT", stepsPerUnit: 10) })
    }
}
