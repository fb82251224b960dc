public import Foundation

/// A measured temperature with what the flags announce: Temperature Measurement and Intermediate Temperature.
public protocol HealthTemperature: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
    /// The temperature, in °F when ``isFahrenheit`` is set and in °C else.
    var temperature: MedicalFloat { get }
    /// Whether the temperature is in °F and not in °C.
    var isFahrenheit: Bool { get }
    /// When it was measured; `nil` when the device does not say.
    var time: BluetoothSIG.DateTime? { get }
    /// Where it was measured; `nil` when the device does not say.
    var type: BluetoothSIG.HealthThermometerService.TemperatureType? { get }
    init(
        temperature: MedicalFloat, isFahrenheit: Bool, time: BluetoothSIG.DateTime?,
        type: BluetoothSIG.HealthThermometerService.TemperatureType?)
}

extension HealthTemperature {
    public static var stringValues: [String] { [] }

    /// The temperature in °C whatever the device sent; not a number when it measured nothing usable.
    public var celsius: Double { isFahrenheit ? (temperature.value - 32) / 1.8 : temperature.value }

    public static func deserialize(_ data: Data) -> Self? {
        var reader = ValueReader(data)
        guard let flags: UInt8 = reader.next(), let temperature: MedicalFloat = reader.next() else { return nil }
        var time: BluetoothSIG.DateTime?
        if flags & 0x02 != 0 {
            time = reader.next()
            guard time != nil else { return nil }
        }
        var type: BluetoothSIG.HealthThermometerService.TemperatureType?
        if flags & 0x04 != 0 {
            type = reader.next(UInt8.self).flatMap { .init(rawValue: $0) }
            guard type != nil else { return nil }
        }
        guard reader.isAtEnd else { return nil }
        return Self(temperature: temperature, isFahrenheit: flags & 0x01 != 0, time: time, type: type)
    }

    public func serialize() -> Data {
        let flags: UInt8 = (isFahrenheit ? 0x01 : 0) | (time == nil ? 0 : 0x02) | (type == nil ? 0 : 0x04)
        return flags.serialize() + temperature.serialize() + (time?.serialize() ?? Data())
            + (type?.serialize() ?? Data())
    }

    /// `"Temperature"` with its unit, and, where known, `"Time"` (ISO 8601 without a zone) and `"Type"`.
    public var stringValue: [String: String] {
        var texts = ["Temperature": "\(temperature.text) \(isFahrenheit ? "°F" : "°C")"]
        texts["Time"] = time?.text
        texts["Type"] = type?.stringValue.first?.value
        return texts
    }

    public init?(stringValue: [String: String]) {
        let fields = TextFields(stringValue)
        let isFahrenheit = stringValue["Temperature"]?.hasSuffix("°F") ?? false
        let unit = isFahrenheit ? "°F" : "°C"
        typealias Kind = BluetoothSIG.HealthThermometerService.TemperatureType
        guard let temperature = fields.text("Temperature", unit: unit).flatMap({ MedicalFloat(text: $0) }),
            let time = fields.optional("Time", { fields, key in fields.text(key).flatMap { .init(text: $0) } })
                as BluetoothSIG.DateTime??,
            let type = fields.optional(
                "Type",
                { fields, key in
                    fields.text(key).flatMap { Kind(stringValue: [Kind.name: $0]) }
                })
        else { return nil }
        self.init(temperature: temperature, isFahrenheit: isFahrenheit, time: time, type: type)
    }
}

extension BluetoothSIG {
    /// The body's temperature (Health Thermometer Service 1.0).
    public enum HealthThermometerService: ServiceConfigurable {
        public static let uuid = "1809"
        public static let name = "Health Thermometer"
        public static let tag = BluetoothSIG.tag

        /// A measurement, acknowledged by the central.
        public struct TemperatureMeasurement: HealthTemperature {
            public static let uuid = "2A1C"
            public static let name = "Temperature Measurement"
            public static let properties: CBCharacteristicProperties = [.indicate]

            public let temperature: MedicalFloat
            public let isFahrenheit: Bool
            public let time: DateTime?
            public let type: TemperatureType?

            public init(
                temperature: MedicalFloat, isFahrenheit: Bool = false, time: DateTime? = nil,
                type: TemperatureType? = nil
            ) {
                self.temperature = temperature
                self.isFahrenheit = isFahrenheit
                self.time = time
                self.type = type
            }
        }

        /// A value seen while the measurement is still going on.
        public struct IntermediateTemperature: HealthTemperature {
            public static let uuid = "2A1E"
            public static let name = "Intermediate Temperature"
            public static let properties: CBCharacteristicProperties = [.notify]

            public let temperature: MedicalFloat
            public let isFahrenheit: Bool
            public let time: DateTime?
            public let type: TemperatureType?

            public init(
                temperature: MedicalFloat, isFahrenheit: Bool = false, time: DateTime? = nil,
                type: TemperatureType? = nil
            ) {
                self.temperature = temperature
                self.isFahrenheit = isFahrenheit
                self.time = time
                self.type = type
            }
        }

        /// Where on the body the temperature is taken.
        public enum TemperatureType: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            CharacteristicConfigurable
        {
            case armpit = 1
            case body = 2
            case ear = 3
            case finger = 4
            case gastroIntestinalTract = 5
            case mouth = 6
            case rectum = 7
            case toe = 8
            case tympanum = 9
            public static let uuid = "2A1D"
            public static let name = "Temperature Type"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues = [
                "Armpit", "Body", "Ear", "Finger", "Gastro-intestinal Tract", "Mouth", "Rectum", "Toe", "Tympanum",
            ]
        }

        /// The time between two measurements in seconds; 0 when none are made by themselves.
        public struct MeasurementInterval: ScaledCharacteristic {
            public static let uuid = "2A21"
            public static let name = "Measurement Interval"
            public static let unit = "s"
            public static let properties: CBCharacteristicProperties = [.read, .write, .indicate]

            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }
        }
    }
}
