public import Foundation

extension BluetoothSIG {
    /// A date and a time of day without a time zone, to the second (GATT Specification Supplement, "Date Time").
    public struct DateTime: Deserializable, Hashable {
        /// 1582 to 9999; 0 when it is not known.
        public let year: UInt16
        /// 1 to 12; 0 when it is not known.
        public let month: UInt8
        /// 1 to 31; 0 when it is not known.
        public let day: UInt8
        /// 0 to 23.
        public let hours: UInt8
        /// 0 to 59.
        public let minutes: UInt8
        /// 0 to 59.
        public let seconds: UInt8

        /// `nil` when a part is outside of its range.
        public init?(year: UInt16, month: UInt8, day: UInt8, hours: UInt8, minutes: UInt8, seconds: UInt8) {
            guard year == 0 || (1582...9999).contains(year), month <= 12, day <= 31, hours <= 23, minutes <= 59,
                seconds <= 59
            else { return nil }
            self.year = year
            self.month = month
            self.day = day
            self.hours = hours
            self.minutes = minutes
            self.seconds = seconds
        }

        public static var size: Int { 7 }

        public static func deserialize(_ data: Data, start: Int) -> DateTime? {
            guard let year = UInt16.deserialize(data, start: start), start <= data.count - 7 else { return nil }
            let parts = Array(data.dropFirst(start + 2).prefix(5))
            return DateTime(
                year: year, month: parts[0], day: parts[1], hours: parts[2], minutes: parts[3], seconds: parts[4])
        }

        public func serialize() -> Data { year.serialize() + Data([month, day, hours, minutes, seconds]) }

        /// As ISO 8601 writes it, without a zone: `"2024-02-29T13:05:00"`.
        var text: String {
            String(format: "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, hours, minutes, seconds)
        }

        init?(text: String) {
            let parts = text.split(omittingEmptySubsequences: false) { "-T:".contains($0) }
            guard parts.count == 6, let year = UInt16(parts[0]) else { return nil }
            let rest = parts.dropFirst().compactMap { UInt8($0) }
            guard rest.count == 5 else { return nil }
            self.init(
                year: year, month: rest[0], day: rest[1], hours: rest[2], minutes: rest[3], seconds: rest[4])
        }
    }
}
