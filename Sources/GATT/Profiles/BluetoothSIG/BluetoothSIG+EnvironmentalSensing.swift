extension BluetoothSIG {
    /// What sensors of the surroundings measure (Environmental Sensing Service 1.0.1).
    ///
    /// A device may have several characteristics of one kind, told apart by their descriptors.
    public enum EnvironmentalSensingService: ServiceConfigurable {
        public static let uuid = "181A"
        public static let name = "Environmental Sensing"
        public static let tag = BluetoothSIG.tag

        static var profile: ServiceProfile {
            ConfiguredServiceProfile<EnvironmentalSensingService>(
                RawCharacteristicProfile<Temperature>(),
                RawCharacteristicProfile<Humidity>(),
                RawCharacteristicProfile<Pressure>(),
                RawCharacteristicProfile<Elevation>(),
                RawCharacteristicProfile<DewPoint>(),
                RawCharacteristicProfile<HeatIndex>(),
                RawCharacteristicProfile<WindChill>(),
                RawCharacteristicProfile<UVIndex>(),
                RawCharacteristicProfile<Irradiance>(),
                RawCharacteristicProfile<Rainfall>(),
                RawCharacteristicProfile<TrueWindSpeed>(),
                RawCharacteristicProfile<TrueWindDirection>(),
                RawCharacteristicProfile<ApparentWindSpeed>(),
                RawCharacteristicProfile<ApparentWindDirection>(),
                RawCharacteristicProfile<GustFactor>(),
                RawCharacteristicProfile<PollenConcentration>(),
                RawCharacteristicProfile<MagneticDeclination>(),
                RawCharacteristicProfile<BarometricPressureTrend>(),
                RawArrayCharacteristicProfile<MagneticFluxDensity2D>(),
                RawArrayCharacteristicProfile<MagneticFluxDensity3D>())
        }
    }
}

// MARK: Air and light

extension BluetoothSIG.EnvironmentalSensingService {
    /// The temperature in °C, -273.15 to 327.67 in steps of 0.01.
    public struct Temperature: ScaledCharacteristic {
        public static let uuid = "2A6E"
        public static let name = "Temperature"
        public static let unit = "°C"
        public static let stepsPerUnit = 100.0
        public static let unknown: Int16? = .min
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: Int16
        public init(rawValue: Int16) { self.rawValue = rawValue }
    }

    /// The relative humidity in percent, 0 to 100 in steps of 0.01.
    public struct Humidity: ScaledCharacteristic {
        public static let uuid = "2A6F"
        public static let name = "Humidity"
        public static let unit = "%"
        public static let stepsPerUnit = 100.0
        public static let unknown: UInt16? = .max
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// The pressure in Pa, in steps of 0.1.
    public struct Pressure: ScaledCharacteristic {
        public static let uuid = "2A6D"
        public static let name = "Pressure"
        public static let unit = "Pa"
        public static let stepsPerUnit = 10.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    /// The height above the sea in metres, -83 886.08 to 83 886.07 in steps of 0.01.
    public struct Elevation: ScaledCharacteristic {
        public static let uuid = "2A6C"
        public static let name = "Elevation"
        public static let unit = "m"
        public static let stepsPerUnit = 100.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: Int24
        public init(rawValue: Int24) { self.rawValue = rawValue }
    }

    /// The temperature at which dew forms in °C, -128 to 127.
    public struct DewPoint: ScaledCharacteristic {
        public static let uuid = "2A7B"
        public static let name = "Dew Point"
        public static let unit = "°C"
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// How hot the air feels in °C, -128 to 127.
    public struct HeatIndex: ScaledCharacteristic {
        public static let uuid = "2A7A"
        public static let name = "Heat Index"
        public static let unit = "°C"
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// How cold the wind feels in °C, -128 to 127.
    public struct WindChill: ScaledCharacteristic {
        public static let uuid = "2A79"
        public static let name = "Wind Chill"
        public static let unit = "°C"
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
    }

    /// The strength of the ultraviolet light; no unit.
    public struct UVIndex: ScaledCharacteristic {
        public static let uuid = "2A76"
        public static let name = "UV Index"
        public static let unit = ""
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// The power of the light in W/m², 0 to 6553.5 in steps of 0.1.
    public struct Irradiance: ScaledCharacteristic {
        public static let uuid = "2A77"
        public static let name = "Irradiance"
        public static let unit = "W/m²"
        public static let stepsPerUnit = 10.0
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    /// Pollen in a cubic metre of air, 0 to 16 777 215.
    public struct PollenConcentration: ScaledCharacteristic {
        public static let uuid = "2A75"
        public static let name = "Pollen Concentration"
        public static let unit = "/m³"
        public static let properties: CBCharacteristicProperties = [.read, .notify]

        public let rawValue: UInt24
        public init(rawValue: UInt24) { self.rawValue = rawValue }
    }
}
