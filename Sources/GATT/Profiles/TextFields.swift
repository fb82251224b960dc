import Foundation

/// Reads the parts of a string form, with their units or without.
struct TextFields {
    private let texts: [String: String]

    init(_ texts: [String: String]) { self.texts = texts }

    /// A part that may be missing: `.some(nil)` when it is, and `nil` when it is there and not understood.
    func optional<Value>(_ key: String, _ read: (TextFields, String) -> Value?) -> Value?? {
        guard texts[key] != nil else { return .some(nil) }
        return read(self, key).map { .some($0) }
    }

    /// The text without the unit, or `nil` when the part is missing.
    func text(_ key: String, unit: String = "") -> String? {
        guard let text = texts[key]?.trimmingCharacters(in: .whitespaces) else { return nil }
        guard !unit.isEmpty, text.hasSuffix(unit) else { return text }
        return text.dropLast(unit.count).trimmingCharacters(in: .whitespaces)
    }

    func number<Number: FixedWidthInteger>(_ key: String, unit: String = "") -> Number? {
        text(key, unit: unit).flatMap { Number($0) }
    }

    /// Numbers with blanks between them.
    func numbers<Number: FixedWidthInteger>(_ key: String) -> [Number]? {
        guard let words = text(key)?.split(separator: " ") else { return nil }
        let numbers = words.compactMap { Number($0) }
        return numbers.count == words.count ? numbers : nil
    }

    /// A number that is so many steps on the air when it is one in the text.
    func scaled<Number: ScalableNumber>(_ key: String, unit: String, stepsPerUnit: Double) -> Number? {
        text(key, unit: unit).flatMap { Double($0) }.flatMap { Number(nearest: $0 * stepsPerUnit) }
    }

    /// `"Yes"` or `"No"`.
    func flag(_ key: String) -> Bool? {
        switch text(key)?.lowercased() {
        case "yes": true
        case "no": false
        default: nil
        }
    }
}
