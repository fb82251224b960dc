public import Foundation

extension BluetoothSIG {
    /// The heart rate (Heart Rate Service 1.0).
    public enum HeartRateService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "180D", "Heart Rate", tag: BluetoothSIG.tag,
            [Measurement.profile, BodySensorLocation.profile, ControlPoint.profile])

        /// A measurement: flags, then only the fields that they announce.
        public struct Measurement: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration("2A37", "Heart Rate Measurement", [.notify])

            /// Beats per minute; sent in one byte up to 255, and else in two.
            public var beatsPerMinute: UInt16
            /// Whether the sensor touches the skin; `nil` if the device does not detect that.
            public var isInContact: Bool?
            /// Energy since the last reset in kJ; `nil` if it is not in this measurement. The count stops at 65 535.
            public var energyExpended: UInt16?
            /// Times between beats, the oldest first, in units of 1/1024 s.
            public var intervals: [UInt16]

            /// Creates a measurement of its fields.
            public init(
                beatsPerMinute: UInt16, isInContact: Bool? = nil, energyExpended: UInt16? = nil,
                intervals: [UInt16] = []
            ) {
                self.beatsPerMinute = beatsPerMinute
                self.isInContact = isInContact
                self.energyExpended = energyExpended
                self.intervals = intervals
            }

            private struct Flags: OptionSet {
                let rawValue: UInt8
                static let wideRate = Flags(rawValue: 0x01)
                static let contact = Flags(rawValue: 0x02)
                static let contactSupported = Flags(rawValue: 0x04)
                static let energy = Flags(rawValue: 0x08)
                static let intervals = Flags(rawValue: 0x10)
            }

            public static func deserialize(_ data: Data) -> Measurement? {
                ValueReader.read(data) { reader in
                    let flags = Flags(rawValue: try reader.next())
                    let rate: UInt16 =
                        flags.contains(.wideRate) ? try reader.next() : UInt16(try reader.next() as UInt8)
                    return Measurement(
                        beatsPerMinute: rate,
                        isInContact: flags.contains(.contactSupported) ? flags.contains(.contact) : nil,
                        energyExpended: try reader.next(if: flags.contains(.energy)),
                        intervals: flags.contains(.intervals) ? reader.rest() : [])
                }
            }

            public func serialize() -> Data {
                var flags: Flags = beatsPerMinute > 0xFF ? .wideRate : []
                if isInContact != nil { flags.insert(.contactSupported) }
                if isInContact == true { flags.insert(.contact) }
                if energyExpended != nil { flags.insert(.energy) }
                if !intervals.isEmpty { flags.insert(.intervals) }
                let rate = beatsPerMinute.serialize().prefix(flags.contains(.wideRate) ? 2 : 1)
                return .joined(
                    flags.rawValue.serialize(), rate, energyExpended?.serialize(), intervals.serialized())
            }

            /// `"Heart Rate"` in beats per minute, and, where known, `"Contact"`, `"Energy Expended"` in kJ and
            /// `"Intervals"` in 1/1024 s.
            public var stringValue: [String: String] {
                var texts = ["Heart Rate": "\(beatsPerMinute) bpm"]
                texts["Contact"] = isInContact.map { $0 ? "Yes" : "No" }
                texts["Energy Expended"] = energyExpended.map { "\($0) kJ" }
                if !intervals.isEmpty { texts["Intervals"] = intervals.map { "\($0)" }.joined(separator: " ") }
                return texts
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let rate: UInt16 = fields.number("Heart Rate", unit: "bpm"),
                    let contact = fields.optional("Contact", { $0.flag($1) }),
                    let energy: UInt16? = fields.optional("Energy Expended", { $0.number($1, unit: "kJ") }),
                    let intervals: [UInt16]? = fields.optional("Intervals", { $0.numbers(in: $1) })
                else { return nil }
                self.init(
                    beatsPerMinute: rate, isInContact: contact, energyExpended: energy, intervals: intervals ?? [])
            }
        }

        /// The place on the body where the sensor is worn.
        public enum BodySensorLocation: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            DeclaredCharacteristic
        {
            /// Another place.
            case other = 0
            /// The chest.
            case chest = 1
            /// The wrist.
            case wrist = 2
            /// A finger.
            case finger = 3
            /// The hand.
            case hand = 4
            /// The lobe of an ear.
            case earLobe = 5
            /// The foot.
            case foot = 6
            public static let declaration = CharacteristicDeclaration(
                "2A38", "Body Sensor Location", [.read],
                texts: ["Other", "Chest", "Wrist", "Finger", "Hand", "Ear Lobe", "Foot"])
        }

        /// The commands of the device.
        public enum ControlPoint: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            DeclaredCharacteristic
        {
            /// Resets the count of the expended energy to 0.
            case resetEnergyExpended = 1
            public static let declaration = CharacteristicDeclaration(
                "2A39", "Heart Rate Control Point", [.write], permissions: [.writeable],
                texts: ["Reset Energy Expended"])
        }
    }

    /// The body's temperature (Health Thermometer Service 1.0).
    public enum HealthThermometerService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1809", "Health Thermometer", tag: BluetoothSIG.tag,
            [
                TemperatureMeasurement.profile, TemperatureType.profile, IntermediateTemperature.profile,
                MeasurementInterval.profile,
            ])

        /// A completed measurement, which the central acknowledges.
        public struct TemperatureMeasurement: HealthTemperature {
            public static let declaration = CharacteristicDeclaration("2A1C", "Temperature Measurement", [.indicate])

            public let temperature: MedicalFloat
            public let isFahrenheit: Bool
            public let time: DateTime?
            public let type: TemperatureType?

            public init(
                temperature: MedicalFloat, isFahrenheit: Bool = false, time: DateTime? = nil,
                type: TemperatureType? = nil
            ) {
                (self.temperature, self.isFahrenheit) = (temperature, isFahrenheit)
                (self.time, self.type) = (time, type)
            }
        }

        /// A value during the measurement.
        public struct IntermediateTemperature: HealthTemperature {
            public static let declaration = CharacteristicDeclaration("2A1E", "Intermediate Temperature", [.notify])

            public let temperature: MedicalFloat
            public let isFahrenheit: Bool
            public let time: DateTime?
            public let type: TemperatureType?

            public init(
                temperature: MedicalFloat, isFahrenheit: Bool = false, time: DateTime? = nil,
                type: TemperatureType? = nil
            ) {
                (self.temperature, self.isFahrenheit) = (temperature, isFahrenheit)
                (self.time, self.type) = (time, type)
            }
        }

        /// The place on the body where the temperature is measured.
        public enum TemperatureType: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            DeclaredCharacteristic
        {
            /// The armpit.
            case armpit = 1
            /// The body in general.
            case body = 2
            /// The ear, usually its lobe.
            case ear = 3
            /// A finger.
            case finger = 4
            /// The gastrointestinal tract.
            case gastroIntestinalTract = 5
            /// The mouth.
            case mouth = 6
            /// The rectum.
            case rectum = 7
            /// A toe.
            case toe = 8
            /// The eardrum.
            case tympanum = 9
            public static let declaration = CharacteristicDeclaration(
                "2A1D", "Temperature Type", [.read],
                texts: [
                    "Armpit", "Body", "Ear", "Finger", "Gastro-intestinal Tract", "Mouth", "Rectum", "Toe", "Tympanum",
                ])
        }

        /// The time between two measurements in seconds; 0 if there are no periodic measurements.
        public struct MeasurementInterval: DeclaredQuantity {
            public static let declaration = CharacteristicDeclaration(
                "2A21", "Measurement Interval", [.read, .write, .indicate], unit: "s")
            public let rawValue: UInt16
            public init(rawValue: UInt16) { self.rawValue = rawValue }
        }
    }
}

/// A measured temperature with its optional fields: Temperature Measurement and Intermediate Temperature.
public protocol HealthTemperature: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
    /// The temperature, in °F if ``isFahrenheit`` is set and in °C otherwise.
    var temperature: MedicalFloat { get }
    /// Whether the temperature is in °F and not in °C.
    var isFahrenheit: Bool { get }
    /// The time of the measurement; `nil` if the device does not send it.
    var time: BluetoothSIG.DateTime? { get }
    /// The place of the measurement; `nil` if the device does not send it.
    var type: BluetoothSIG.HealthThermometerService.TemperatureType? { get }
    /// Creates a measurement of its fields.
    init(
        temperature: MedicalFloat, isFahrenheit: Bool, time: BluetoothSIG.DateTime?,
        type: BluetoothSIG.HealthThermometerService.TemperatureType?)
}

extension HealthTemperature {
    /// The temperature in °C whatever the device sent; not a number if it has no usable measurement.
    public var celsius: Double { isFahrenheit ? (temperature.value - 32) / 1.8 : temperature.value }

    public static func deserialize(_ data: Data) -> Self? {
        ValueReader.read(data) { reader in
            let flags: UInt8 = try reader.next()
            let temperature: MedicalFloat = try reader.next()
            let time: BluetoothSIG.DateTime? = try reader.nextIfAllowed(if: flags & 0x02 != 0)
            let place: UInt8? = try reader.next(if: flags & 0x04 != 0)
            let type = place.flatMap { BluetoothSIG.HealthThermometerService.TemperatureType(rawValue: $0) }
            return Self(temperature: temperature, isFahrenheit: flags & 0x01 != 0, time: time, type: type)
        }
    }

    public func serialize() -> Data {
        let flags: UInt8 = (isFahrenheit ? 0x01 : 0) | (time == nil ? 0 : 0x02) | (type == nil ? 0 : 0x04)
        return .joined(flags.serialize(), temperature.serialize(), time?.serialize(), type?.serialize())
    }

    /// `"Temperature"` with its unit, and, where known, `"Time"` (ISO 8601 without a zone) and `"Type"`.
    public var stringValue: [String: String] {
        var texts = ["Temperature": "\(temperature.text) \(isFahrenheit ? "°F" : "°C")"]
        texts["Time"] = time?.text
        texts["Type"] = type?.stringValue.first?.value
        return texts
    }

    /// Creates a measurement of the texts of ``stringValue``, or `nil` if one of them is not valid.
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
