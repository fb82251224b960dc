/// The services of Texas Instruments' SensorTag CC2541DK-SENSOR (its public "SensorTag User Guide").
///
/// Each sensor has a data characteristic, one that turns it on and, for some, one that sets its period. A sensor that
/// is off sends zeros. UUIDs are `F000xxxx-0451-4000-B000-000000000000`.
public enum TISensorTag {
    static let tag = "TI Sensor Tag"

    /// What is known of each service and its characteristics, to be added to a ``ProfileManager``.
    public static var serviceProfiles: [ServiceProfile] {
        [
            ConfiguredServiceProfile<AccelerometerService>(
                RawArrayCharacteristicProfile<AccelerometerService.Data>(),
                RawCharacteristicProfile<AccelerometerService.Enabled>(),
                RawCharacteristicProfile<AccelerometerService.UpdatePeriod>()),
            ConfiguredServiceProfile<MagnetometerService>(
                RawArrayCharacteristicProfile<MagnetometerService.Data>(),
                RawCharacteristicProfile<MagnetometerService.Enabled>(),
                RawCharacteristicProfile<MagnetometerService.UpdatePeriod>()),
            ConfiguredServiceProfile<GyroscopeService>(
                RawArrayCharacteristicProfile<GyroscopeService.Data>(),
                RawCharacteristicProfile<GyroscopeService.Enabled>()),
            ConfiguredServiceProfile<TemperatureService>(
                RawArrayCharacteristicProfile<TemperatureService.Data>(),
                RawCharacteristicProfile<TemperatureService.Enabled>()),
            ConfiguredServiceProfile<BarometerService>(
                RawPairCharacteristicProfile<BarometerService.Data>(),
                RawArrayPairCharacteristicProfile<BarometerService.Calibration>(),
                RawCharacteristicProfile<BarometerService.Enabled>()),
            ConfiguredServiceProfile<HygrometerService>(
                RawArrayCharacteristicProfile<HygrometerService.Data>(),
                RawCharacteristicProfile<HygrometerService.Enabled>()),
            ConfiguredServiceProfile<SensorTagTestService>(
                RawCharacteristicProfile<SensorTagTestService.Data>(),
                RawCharacteristicProfile<SensorTagTestService.Enabled>()),
            ConfiguredServiceProfile<KeyPressedService>(RawCharacteristicProfile<KeyPressedService.State>()),
        ]
    }
}

/// A characteristic that turns a sensor on and off.
public protocol SensorTagSwitch: RawDeserializable, StringDeserializable, CharacteristicConfigurable, CaseIterable,
    Hashable
where RawType == UInt8 {
    /// The sensor is off, and sends zeros.
    static var no: Self { get }
    /// The sensor is on.
    static var yes: Self { get }
}

extension SensorTagSwitch {
    public static var stringValues: [String] { ["No", "Yes"] }
    public static var properties: CBCharacteristicProperties { [.read, .write] }

    /// On for `true`.
    public init(boolValue: Bool) { self = boolValue ? .yes : .no }
    /// Whether the sensor is on.
    public var boolValue: Bool { self == .yes }
}

/// A characteristic that holds the time between two measurements.
public protocol SensorTagPeriod: RawDeserializable, StringDeserializable, CharacteristicConfigurable, Hashable
where RawType == UInt8 {
    /// The period as it is on the air, in units of ten milliseconds.
    var periodRaw: UInt8 { get }
}

extension SensorTagPeriod {
    public static var stringValues: [String] { [] }
    public static var properties: CBCharacteristicProperties { [.read, .write] }

    public var rawValue: UInt8 { periodRaw }

    /// The period in milliseconds: 10 to 2550. The SensorTag itself takes 100 and more.
    public var period: UInt16 { max(10, 10 * UInt16(periodRaw)) }

    /// `"period"` in milliseconds, and `"periodRaw"`, the number on the air.
    public var stringValue: [String: String] { ["period": "\(period)", "periodRaw": "\(periodRaw)"] }

    /// The period out of `"periodRaw"`, or else of `"period"` in milliseconds.
    public init?(stringValue: [String: String]) {
        if let text = stringValue["periodRaw"] {
            guard let periodRaw = UInt8(text) else { return nil }
            self.init(rawValue: periodRaw)
        } else {
            guard let period = stringValue["period"].flatMap({ UInt16($0) }),
                let periodRaw = UInt8(exactly: period / 10)
            else { return nil }
            self.init(rawValue: periodRaw)
        }
    }
}
