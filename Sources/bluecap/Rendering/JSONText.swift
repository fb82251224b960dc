/// Writes one JSON object on one line, its members in the order in which they are given.
///
/// Foundation's encoder keeps no order but the alphabet's, and people read these lines too.
struct JSONObject {
    private(set) var text = "{"

    /// The object, closed.
    var closed: String { text + "}" }

    mutating func add(_ name: String, _ value: String?) { addRaw(name, value.map(JSONText.quoted)) }
    mutating func add(_ name: String, _ value: Int?) { addRaw(name, value.map(String.init)) }
    mutating func add(_ name: String, _ value: Bool?) { addRaw(name, value.map { $0 ? "true" : "false" }) }
    mutating func add(_ name: String, _ value: JSONObject) { addRaw(name, value.closed) }

    mutating func add(_ name: String, _ values: [String]) {
        addRaw(name, "[" + values.map(JSONText.quoted).joined(separator: ",") + "]")
    }

    mutating func add(_ name: String, _ values: [JSONObject]) {
        addRaw(name, "[" + values.map(\.closed).joined(separator: ",") + "]")
    }

    mutating func add(_ name: String, _ values: [Int]) {
        addRaw(name, "[" + values.map(String.init).joined(separator: ",") + "]")
    }

    /// A member that is there and not known.
    mutating func addNull(_ name: String) { addRaw(name, nil) }

    /// A number of seconds, to the millisecond.
    mutating func add(_ name: String, seconds: Double) {
        let milliseconds = Int((seconds * 1000).rounded())
        let fraction = String(1000 + milliseconds % 1000).dropFirst()
        addRaw(name, "\(milliseconds / 1000).\(fraction)")
    }

    private mutating func addRaw(_ name: String, _ value: String?) {
        if text.utf8.count > 1 { text += "," }
        text += JSONText.quoted(name) + ":" + (value ?? "null")
    }
}

enum JSONText {
    /// A JSON string (RFC 8259, section 7).
    ///
    /// It is the text exactly. Beyond what the RFC asks for, line separators, direction marks, marks in excess and the like
    /// are escaped too: a name comes from outside, and must not disturb the terminal that shows the line.
    static func quoted(_ text: String) -> String {
        var result = "\""
        DisplayText.forEachScalar(of: text) { scalar, showing in
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where showing != .asItIs:
                for unit in String(scalar).utf16 { result += "\\u" + hexadecimal(unit) }
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static func hexadecimal(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
