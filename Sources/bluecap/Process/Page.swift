/// The space for lines, and how they are drawn there: all that tables, plots and trees need of the terminal.
struct Page: Sendable {
    typealias Part = (text: String, tints: [Tint])

    /// In cells.
    var width = Int.max
    /// The greatest number of lines; `nil` for no limit.
    var height: Int?
    var isColoured: Bool
    var glyphs: Glyphs

    func cut(_ text: String, to cells: Int) -> String {
        DisplayText.cut(text, to: cells, ellipsis: glyphs.ellipsis)
    }

    func line(_ text: String, _ tint: Tint) -> StyledLine { line([(cut(text, to: width), [tint])]) }

    func line(_ parts: [Part]) -> StyledLine {
        var line = StyledLine()
        line.isColoured = isColoured
        for (text, tints) in parts { line.append(text, tints) }
        return line
    }

    /// The lines of a text that is wider than the page: broken before words, and indented from the second one on.
    func wrapped(_ parts: [Part], below indent: Part) -> [StyledLine] {
        guard parts.reduce(0, { $0 + DisplayText.width($1.text) }) > width else { return [line(parts)] }
        var (lines, used): ([[Part]], Int) = ([[]], 0)
        for (text, tints) in parts {
            var rest = text[...]
            while !rest.isEmpty {
                let end = rest.drop { $0 == " " }.firstIndex(of: " ") ?? rest.endIndex
                var word = String(rest[..<end])
                rest = rest[end...]
                if used + DisplayText.width(word) > width, used > DisplayText.width(indent.text) {
                    lines.append([indent])
                    used = DisplayText.width(indent.text)
                    word = String(word.drop { $0 == " " })
                }
                used += DisplayText.width(word)
                lines[lines.count - 1].append((word, tints))
            }
        }
        return lines.map(line)
    }

    /// The parts of a line, cut to the width of the page.
    func fitted(_ parts: [Part]) -> [Part] {
        var rest = width
        return parts.compactMap { text, tints in
            guard rest > 0 else { return nil }
            let (cells, cut) = (DisplayText.width(text), self.cut(text, to: rest))
            rest = cells > rest ? 0 : rest - cells
            return (cut, tints)
        }
    }

    /// The line of the entry that is selected, across the page.
    func selected(_ parts: [Part]) -> StyledLine {
        // Without colours, too, the entry is drawn in reverse: a terminal can do that.
        let width = parts.reduce(0) { $0 + DisplayText.width($1.text) }
        return line(
            parts.map { ($0.text, $0.tints.filter { $0 == .bold } + [.reverse]) }
                + [(String(repeating: " ", count: max(0, self.width - width)), [.reverse])])
    }

    /// The space for the body of a frame, whose last line is the status, and the one before it the notice if there is one.
    func rows(beside notice: String?) -> Int? { height.map { $0 - (notice == nil ? 1 : 2) } }

    /// - Parameters:
    ///   - status: The parts of the last line.
    ///   - summary: The last line at the end, instead of the status.
    func frame(_ body: [StyledLine], notice: String?, status: [String], summary: String?) -> [StyledLine] {
        let status = (status + ["Ctrl-C ends"]).joined(separator: glyphs.separator)
        return body + (notice.map { [line($0, .yellow)] } ?? []) + [
            summary.map { line($0, .bold) } ?? line(status, .dim)
        ]
    }
}
