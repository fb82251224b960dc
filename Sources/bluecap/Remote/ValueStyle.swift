import BlueCapKit
import Foundation

/// How the lines of values are printed.
struct ValueStyle: LineFields, Sendable {
    static let header = "time,name,field,value,unit"
    static let fields = ["time", "clock", "name", "handle", "value", "hex"]

    var form = ValueForm.auto
    /// Other lines than the usual ones.
    var template: Format?
    /// Whether values need no form to be printed.
    var isJSON: Bool { template == .json }
    /// By their handles. One attribute needs no name, unless the lines of other commands are between.
    var names: [UInt32: String] = [:]
    var isNamed = false

    /// The name of one of several attributes, with its handle if others have the same name; safe to print.
    func name(of attribute: any TreeAttribute) -> String {
        let label = names[attribute.handle] ?? attribute.label
        let isAmbiguous = names.values.count { $0 == label } > 1
        return DisplayText.safe(isAmbiguous ? "\(label) \(AttributeArgument.text(of: attribute.handle))" : label)
    }

    /// Returns the line of a value for people, or that of the template.
    ///
    /// - Parameter date: When it arrived; `nil` if that is now, and no part of the usual line.
    func line(
        of value: AttributeValue, _ attribute: any TreeAttribute, _ date: Date?, in timeZone: TimeZone = .local
    ) -> String {
        let (name, handle) = (name(of: attribute), AttributeArgument.text(of: attribute.handle))
        let (time, clock) = (Wording.timestamp(date ?? Date()), Wording.clock(date ?? Date(), in: timeZone))
        let text = form.line(of: value)
        let isQuoted = form == .auto && value.fields.isEmpty && text.hasPrefix("\"")
        let plain = isQuoted ? String(text.dropFirst().dropLast()) : text
        switch template {
        case nil, .table, .lines:
            return "\(date == nil ? "" : clock + "  ")\(isNamed || names.count > 1 ? name + "  " : "")\(text)"
        case .csv:
            let fields = form == .auto || form == .profile ? value.fields : []
            let rows =
                fields.isEmpty ? [["", plain, ""]] : fields.map { [$0.name, $0.number, $0.quantity?.unit ?? ""] }
            return rows.map { Format.row([time, name] + $0) }.joined(separator: "\n")
        case .json: return JSON(attribute.identity + form.members(of: value)).text
        case .text(let template):
            var texts = ["time": time, "clock": clock, "name": name, "handle": handle, "value": plain]
            texts["hex"] = value.data.hexStringValue()
            for field in value.fields { texts["field:" + field.name] = field.number }
            return Format.fill(template, texts)
        }
    }
}
