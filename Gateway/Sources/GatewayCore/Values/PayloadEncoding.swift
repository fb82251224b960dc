public import Foundation

/// A payload in JSON.
public protocol Payload: Codable, Hashable, Sendable {}

extension Payload {
    /// The JSON object, in UTF-8, with its members from A to Z.
    public var json: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(self)
        } catch {
            // Numbers are finite where payloads are created: `PayloadValue.number` is, and others are whole.
            preconditionFailure(
                "\(Self.self) cannot be encoded: \(error). Create its numbers with PayloadValue(number).")
        }
    }
}

/// A number, flag or text of a payload.
public enum PayloadValue: Hashable, Sendable, Codable {
    /// A finite number. ``init(_:)-(Double)`` checks it.
    case number(Double)
    /// A state.
    case flag(Bool)
    /// A text of at most ``textLimit`` characters.
    case text(String)

    /// The largest number of characters of a text.
    public static let textLimit = 1_024

    /// Creates a number; `nil` if it is not finite, which JSON cannot express.
    public init?(_ number: Double) {
        guard number.isFinite else { return nil }
        self = .number(number)
    }

    /// Creates a text, shortened to ``textLimit`` characters.
    public init(_ text: String) { self = .text(String(text.prefix(Self.textLimit))) }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    /// Encodes a number, `true` or `false`, or a text. A number that JSON does not have becomes a text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .number(let number) where number.isFinite: try container.encode(number)
        case .number(let number): try container.encode("\(number)")
        case .flag(let flag): try container.encode(flag)
        case .text(let text): try container.encode(text)
        }
    }
}

/// Times in payloads.
public enum PayloadTime {
    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// A time in the form of RFC 3339, in UTC with milliseconds, such as `2026-03-01T12:00:00.000Z`.
    public static func text(_ date: Date) -> String {
        // The year has four digits in RFC 3339.
        let seconds = min(max(date.timeIntervalSince1970, 0), 253_402_300_799)
        // The style cuts off what is less than a millisecond: a quarter of one keeps the rounded number above its lower end.
        return Date(timeIntervalSince1970: ((seconds * 1_000).rounded() + 0.25) / 1_000).formatted(style)
    }

    /// The time of a text of that form.
    public static func date(_ text: String) -> Date? { text.utf8.count <= 32 ? try? style.parse(text) : nil }
}

/// Bytes in payloads.
public enum PayloadBytes {
    /// The bytes as pairs of hexadecimal digits in lower case.
    public static func text(_ data: Data) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(data.count * 2)
        for byte in data {
            bytes.append(digits[Int(byte >> 4)])
            bytes.append(digits[Int(byte & 0xF)])
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes of pairs of hexadecimal digits of either case; `nil` for another text.
    public static func data(_ text: String) -> Data? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var data = Data(capacity: digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else { return nil }
            data.append(high << 4 | low)
        }
        return data
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Texts from the air in payloads.
enum PayloadText {
    /// A name without control and format characters, of at most 248 characters; `nil` if nothing remains.
    static func name(_ text: String?) -> String? {
        guard let text else { return nil }
        let clean = String(String.UnicodeScalarView(text.unicodeScalars.prefix(1_000).filter(isVisible)).prefix(248))
        return clean.isEmpty ? nil : clean
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
        default: true
        }
    }
}
