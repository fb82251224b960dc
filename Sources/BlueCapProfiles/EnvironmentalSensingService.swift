import Foundation

/// Measurements of sensors of the surroundings (Environmental Sensing Service 1.0.1).
///
/// A device may have several characteristics of one kind, which their descriptors distinguish.
public enum EnvironmentalSensingService: DeclaredService {
    public static let declaration = ServiceDeclaration(
        "181A", "Environmental Sensing", tag: BluetoothSIG.tag,
        [
            Temperature.profile, Humidity.profile, Pressure.profile, Elevation.profile, DewPoint.profile,
            HeatIndex.profile, WindChill.profile, UVIndex.profile, Irradiance.profile, Rainfall.profile,
            TrueWindSpeed.profile, TrueWindDirection.profile, ApparentWindSpeed.profile,
            ApparentWindDirection.profile, GustFactor.profile, PollenConcentration.profile,
            MagneticDeclination.profile, BarometricPressureTrend.profile, MagneticFluxDensity2D.profile,
            MagneticFluxDensity3D.profile,
        ])

    /// Each of these characteristics can be read and sends notifications.
    fileprivate static func sensor(
        _ uuid: String, _ name: String, _ unit: String = "", stepsPerUnit: Double = 1, texts: [String] = []
    ) -> CharacteristicDeclaration {
        CharacteristicDeclaration(
            uuid, name, [.read, .notify], texts: texts, unit: unit, stepsPerUnit: stepsPerUnit)
    }
}

extension BluetoothSIG {
    /// Measurements of sensors of the surroundings (Environmental Sensing Service 1.0.1).
    public typealias EnvironmentalSensingService = BlueCapProfiles.EnvironmentalSensingService
}

// MARK: Air and light

extension EnvironmentalSensingService {
    /// The temperature in °C, -273.15 to 327.67 in steps of 0.01.
    public struct Temperature: DeclaredQuantity {
        public static let declaration = sensor("2A6E", "Temperature", "°C", stepsPerUnit: 100)
        public static let unknown: Int16? = .min
        public let rawValue: Int16
        public init(rawValue: Int16) { self.rawValue = rawValue }
    }

    /// The relative humidity in percent, 0 to 100 in steps of 0.01.
    public struct Humidity: DeclaredQuantity {
        public static let declaration = sensor("2A6F", "Humidity", "%", stepsPerUnit: 100)
        public static let unknown: UInt16? = .max
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The pressure in Pa, in steps of 0.1.
    public struct Pressure: DeclaredQuantity {
        public static let declaration = sensor("2A6D", "Pressure", "Pa", stepsPerUnit: 10)
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    /// The height above the sea in metres, -83 886.08 to 83 886.07 in steps of 0.01.
    public struct Elevation: DeclaredQuantity {
        public static let declaration = sensor("2A6C", "Elevation", "m", stepsPerUnit: 100)
        public let rawValue: Int24
        public init(rawValue: Int24) { self.rawValue = rawValue }
    }

    /// The temperature at which dew forms in °C, -128 to 127.
    public struct DewPoint: DeclaredQuantity {
        public static let declaration = sensor("2A7B", "Dew Point", "°C")
        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// The perceived temperature of hot air in °C, -128 to 127.
    public struct HeatIndex: DeclaredQuantity {
        public static let declaration = sensor("2A7A", "Heat Index", "°C")
        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// The perceived temperature of cold wind in °C, -128 to 127.
    public struct WindChill: DeclaredQuantity {
        public static let declaration = sensor("2A79", "Wind Chill", "°C")
        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// The strength of the ultraviolet light; no unit.
    public struct UVIndex: DeclaredQuantity {
        public static let declaration = sensor("2A76", "UV Index")
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// The power of the light in W/m², 0 to 6553.5 in steps of 0.1.
    public struct Irradiance: DeclaredQuantity {
        public static let declaration = sensor("2A77", "Irradiance", "W/m²", stepsPerUnit: 10)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Pollen in a cubic metre of air, 0 to 16 777 215.
    public struct PollenConcentration: DeclaredQuantity {
        public static let declaration = sensor("2A75", "Pollen Concentration", "/m³")
        public let rawValue: UInt24
        public init(rawValue: UInt24) { self.rawValue = rawValue }
    }
}

// MARK: Wind, rain and the earth's magnetism

extension EnvironmentalSensingService {
    /// The rain that fell in mm, 0 to 65 535.
    public struct Rainfall: DeclaredQuantity {
        public static let declaration = sensor("2A78", "Rainfall", "mm")
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The speed of the wind over the ground in m/s, 0 to 655.35 in steps of 0.01.
    public struct TrueWindSpeed: DeclaredQuantity {
        public static let declaration = sensor("2A70", "True Wind Speed", "m/s", stepsPerUnit: 100)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The origin of the wind over the ground in degrees from north, 0 to 359.99 in steps of 0.01.
    public struct TrueWindDirection: DeclaredQuantity {
        public static let declaration = sensor("2A71", "True Wind Direction", "°", stepsPerUnit: 100)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The speed of the wind that a moving observer feels in m/s, 0 to 655.35 in steps of 0.01.
    public struct ApparentWindSpeed: DeclaredQuantity {
        public static let declaration = sensor("2A72", "Apparent Wind Speed", "m/s", stepsPerUnit: 100)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The origin of the wind that a moving observer feels in degrees from the bow, 0 to 359.99 in steps of 0.01.
    public struct ApparentWindDirection: DeclaredQuantity {
        public static let declaration = sensor("2A73", "Apparent Wind Direction", "°", stepsPerUnit: 100)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// How much stronger gusts are than the wind, 0 to 25.5 in steps of 0.1; no unit.
    public struct GustFactor: DeclaredQuantity {
        public static let declaration = sensor("2A74", "Gust Factor", stepsPerUnit: 10)
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// The angle between magnetic and true north in degrees, 0 to 359.99 in steps of 0.01.
    public struct MagneticDeclination: DeclaredQuantity {
        public static let declaration = sensor("2A2C", "Magnetic Declination", "°", stepsPerUnit: 100)
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Whether the pressure of the air rises or falls.
    public enum BarometricPressureTrend: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
        DeclaredCharacteristic
    {
        /// There is not enough data.
        case unknown = 0
        /// The pressure falls all the time.
        case continuouslyFalling = 1
        /// The pressure rises all the time.
        case continuouslyRising = 2
        /// The pressure fell, and is now steady.
        case fallingThenSteady = 3
        /// The pressure rose, and is now steady.
        case risingThenSteady = 4
        /// The pressure fell, and then rose by less.
        case fallingBeforeLesserRise = 5
        /// The pressure fell, and then rose by more.
        case fallingBeforeGreaterRise = 6
        /// The pressure rose, and then fell by more.
        case risingBeforeGreaterFall = 7
        /// The pressure rose, and then fell by less.
        case risingBeforeLesserFall = 8
        /// The pressure is steady.
        case steady = 9
        public static let declaration = sensor(
            "2AA3", "Barometric Pressure Trend",
            texts: [
                "Unknown", "Continuously Falling", "Continuously Rising", "Falling Then Steady", "Rising Then Steady",
                "Falling Before Lesser Rise", "Falling Before Greater Rise", "Rising Before Greater Fall",
                "Rising Before Lesser Fall", "Steady",
            ])
    }

    /// The magnetic flux density along x and y in tesla, in steps of 0.1 µT.
    public struct MagneticFluxDensity2D: MagneticFluxDensity {
        public static let declaration = sensor("2AA0", "Magnetic Flux Density - 2D")
        public static let axes = ["x", "y"]
        public let rawValue: [Int16]
        public init?(rawValue: [Int16]) {
            guard rawValue.count == 2 else { return nil }
            self.rawValue = rawValue
        }
    }

    /// The magnetic flux density along x, y and z in tesla, in steps of 0.1 µT.
    public struct MagneticFluxDensity3D: MagneticFluxDensity {
        public static let declaration = sensor("2AA1", "Magnetic Flux Density - 3D")
        public static let axes = ["x", "y", "z"]
        public let rawValue: [Int16]
        public init?(rawValue: [Int16]) {
            guard rawValue.count == 3 else { return nil }
            self.rawValue = rawValue
        }
    }
}

/// The magnetic flux density along some axes.
public protocol MagneticFluxDensity: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable
where RawType == Int16 {
    /// The names of the axes, in the order of the numbers.
    static var axes: [String] { get }
}

extension MagneticFluxDensity {
    /// One number for each axis.
    public static var size: Int { axes.count }

    /// The flux density along each axis in tesla.
    public var values: [Double] { rawValue.map { Double($0) / 1e7 } }

    /// Each axis by its name, in µT with one digit after the point.
    public var stringValue: [String: String] {
        Dictionary(
            uniqueKeysWithValues: zip(Self.axes, rawValue.map { String(format: "%.1f µT", Double($0) / 10) }))
    }

    /// Creates a flux density of the texts of ``stringValue``, or `nil` if one is missing or not a number of µT.
    public init?(stringValue: [String: String]) {
        let fields = TextFields(stringValue)
        self.init(rawValue: Self.axes.compactMap { fields.scaled($0, unit: "µT", stepsPerUnit: 10) })
    }
}
