import BlueCapKit
import Foundation

/// How a command prints.
enum Format: Equatable, Sendable {
    /// A table or a tree for people.
    case table
    /// A line for each event, for people, pipes and `grep`.
    case lines
    /// A JSON object for each event, for programs.
    case json
    /// Comma-separated values.
    case csv
    /// A text with fields in it, such as `{name}`.
    case text(String)
}

/// An attribute, which may have a name.
protocol Named {
    var uuid: CBUUID { get }
    var name: String? { get }
}

extension Named {
    /// The name, or else the UUID.
    var label: String { name ?? uuid.uuidString }
}

/// How counts, times and assigned numbers are written.
enum Wording {
    static let linkIsLost = "The link was lost; trying to bring it back."
    static let linkIsBack = "The link is back."

    /// "Apple, Inc."; "company 0x1234" if the company has no name.
    static func company(_ identifier: UInt16) -> String {
        AssignedNumbers.companyName(identifier) ?? "company 0x" + String(format: "%04X", Int(identifier))
    }

    /// "Battery"; the UUID if the service has no name.
    static func service(_ uuid: CBUUID) -> String { Formats.serviceName(uuid) ?? uuid.uuidString }

    /// "1 read", "2 reads".
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// "3.0 s".
    static func tenths(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// "10", "0.5": without a fraction if there is none.
    static func number(_ number: Double) -> String { Int(exactly: number).map { "\($0)" } ?? "\(number)" }

    /// "now", "4 s", "3 min", "2 h".
    static func age(_ seconds: Double) -> String {
        switch seconds {
        case ..<1.5: "now"
        case ..<99.5: "\(Int(seconds.rounded())) s"
        case ..<5970: "\(Int((seconds / 60).rounded())) min"
        default: "\(Int((seconds / 3600).rounded())) h"
        }
    }

    /// Date and time to the millisecond, for programs.
    static func timestamp(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// The time of day to the millisecond, for people.
    static func clock(_ date: Date, in timeZone: TimeZone) -> String {
        let style = Date.ISO8601FormatStyle(
            timeSeparator: .colon, includingFractionalSeconds: true, timeZone: timeZone)
        return date.formatted(style.time(includingFractionalSeconds: true))
    }
}

extension TimeZone {
    /// The present offset of local time from GMT. Foundation would read the time zone from ICU's data, which the installed tool
    /// does not contain.
    static var local: TimeZone {
        var (now, local) = (time(nil), tm())
        localtime_r(&now, &local)
        return TimeZone(secondsFromGMT: local.tm_gmtoff) ?? .gmt
    }
}

extension Double {
    /// Reads a number in decimal digits. A plain conversion also takes hexadecimal ones: `0x10` is 16.
    init?(decimal text: some StringProtocol) {
        guard !text.lowercased().contains("x") else { return nil }
        self.init(text)
    }
}

extension Peripheral {
    /// The peripheral's name; `nil` if it has none. The library's `name` is "Unknown" then, which a peripheral can be called, too.
    var knownName: String? { advertisements.localName }
}
