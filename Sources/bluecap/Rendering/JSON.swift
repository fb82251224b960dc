import BlueCapKit
import Foundation

/// A JSON value on one line (RFC 8259), written as `["event": JSON(name), "rssi": JSON(rssi)]`.
///
/// An object's members keep their order, since people read these lines too; Foundation's encoders do not keep it.
struct JSON: Equatable, Sendable, ExpressibleByDictionaryLiteral {
    typealias Members = [(String, JSON)]

    let text: String

    static let null = JSON(text: "null")

    private init(text: String) { self.text = text }

    init(_ value: String?) { text = value.map(Self.quoted) ?? "null" }
    init(_ value: (some BinaryInteger)?) { text = value.map { "\($0)" } ?? "null" }
    init(_ value: Bool?) { text = value.map { "\($0)" } ?? "null" }
    init(_ values: [JSON]) { text = "[\(values.map(\.text).joined(separator: ","))]" }
    init(_ values: [String]) { self.init(values.map { JSON($0) }) }
    init(_ bytes: Data) { self.init(bytes.hexStringValue()) }

    /// A number; `null` if it is not finite.
    init(number: Double) {
        text = !number.isFinite ? "null" : Int(exactly: number).map { "\($0)" } ?? "\(number)"
    }

    /// A number in decimal digits; `null` if it is not finite.
    init(digits: String) { text = Double(digits)?.isFinite == true ? digits : "null" }

    /// A number of seconds, to the millisecond.
    init(seconds: Double) {
        let milliseconds = Int((seconds * 1000).rounded())
        text = "\(milliseconds / 1000).\(String(1000 + milliseconds % 1000).dropFirst())"
    }

    init(_ members: Members) {
        text = "{\(members.map { "\(Self.quoted($0.0)):\($0.1.text)" }.joined(separator: ","))}"
    }

    init(dictionaryLiteral members: (String, JSON)...) { self.init(members) }

    /// An object of bytes, in ascending order of its keys.
    init<Identifier>(_ data: [Identifier: Data], key: (Identifier) -> String) {
        self.init(data.map { (key($0.key), JSON($0.value)) }.sorted { $0.0 < $1.0 })
    }

    /// A JSON string (RFC 8259, section 7) with exactly this text.
    ///
    /// Beyond what the RFC requires, line separators, direction marks, excess marks and the like are escaped too: a name
    /// comes from outside, and must not disturb the terminal that shows the line.
    static func quoted(_ text: String) -> String {
        var result = "\""
        DisplayText.forEachScalar(of: text) { scalar, isPrinted in
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where !isPrinted:
                for unit in String(scalar).utf16 { result += String(format: "\\u%04x", Int(unit)) }
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
