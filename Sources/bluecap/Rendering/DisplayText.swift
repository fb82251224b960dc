/// Text as a terminal shows it: what is safe to print, how many cells it takes, how to cut and pad it.
enum DisplayText {
    /// Whether a scalar could move the cursor, change colours, or turn the direction of the text around.
    static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x200D, 0xE0020...0xE007F: false  // joiner and tags: parts of emoji
        default:
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
            default: false
            }
        }
    }

    /// The text with every unsafe scalar replaced by U+FFFD: names come from whoever advertises.
    static func safe(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { result.append(isUnsafe(scalar) ? "\u{FFFD}" : scalar) }
        return String(result)
    }

    /// How many cells the text takes in a terminal.
    static func width(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// How many cells one character takes: 0, 1 or 2.
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

    /// The text cut to at most `cells`, with an ellipsis where something was cut.
    static func cut(_ text: String, to cells: Int, ellipsis: String = "…") -> String {
        guard width(text) > cells else { return text }
        let room = cells - width(ellipsis)
        guard room > 0 else { return String(ellipsis.prefix(max(cells, 0))) }
        var result = ""
        var used = 0
        for character in text {
            used += width(character)
            guard used <= room else { break }
            result.append(character)
        }
        while result.last == " " { result.removeLast() }
        return result + ellipsis
    }

    /// The text with spaces behind it, or before it, up to `cells`.
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
