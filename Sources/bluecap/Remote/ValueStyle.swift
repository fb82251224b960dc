import ArgumentParser
import BlueCapKit
import Foundation

/// How the lines of values are printed.
struct ValueStyle: Sendable {
    /// Other lines: an object, a row for each field of a value, or a text with placeholders, such as `{value}`.
    enum Template: Sendable { case json, csv, text(String) }

    static let header = "time,name,field,value,unit"
    private static let placeholders = ["{time}", "{clock}", "{name}", "{handle}", "{value}", "{hex}"]

    var form = ValueForm.auto
    var template: Template?
    /// Whether values need no form to be printed.
    var isJSON: Bool { if case .json? = template { true } else { false } }
    /// By their handles. One attribute needs no name, unless the lines of other commands are between.
    var names: [UInt32: String] = [:]
    var isNamed = false

    @Sendable static func template(_ text: String) throws -> Template {
        let names = text.matches(of: /\{[^{}]*\}/).map { String($0.0) }
        guard let name = names.first(where: { !placeholders.contains($0) && !$0.hasPrefix("{field:") }) else {
            return .text(text.replacing("\\t", with: "\t"))
        }
        throw ValidationError("There is no \(name): it takes \(placeholders.joined(separator: ", ")), {field:NAME}.")
    }

    /// Returns the line of a value for people, or that of the template.
    ///
    /// - Parameter date: When it arrived; `nil` if that is now, and no part of the usual line.
    func line(
        of value: AttributeValue, _ attribute: any TreeAttribute, _ date: Date?, in timeZone: TimeZone = .local
    ) -> String {
        let label = names[attribute.handle] ?? attribute.label
        let handle = AttributeArgument.text(of: attribute.handle)
        let name = DisplayText.safe(names.values.count { $0 == label } > 1 ? "\(label) \(handle)" : label)
        let (time, clock) = (Wording.timestamp(date ?? Date()), Wording.clock(date ?? Date(), in: timeZone))
        let text = form.line(of: value)
        let isQuoted = form == .auto && value.fields.isEmpty && text.hasPrefix("\"")
        let plain = isQuoted ? String(text.dropFirst().dropLast()) : text
        switch template {
        case nil: return "\(date == nil ? "" : clock + "  ")\(isNamed || names.count > 1 ? name + "  " : "")\(text)"
        case .csv:
            let fields = form == .auto || form == .profile ? value.fields : []
            let rows =
                fields.isEmpty ? [["", plain, ""]] : fields.map { [$0.name, $0.number, $0.quantity?.unit ?? ""] }
            return rows.map { ([time, name] + $0).map(Self.cell).joined(separator: ",") }.joined(separator: "\n")
        case .json: return JSON(attribute.identity + form.members(of: value)).text
        case .text(let template):
            var texts = ["time": time, "clock": clock, "name": name, "handle": handle, "value": plain]
            texts["hex"] = value.data.hexStringValue()
            for field in value.fields { texts["field:" + field.name] = DisplayText.safe(field.number) }
            return template.replacing(/\{([^{}]*)\}/) { texts[String($0.1)] ?? "" }
        }
    }

    /// As RFC 4180 has it.
    private static func cell(_ text: String) -> String {
        let text = DisplayText.safe(text)
        return text.contains { ",\"".contains($0) } ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
    }
}
