import Foundation

/// The services of Texas Instruments' SensorTag CC2541DK-SENSOR (its public "SensorTag User Guide").
///
/// Each sensor has a data characteristic, one that turns it on and, for some, one that sets its period. A sensor that
/// is off sends zeros. UUIDs are `F000xxxx-0451-4000-B000-000000000000`.
public enum TISensorTag {
    static let tag = "TI Sensor Tag"

    /// The profiles of all services with their characteristics, for a `ProfileManager`.
    public static var serviceProfiles: [ServiceProfile] {
        [
            AccelerometerService.profile, MagnetometerService.profile, GyroscopeService.profile,
            TemperatureService.profile, BarometerService.profile, HygrometerService.profile,
            SensorTagTestService.profile, KeyPressedService.profile,
        ]
    }

    /// Returns a UUID of the SensorTag.
    static func uuid(_ number: String) -> String { "F000\(number)-0451-4000-B000-000000000000" }
}

/// A characteristic that turns a sensor on and off.
public protocol SensorTagSwitch: RawDeserializable, StringDeserializable, DeclaredCharacteristic, CaseIterable, Hashable
where RawType == UInt8 {
    /// The sensor is off, and sends zeros.
    static var no: Self { get }
    /// The sensor is on.
    static var yes: Self { get }
}

extension SensorTagSwitch {
    /// Declares a switch that is off at first.
    static func switchOff(_ number: String, _ name: String) -> CharacteristicDeclaration {
        CharacteristicDeclaration(
            TISensorTag.uuid(number), name, [.read, .write], initialValue: no.serialize(), texts: ["No", "Yes"])
    }

    /// Creates the switch, on if `boolValue` is `true`.
    public init(boolValue: Bool) { self = boolValue ? .yes : .no }
    /// Whether the sensor is on.
    public var boolValue: Bool { self == .yes }
}

/// A characteristic that holds the time between two measurements.
public protocol SensorTagPeriod: RawDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable
where RawType == UInt8 {
    /// The transmitted period, in units of ten milliseconds.
    var periodRaw: UInt8 { get }
}

extension SensorTagPeriod {
    /// Declares a period that has this number at first.
    static func period(_ number: String, _ name: String, _ initialValue: UInt8) -> CharacteristicDeclaration {
        CharacteristicDeclaration(
            TISensorTag.uuid(number), name, [.read, .write], initialValue: initialValue.serialize())
    }

    /// The transmitted number: the period in steps of 10 ms.
    public var rawValue: UInt8 { periodRaw }

    /// The period in milliseconds: 10 to 2550. The SensorTag itself accepts 100 and more.
    public var period: UInt16 { max(10, 10 * UInt16(periodRaw)) }

    /// `"period"` in milliseconds, and `"periodRaw"`, the transmitted number.
    public var stringValue: [String: String] { ["period": "\(period)", "periodRaw": "\(periodRaw)"] }

    /// Creates the period from `"periodRaw"`, or without that from `"period"` in milliseconds.
    public init?(stringValue: [String: String]) {
        if let text = stringValue["periodRaw"] {
            guard let periodRaw: UInt8 = TextFields.number(text) else { return nil }
            self.init(rawValue: periodRaw)
        } else {
            guard let period: UInt16 = stringValue["period"].flatMap({ TextFields.number($0) }),
                let periodRaw = UInt8(exactly: period / 10)
            else { return nil }
            self.init(rawValue: periodRaw)
        }
    }
}

/// Three transmitted numbers of one type: a quantity along the axes x, y and z of the SensorTag.
///
/// The sensors sit on the board turned by half a circle about z, so x and y change their signs.
public protocol SensorTagAxes: RawArrayDeserializable, StringDeserializable, DeclaredCharacteristic, Hashable
where RawType: ScalableNumber & FixedWidthInteger {
    /// How many steps of the transmitted number make one unit.
    static var stepsPerUnit: Double { get }
    /// The transmitted number for x.
    var xRaw: RawType { get }
    /// The transmitted number for y.
    var yRaw: RawType { get }
    /// The transmitted number for z.
    var zRaw: RawType { get }
    /// Creates a value of transmitted numbers.
    init(xRaw: RawType, yRaw: RawType, zRaw: RawType)
}

extension SensorTagAxes {
    /// Three numbers.
    public static var size: Int { 3 }

    /// Declares the data of a sensor with the numbers that it has at first.
    static func axes(_ number: String, _ name: String, _ x: RawType, _ y: RawType, _ z: RawType)
        -> CharacteristicDeclaration
    {
        CharacteristicDeclaration(
            TISensorTag.uuid(number), name, [.read, .notify],
            initialValue: Self(xRaw: x, yRaw: y, zRaw: z).serialize())
    }

    /// The quantity along x, in the unit that the type names.
    public var x: Double { 0 - xRaw.doubleValue / Self.stepsPerUnit }
    /// The quantity along y.
    public var y: Double { 0 - yRaw.doubleValue / Self.stepsPerUnit }
    /// The quantity along z.
    public var z: Double { zRaw.doubleValue / Self.stepsPerUnit }

    /// The quantities rounded to the nearest step, or `nil` if one is outside its range.
    public init?(x: Double, y: Double, z: Double) {
        guard let xRaw = RawType(nearest: -x * Self.stepsPerUnit), let yRaw = RawType(nearest: -y * Self.stepsPerUnit),
            let zRaw = RawType(nearest: z * Self.stepsPerUnit)
        else { return nil }
        self.init(xRaw: xRaw, yRaw: yRaw, zRaw: zRaw)
    }

    public var rawValue: [RawType] { [xRaw, yRaw, zRaw] }

    public init?(rawValue: [RawType]) {
        guard rawValue.count == 3 else { return nil }
        self.init(xRaw: rawValue[0], yRaw: rawValue[1], zRaw: rawValue[2])
    }

    /// `"x"`, `"y"`, `"z"` in the unit that the type names, and `"xRaw"`, `"yRaw"`, `"zRaw"`, the transmitted numbers.
    public var stringValue: [String: String] {
        [
            "x": String(format: "%.2f", x), "y": String(format: "%.2f", y), "z": String(format: "%.2f", z),
            "xRaw": "\(xRaw)", "yRaw": "\(yRaw)", "zRaw": "\(zRaw)",
        ]
    }

    /// Creates the value from the transmitted numbers; if none of them is given, from the quantities.
    public init?(stringValue: [String: String]) {
        let raw = ["xRaw", "yRaw", "zRaw"].compactMap { stringValue[$0] }
        if raw.isEmpty {
            let values = ["x", "y", "z"].compactMap { stringValue[$0].flatMap { Double($0) } }
            guard values.count == 3 else { return nil }
            self.init(x: values[0], y: values[1], z: values[2])
        } else {
            self.init(rawValue: raw.compactMap { TextFields.number($0) })
        }
    }
}
