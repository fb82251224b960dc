/// Texts that a person has written, in errors.
enum EditedText {
    /// A text in quotation marks, with at most 60 characters.
    static func quoted(_ text: String) -> String {
        let shown = String(text.unicodeScalars.prefix(60).map { isControl($0) ? "\u{FFFD}" : Character($0) })
        return "\"\(shown)\(text.unicodeScalars.count > 60 ? "…" : "")\""
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: true
        default: false
        }
    }

    /// The candidate that differs from a text in the fewest characters, if these are at most a third of it, or two.
    static func nearest(to text: String, of candidates: [String]) -> String? {
        let wanted = Array(text.lowercased().prefix(64))
        let distances = candidates.map { ($0, distance(wanted, Array($0.lowercased()))) }
        guard let best = distances.min(by: { $0.1 < $1.1 }), best.1 <= max(2, wanted.count / 3), best.1 < best.0.count
        else { return nil }
        return best.0
    }

    // Levenshtein's distance.
    private static func distance(_ one: [Character], _ other: [Character]) -> Int {
        var row = Array(0...other.count)
        for (index, character) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (position, candidate) in other.enumerated() {
                let replaced = diagonal + (character == candidate ? 0 : 1)
                diagonal = row[position + 1]
                row[position + 1] = min(replaced, row[position] + 1, row[position + 1] + 1)
            }
        }
        return row[other.count]
    }
}
