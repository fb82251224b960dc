/// Text as a terminal shows it: what is safe to print, how many cells it takes, how to cut and pad it.
enum DisplayText {
    /// The number of combining marks of one character that are printed. Languages need fewer; more would cover other lines.
    static let mostMarks = 8

    /// The number of bytes in UTF-8 of a device's name that are printed: the longest name that a device can have (Core
    /// Specification 5.3, volume 4, part E, 7.3.11).
    static let longestName = 248

    /// Whether a scalar is never printed unchanged, except in the flag of a region.
    static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        // The joiner is a part of emoji.
        guard scalar.value != 0x200D else { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: return true
        default: return false
        }
    }

    /// Calls `body` with each scalar of the text, and with whether it is printed as it is. If not, it could move the cursor,
    /// change colours or the direction of the text, is invisible, or is a combining mark too many.
    static func forEachScalar(of text: String, _ body: (_ scalar: Unicode.Scalar, _ isPrinted: Bool) -> Void) {
        for character in text {
            let scalars = character.unicodeScalars
            let isFlag = isTaggedFlag(scalars)
            var marks = 0
            for scalar in scalars {
                if isUnsafe(scalar) {
                    body(scalar, isFlag && tags.contains(scalar.value))
                } else {
                    if isMark(scalar) { marks += 1 }
                    body(scalar, marks <= mostMarks)
                }
            }
        }
    }

    /// Returns a text that is safe to print: names and values come from outside. Unsafe scalars are written as `\u{202E}`,
    /// and a character keeps its first eight combining marks.
    static func safe(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { return text }
        var result = String.UnicodeScalarView()
        forEachScalar(of: text) { scalar, isPrinted in
            if isPrinted {
                result.append(scalar)
            } else if isUnsafe(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".unicodeScalars
            }
        }
        return String(result)
    }

    /// Returns a text whose lines are safe to print.
    static func lines(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { safe(String($0)) }.joined(separator: "\n")
    }

    /// Returns a device's name that is safe to print, cut to the longest name that a device can have.
    static func name(_ text: String) -> String {
        guard text.utf8.count > longestName else { return safe(text) }
        var rest = longestName
        func fits(_ bytes: Int) -> Bool {
            rest -= bytes
            return rest >= 0
        }
        let characters = text.prefix { fits($0.utf8.count) }
        guard characters.isEmpty else { return safe(String(characters)) + "…" }
        // A single character is longer than a name.
        rest = longestName
        return safe(String(text.unicodeScalars.prefix { fits($0.utf8.count) })) + "…"
    }

    /// Whether it is the flag of a region, the one emoji that has tags: a black flag, up to six tags, and the last tag
    /// (Unicode Technical Standard 51, annex C).
    private static func isTaggedFlag(_ scalars: Character.UnicodeScalarView) -> Bool {
        guard scalars.first?.value == 0x1F3F4, scalars.last?.value == tags.upperBound else { return false }
        return scalars.count <= 8 && scalars.dropFirst().allSatisfy { tags.contains($0.value) }
    }

    private static let tags: ClosedRange<UInt32> = 0xE0020...0xE007F

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .spacingMark: true
        default: false
        }
    }

    /// Returns the number of cells that the text takes in a terminal.
    static func width(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// Returns the number of cells that one character takes: 0, 1 or 2.
    static func width(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        guard let first = scalars.first else { return 0 }
        if first.isASCII { return scalars.contains("\u{FE0F}") ? 2 : 1 }
        if first.properties.isEmojiPresentation || scalars.contains("\u{FE0F}") { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return wideRanges.contains { $0.contains(first.value) } ? 2 : 1
        }
    }

    /// Returns the text cut to at most `cells`, with an ellipsis if something was cut.
    static func cut(_ text: String, to cells: Int, ellipsis: String = "…") -> String {
        guard width(text) > cells else { return text }
        let limit = cells - width(ellipsis)
        guard limit > 0 else { return String(ellipsis.prefix(max(cells, 0))) }
        var result = ""
        var used = 0
        for character in text {
            used += width(character)
            guard used <= limit else { break }
            result.append(character)
        }
        while result.last == " " { result.removeLast() }
        return result + ellipsis
    }

    /// Returns the text with spaces after it, or before it, up to `cells`.
    static func padded(_ text: String, to cells: Int, alignment: Alignment = .leading) -> String {
        let space = String(repeating: " ", count: max(0, cells - width(text)))
        return alignment == .leading ? text + space : space + text
    }

    enum Alignment: Sendable { case leading, trailing }

    /// East Asian wide and fullwidth (Unicode Standard Annex 11), in blocks.
    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
        0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x1F300...0x1F320, 0x20000...0x3FFFD,
    ]
}
