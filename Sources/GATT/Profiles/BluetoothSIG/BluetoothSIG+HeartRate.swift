public import Foundation

extension BluetoothSIG {
    /// The heart's beat (Heart Rate Service 1.0).
    public enum HeartRateService: ServiceConfigurable {
        public static let uuid = "180D"
        public static let name = "Heart Rate"
        public static let tag = BluetoothSIG.tag

        /// A measurement: flags, then only what they announce.
        public struct Measurement: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A37"
            public static let name = "Heart Rate Measurement"
            public static let properties: CBCharacteristicProperties = [.notify]
            public static let stringValues: [String] = []

            /// Beats per minute.
            public var beatsPerMinute: UInt16
            /// Whether the sensor touches the skin; `nil` when the device cannot tell.
            public var isInContact: Bool?
            /// Energy since the last reset in kJ; `nil` when it is not in this measurement. Stays at 65 535.
            public var energyExpended: UInt16?
            /// Times between beats, the oldest first, in units of 1/1024 s.
            public var intervals: [UInt16]

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
                var reader = ValueReader(data)
                guard let flags = reader.next(UInt8.self).map({ Flags(rawValue: $0) }),
                    let rate = flags.contains(.wideRate) ? reader.next() : reader.next(UInt8.self).map({ UInt16($0) })
                else { return nil }
                var measurement = Measurement(beatsPerMinute: rate)
                if flags.contains(.contactSupported) { measurement.isInContact = flags.contains(.contact) }
                if flags.contains(.energy) {
                    guard let energy: UInt16 = reader.next() else { return nil }
                    measurement.energyExpended = energy
                }
                if flags.contains(.intervals) {
                    while let interval: UInt16 = reader.next() { measurement.intervals.append(interval) }
                }
                return reader.isAtEnd ? measurement : nil
            }

            public func serialize() -> Data {
                var flags: Flags = beatsPerMinute > 0xFF ? .wideRate : []
                if isInContact != nil { flags.insert(.contactSupported) }
                if isInContact == true { flags.insert(.contact) }
                if energyExpended != nil { flags.insert(.energy) }
                if !intervals.isEmpty { flags.insert(.intervals) }
                var data = flags.rawValue.serialize()
                data +=
                    flags.contains(.wideRate)
                    ? beatsPerMinute.serialize() : UInt8(truncatingIfNeeded: beatsPerMinute).serialize()
                if let energyExpended { data += energyExpended.serialize() }
                return data + intervals.serialized()
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
                    let intervals: [UInt16]? = fields.optional("Intervals", { $0.numbers($1) })
                else { return nil }
                self.init(
                    beatsPerMinute: rate, isInContact: contact, energyExpended: energy, intervals: intervals ?? [])
            }
        }

        /// Where the sensor is worn.
        public enum BodySensorLocation: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            CharacteristicConfigurable
        {
            case other = 0
            case chest = 1
            case wrist = 2
            case finger = 3
            case hand = 4
            case earLobe = 5
            case foot = 6
            public static let uuid = "2A38"
            public static let name = "Body Sensor Location"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues = ["Other", "Chest", "Wrist", "Finger", "Hand", "Ear Lobe", "Foot"]
        }

        /// What the device can be asked to do.
        public enum ControlPoint: UInt8, CaseIterable, RawDeserializable, StringDeserializable,
            CharacteristicConfigurable
        {
            /// Count the energy from nothing again.
            case resetEnergyExpended = 1
            public static let uuid = "2A39"
            public static let name = "Heart Rate Control Point"
            public static let properties: CBCharacteristicProperties = [.write]
            public static let permissions: CBAttributePermissions = [.writeable]
            public static let stringValues = ["Reset Energy Expended"]
        }
    }
}
