import BlueCapKit
import Foundation

/// A number that a value contains, with its unit.
struct Quantity: Equatable, Sendable {
    var number: Double
    /// Empty if it has none.
    var unit: String

    /// Returns the numbers of a value with the names of their series.
    ///
    /// They are those of the fields that the profile decodes and that begin with a number, such as "72 bpm". A value that no
    /// profile decodes, of one, two, four or eight bytes, is taken for an unsigned number in little-endian order, which
    /// characteristics of GATT use (Core Specification 5.4, volume 3, part G, 2.4).
    ///
    /// Without `raw`, a number such as "xRaw" is left out beside "x". The `label` is the characteristic's name or UUID.
    static func all(in value: AttributeValue, label: String, raw: Bool) -> [(series: String, quantity: Quantity)] {
        guard value.fields.isEmpty else {
            let twins = raw ? [] : value.fields.map { $0.name + "Raw" }
            return value.fields.compactMap { field in
                guard !twins.contains(field.name), let quantity = Quantity(field.text) else { return nil }
                let isAlone = value.isWhole || label.hasPrefix(field.name)
                return (isAlone ? (value.isWhole ? label : field.name) : "\(label) \(field.name)", quantity)
            }
        }
        guard [1, 2, 4, 8].contains(value.data.count) else { return [] }
        let number = value.data.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return [(label, Quantity(number: Double(number), unit: ""))]
    }

    init(number: Double, unit: String) { (self.number, self.unit) = (number, unit) }

    /// Reads "72 bpm", "21.5°C", "-3": a number, and after it nothing but a unit. A date, or a list of numbers, is `nil`.
    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([^\d\s:.,+-][^\s:,]*)?/),
            let number = Double(match.1), number.isFinite
        else { return nil }
        self.init(number: number, unit: match.2.map(String.init) ?? "")
    }

    /// A number in as few digits as it needs: "72", "21.5", "3.142".
    static func text(_ number: Double) -> String {
        guard abs(number) < 1e7 else { return String(format: "%.3g", number) }
        let digits = abs(number) < 10 ? 3 : abs(number) < 100 ? 2 : 1
        var text = String(format: "%.\(digits)f", number)
        while text.last == "0" { text.removeLast() }
        if text.last == "." { text.removeLast() }
        return text == "-0" ? "0" : text
    }

    /// `{"value":72,"unit":"bpm"}`
    var json: JSON { ["value": JSON(number: number), "unit": JSON(unit.isEmpty ? nil : unit)] }

    /// "72 bpm".
    var text: String { Self.text(number) + (unit.isEmpty ? "" : " " + unit) }
}
