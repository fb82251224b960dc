public import Foundation

extension BluetoothSIG {
    /// What time it is (Current Time Service 1.1).
    public enum CurrentTimeService: ServiceConfigurable {
        public static let uuid = "1805"
        public static let name = "Current Time"
        public static let tag = BluetoothSIG.tag

        /// Why the time was set.
        public struct AdjustReason: OptionSet, Hashable, Sendable {
            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// Somebody set the clock.
            public static let manual = AdjustReason(rawValue: 0x01)
            /// A better clock was asked.
            public static let reference = AdjustReason(rawValue: 0x02)
            /// The time zone changed.
            public static let timeZone = AdjustReason(rawValue: 0x04)
            /// Daylight saving began or ended.
            public static let daylightSaving = AdjustReason(rawValue: 0x08)
        }

        /// The local time to 1/256 s, with the day of the week.
        public struct CurrentTime: CharacteristicCodable, StringDeserializable, CharacteristicConfigurable, Hashable {
            public static let uuid = "2A2B"
            public static let name = "Current Time"
            public static let properties: CBCharacteristicProperties = [.read, .write, .notify]
            public static let stringValues: [String] = []

            /// The local date and time, to the second.
            public let time: DateTime
            /// 1 Monday to 7 Sunday; 0 when it is not known.
            public let dayOfWeek: UInt8
            /// Parts of a second in units of 1/256 s.
            public let fractions: UInt8
            /// Why the time was set last.
            public let adjustReason: AdjustReason

            /// `nil` for a day of the week above 7.
            public init?(time: DateTime, dayOfWeek: UInt8, fractions: UInt8 = 0, adjustReason: AdjustReason = []) {
                guard dayOfWeek <= 7 else { return nil }
                self.time = time
                self.dayOfWeek = dayOfWeek
                self.fractions = fractions
                self.adjustReason = adjustReason
            }

            public static func deserialize(_ data: Data) -> CurrentTime? {
                var reader = ValueReader(data)
                guard let time: DateTime = reader.next(), let rest: [UInt8] = reader.next(count: 3), reader.isAtEnd
                else { return nil }
                return CurrentTime(
                    time: time, dayOfWeek: rest[0], fractions: rest[1], adjustReason: AdjustReason(rawValue: rest[2]))
            }

            public func serialize() -> Data {
                time.serialize() + Data([dayOfWeek, fractions, adjustReason.rawValue])
            }

            /// `"Time"` (ISO 8601 without a zone), `"Day of Week"`, `"Fractions"` in 1/256 s, `"Adjust Reason"`.
            public var stringValue: [String: String] {
                [
                    "Time": time.text, "Day of Week": "\(dayOfWeek)", "Fractions": "\(fractions)",
                    "Adjust Reason": "\(adjustReason.rawValue)",
                ]
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let time = fields.text("Time").flatMap({ DateTime(text: $0) }),
                    let dayOfWeek: UInt8 = fields.number("Day of Week"),
                    let fractions: UInt8 = fields.number("Fractions"),
                    let reason: UInt8 = fields.number("Adjust Reason")
                else { return nil }
                self.init(
                    time: time, dayOfWeek: dayOfWeek, fractions: fractions,
                    adjustReason: AdjustReason(rawValue: reason))
            }
        }

        /// How the local time differs from UTC.
        public struct LocalTimeInformation: RawPairDeserializable, StringDeserializable, CharacteristicConfigurable,
            Hashable
        {
            public static let uuid = "2A0F"
            public static let name = "Local Time Information"
            public static let properties: CBCharacteristicProperties = [.read, .write]
            public static let stringValues: [String] = []

            /// The zone: quarters of an hour before UTC, -48 to 56, without daylight saving; -128 when not known.
            public let rawValue1: Int8
            /// Daylight saving: quarters of an hour, 0, 2, 4 or 8; 255 when not known.
            public let rawValue2: UInt8

            public init(rawValue1: Int8, rawValue2: UInt8) {
                self.rawValue1 = rawValue1
                self.rawValue2 = rawValue2
            }

            /// How far the local time is before UTC in seconds, with daylight saving; `nil` when a part is not known.
            public var secondsFromUTC: Int? {
                guard rawValue1 != -128, rawValue2 != 255 else { return nil }
                return (Int(rawValue1) + Int(rawValue2)) * 900
            }

            /// `"Time Zone"` and `"DST Offset"` in quarters of an hour.
            public var stringValue: [String: String] {
                ["Time Zone": "\(rawValue1)", "DST Offset": "\(rawValue2)"]
            }

            public init?(stringValue: [String: String]) {
                let fields = TextFields(stringValue)
                guard let zone: Int8 = fields.number("Time Zone"), let daylight: UInt8 = fields.number("DST Offset")
                else { return nil }
                self.init(rawValue1: zone, rawValue2: daylight)
            }
        }

        /// Where the device has its time from, and how good it is.
        public struct ReferenceTimeInformation: RawArrayDeserializable, StringDeserializable,
            CharacteristicConfigurable, Hashable
        {
            public static let uuid = "2A14"
            public static let name = "Reference Time Information"
            public static let properties: CBCharacteristicProperties = [.read]
            public static let stringValues: [String] = []
            private static let keys = ["Source", "Accuracy", "Days Since Update", "Hours Since Update"]

            /// Source, accuracy, days and hours: four numbers.
            public static let size = 4
            public let rawValue: [UInt8]

            public init?(rawValue: [UInt8]) {
                guard rawValue.count == 4 else { return nil }
                self.rawValue = rawValue
            }

            /// 1 network time protocol, 2 satellites, 3 radio, 4 set by hand, 5 atomic clock, 6 mobile network; 0 unknown.
            public var source: UInt8 { rawValue[0] }
            /// How far off the time may be in seconds, up to 31.5; `nil` when it is more or not known.
            public var accuracy: Double? { rawValue[1] >= 254 ? nil : Double(rawValue[1]) / 8 }
            /// Days since the source was asked; 255 for more than 254.
            public var daysSinceUpdate: UInt8 { rawValue[2] }
            /// Hours beyond those days, 0 to 23; 255 for more than 254 days.
            public var hoursSinceUpdate: UInt8 { rawValue[3] }

            /// The four numbers as they are on the air; `"Accuracy"` is in units of 1/8 s.
            public var stringValue: [String: String] {
                Dictionary(uniqueKeysWithValues: zip(ReferenceTimeInformation.keys, rawValue.map { "\($0)" }))
            }

            public init?(stringValue: [String: String]) {
                self.init(rawValue: ReferenceTimeInformation.keys.compactMap { stringValue[$0].flatMap { UInt8($0) } })
            }
        }
    }
}
