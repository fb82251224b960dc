/// Writes metrics in Prometheus' text format, version 0.0.4.
struct PrometheusText {
    static let type = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// Begins a metric. All its samples follow before the next metric begins.
    mutating func begin(_ name: String, _ kind: String) {
        if let help = GatewayMetric.help[name] {
            let escaped = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
            text += "# HELP \(name) \(escaped)\n"
        }
        text += "# TYPE \(name) \(kind)\n"
    }

    /// Adds a sample.
    ///
    /// - Parameter labels: Names and values. Names are valid; values are escaped here.
    mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
        text += name
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",") + "}"
        }
        text += " \(Self.number(value))\n"
    }

    /// Adds a metric of one sample.
    mutating func add(_ name: String, _ kind: String, _ value: Double) {
        begin(name, kind)
        sample(name, [], value)
    }

    private static func escaped(_ value: String) -> String {
        var result = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            // The format ends lines with LF only, but parsers exist that end them with CR too.
            case "\r": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), abs(value) < 1e15 { return "\(Int64(value))" }
        return "\(value)"
    }

    /// Returns a name of a metric: letters, digits, `_` and `:`, of which the first is not a digit.
    static func metricName(_ label: String) -> String {
        sanitized(label) { $0 == ":" }
    }

    /// Returns a name of a label: letters, digits and `_`, of which the first is not a digit. Names with two leading
    /// underscores are reserved, and `le` and `quantile` have a meaning of their own.
    static func labelName(_ name: String) -> String {
        var result = sanitized(name) { _ in false }
        while result.hasPrefix("__") { result.removeFirst() }
        return result == "le" || result == "quantile" ? result + "_" : result
    }

    private static func sanitized(_ text: String, allowing isAllowed: (Unicode.Scalar) -> Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(200) {
            switch scalar {
            case "a"..."z", "A"..."Z", "_": result.unicodeScalars.append(scalar)
            case "0"..."9":
                if result.isEmpty { result = "_" }
                result.unicodeScalars.append(scalar)
            default: result.unicodeScalars.append(isAllowed(scalar) ? scalar : "_")
            }
        }
        return result.isEmpty ? "_" : result
    }
}
