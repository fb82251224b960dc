import Foundation

/// Reads the parts of a string form, with their units or without.
package struct TextFields {
    private let texts: [String: String]

    package init(_ texts: [String: String]) { self.texts = texts }

    /// Returns the string form of numbers that have a key each.
    package static func texts<Number: FixedWidthInteger>(_ numbers: [Number], _ keys: [String]) -> [String: String] {
        Dictionary(uniqueKeysWithValues: zip(keys, numbers.map { "\($0)" }))
    }

    /// Returns an optional part: `.some(nil)` if it is missing, and `nil` if it is not a valid text.
    package func optional<Value>(_ key: String, _ read: (TextFields, String) -> Value?) -> Value?? {
        guard texts[key] != nil else { return .some(nil) }
        return read(self, key).map { .some($0) }
    }

    /// Returns the text without the unit, or `nil` if the part is missing.
    package func text(_ key: String, unit: String = "") -> String? {
        guard let text = texts[key]?.trimmingCharacters(in: .whitespaces) else { return nil }
        guard !unit.isEmpty, text.hasSuffix(unit) else { return text }
        return text.dropLast(unit.count).trimmingCharacters(in: .whitespaces)
    }

    package func number<Number: FixedWidthInteger>(_ key: String, unit: String = "", radix: Int = 10) -> Number? {
        integer(key, unit: unit, radix: radix).flatMap { Number(exactly: $0) }
    }

    /// Not generic, so that the numbers of all sizes share its code. None of them has 64 bits.
    private func integer(_ key: String, unit: String, radix: Int) -> Int? {
        text(key, unit: unit).flatMap { Int($0, radix: radix) }
    }

    /// Returns the number that a text is.
    package static func number<Number: FixedWidthInteger>(_ text: String) -> Number? {
        Int(text).flatMap { Number(exactly: $0) }
    }

    /// Returns the numbers of these parts, without those that are missing or invalid.
    package func numbers<Number: FixedWidthInteger>(of keys: [String], radix: Int = 10) -> [Number] {
        keys.compactMap { number($0, radix: radix) }
    }

    /// Returns the numbers of one part, which has blanks between them.
    package func numbers<Number: FixedWidthInteger>(in key: String) -> [Number]? {
        guard let words = text(key)?.split(separator: " ") else { return nil }
        let numbers = words.compactMap { Int($0).flatMap { Number(exactly: $0) } }
        return numbers.count == words.count ? numbers : nil
    }

    /// Returns the transmitted number of a quantity.
    package func scaled<Number: ScalableNumber>(_ key: String, unit: String, stepsPerUnit: Double) -> Number? {
        text(key, unit: unit).flatMap { Double($0) }.flatMap { Number(nearest: $0 * stepsPerUnit) }
    }

    /// Returns whether a part is `"Yes"` and not `"No"`.
    package func flag(_ key: String) -> Bool? {
        switch text(key)?.lowercased() {
        case "yes": true
        case "no": false
        default: nil
        }
    }
}
