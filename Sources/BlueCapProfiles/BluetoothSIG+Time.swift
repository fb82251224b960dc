public import Foundation

extension BluetoothSIG {
    /// The date and time (Current Time Service 1.1).
    public enum CurrentTimeService: DeclaredService {
        public static let declaration = ServiceDeclaration(
            "1805", "Current Time", tag: BluetoothSIG.tag,
            [CurrentTime.profile, LocalTimeInformation.profile, ReferenceTimeInformation.profile])

        /// The reasons for which the time was set.
        public struct AdjustReason: OptionSet, Hashable, Sendable {
            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// The user set the clock.
            public static let manual = AdjustReason(rawValue: 0x01)
            /// The time of a better clock was read.
            public static let reference = AdjustReason(rawValue: 0x02)
            /// The time zone changed.
            public static let timeZone = AdjustReason(rawValue: 0x04)
            /// Daylight saving began or ended.
            public static let daylightSaving = AdjustReason(rawValue: 0x08)
        }

        /// The local time to 1/256 s, with the day of the week.
        public struct CurrentTime: CharacteristicCodable, StringDeserializable, DeclaredCharacteristic, Hashable {
            public static let declaration = CharacteristicDeclaration(
                "2A2B", "Current Time", [.read, .write, .notify])

            /// The local date and time, to the second.
            public let time: DateTime
            /// 1 Monday to 7 Sunday; 0 if it is not known.
            public let dayOfWeek: UInt8
            /// Parts of a second in units of 1/256 s.
            public let fractions: UInt8
            /// The reasons for which the time was set last.
            public let adjustReason: AdjustReason

            /// `nil` for a day of the week above 7.
            public init?(time: DateTime, dayOfWeek: UInt8, fractions: UInt8 = 0, adjustReason: AdjustReason = []) {
                guard dayOfWeek <= 7 else { return nil }
                (self.time, self.dayOfWeek) = (time, dayOfWeek)
                (self.fractions, self.adjustReason) = (fractions, adjustReason)
            }

            public static func deserialize(_ data: Data) -> CurrentTime? {
                ValueReader.read(data) { reader in
                    let (time, dayOfWeek): (DateTime, UInt8) = (try reader.next(), try reader.next())
                    // A number that is not assigned is no day.
                    return CurrentTime(
                        time: time, dayOfWeek: dayOfWeek <= 7 ? dayOfWeek : 0, fractions: try reader.next(),
                        adjustReason: AdjustReason(rawValue: try reader.next()))
                }
            }

            public func serialize() -> Data {
                .joined(time.serialize(), Data([dayOfWeek, fractions, adjustReason.rawValue]))
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

        /// The difference between local time and UTC.
        public struct LocalTimeInformation: RawPairDeserializable, StringDeserializable, DeclaredCharacteristic,
            Hashable
        {
            public static let declaration = CharacteristicDeclaration(
                "2A0F", "Local Time Information", [.read, .write])

            /// The zone: quarters of an hour before UTC, -48 to 56, without daylight saving; -128 if not known.
            public let rawValue1: Int8
            /// Daylight saving: quarters of an hour, 0, 2, 4 or 8; 255 if not known.
            public let rawValue2: UInt8

            public init(rawValue1: Int8, rawValue2: UInt8) {
                self.rawValue1 = rawValue1
                self.rawValue2 = rawValue2
            }

            /// How far the local time is before UTC in seconds, with daylight saving; `nil` if a part is not known.
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

        /// The source of the device's time and its accuracy.
        public struct ReferenceTimeInformation: RawArrayDeserializable, StringDeserializable,
            DeclaredCharacteristic, Hashable
        {
            public static let declaration = CharacteristicDeclaration(
                "2A14", "Reference Time Information", [.read])
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
            /// The largest error of the time in seconds, up to 31.5; `nil` if it is larger or not known.
            public var accuracy: Double? { rawValue[1] >= 254 ? nil : Double(rawValue[1]) / 8 }
            /// Days since the time was read from the source; 255 for more than 254.
            public var daysSinceUpdate: UInt8 { rawValue[2] }
            /// Hours beyond those days, 0 to 23; 255 for more than 254 days.
            public var hoursSinceUpdate: UInt8 { rawValue[3] }

            /// The four numbers as transmitted; `"Accuracy"` is in units of 1/8 s.
            public var stringValue: [String: String] { TextFields.texts(rawValue, Self.keys) }

            public init?(stringValue: [String: String]) {
                self.init(rawValue: TextFields(stringValue).numbers(of: Self.keys))
            }
        }
    }

    /// A date and a time of day without a time zone, to the second (GATT Specification Supplement, "Date Time").
    public struct DateTime: Deserializable, Hashable {
        /// 1582 to 9999; 0 if it is not known.
        public let year: UInt16
        /// 1 to 12; 0 if it is not known.
        public let month: UInt8
        /// 1 to 31; 0 if it is not known.
        public let day: UInt8
        /// 0 to 23.
        public let hours: UInt8
        /// 0 to 59.
        public let minutes: UInt8
        /// 0 to 59.
        public let seconds: UInt8

        /// Returns `nil` if a part is outside its range.
        public init?(year: UInt16, month: UInt8, day: UInt8, hours: UInt8, minutes: UInt8, seconds: UInt8) {
            guard year == 0 || (1582...9999).contains(year), month <= 12, day <= 31, hours <= 23, minutes <= 59,
                seconds <= 59
            else { return nil }
            (self.year, self.month, self.day) = (year, month, day)
            (self.hours, self.minutes, self.seconds) = (hours, minutes, seconds)
        }

        public static var size: Int { 7 }

        public static func deserialize(_ data: Data, start: Int) -> DateTime? {
            guard let year = UInt16.deserialize(data, start: start), start <= data.count - 7 else { return nil }
            let parts = Array(data.dropFirst(start + 2).prefix(5))
            return DateTime(
                year: year, month: parts[0], day: parts[1], hours: parts[2], minutes: parts[3], seconds: parts[4])
        }

        public func serialize() -> Data { .joined(year.serialize(), Data([month, day, hours, minutes, seconds])) }

        /// The date and time in ISO 8601 without a zone: `"2024-02-29T13:05:00"`.
        var text: String {
            String(format: "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, hours, minutes, seconds)
        }

        init?(text: String) {
            let parts = text.split(omittingEmptySubsequences: false) { "-T:".contains($0) }
            let numbers = parts.compactMap { Int($0) }
            let rest = numbers.dropFirst().compactMap { UInt8(exactly: $0) }
            guard parts.count == 6, rest.count == 5, let year = UInt16(exactly: numbers[0]) else { return nil }
            self.init(
                year: year, month: rest[0], day: rest[1], hours: rest[2], minutes: rest[3], seconds: rest[4])
        }
    }
}
