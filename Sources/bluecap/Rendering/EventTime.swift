import Foundation

/// The time at which something happened, as the outputs have it.
struct EventTime: Equatable, Sendable {
    var timeZone = TimeZone.current

    /// For programs: date and time, to the millisecond.
    func timestamp(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// For people: the time of day, to the millisecond.
    func clock(_ date: Date) -> String {
        let style = Date.ISO8601FormatStyle(
            timeSeparator: .colon, includingFractionalSeconds: true, timeZone: timeZone)
        return date.formatted(style.time(includingFractionalSeconds: true))
    }

    /// "3.0 s".
    static func tenths(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
