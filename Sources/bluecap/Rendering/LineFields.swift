/// What --csv and --format print lines of.
protocol LineFields: SendableMetatype {
    /// The columns of comma-separated values.
    static var header: String { get }
    /// The fields of a text, in addition to `field:NAME`.
    static var fields: [String] { get }
}

extension LineFields {
    static var placeholders: String { (fields + ["field:NAME"]).map { "{\($0)}" }.joined(separator: ", ") }
}

extension Format {
    /// Returns comma-separated values as RFC 4180 has them.
    static func row(_ cells: [String]) -> String {
        cells.map(DisplayText.safe).map { text in
            text.contains { ",\"".contains($0) } ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
        }.joined(separator: ",")
    }

    /// Returns a text with the values of its fields; one without a value is empty.
    static func fill(_ text: String, _ values: [String: String]) -> String {
        text.replacing(/\{([^{}]*)\}/) { DisplayText.safe(values[String($0.1)] ?? "") }
    }
}
