/// A line of `bluecap shell`, cut into words.
///
/// Words are separated by spaces. Quotation marks enclose a word with spaces; in `"…"` a backslash precedes a mark that is
/// meant. `#` begins a comment, unless it is a part of a word.
struct ShellWords: Equatable, Sendable {
    struct Word: Equatable, Sendable {
        var text = ""
        /// The number of characters of the line before it.
        var start: Int
        var isQuoted = false
    }

    private(set) var words: [Word] = []
    /// Whether a quotation mark is not closed.
    private(set) var isOpen = false

    init(_ line: some StringProtocol) {
        var mark: Character?
        var (isInWord, isEscaped) = (false, false)
        for (place, character) in line.enumerated() {
            let isSpace = mark == nil && character.isWhitespace
            if !isSpace, !isInWord {
                if character == "#" { break }
                words.append(Word(start: place))
            }
            isInWord = !isSpace
            guard isInWord else { continue }
            let last = words.count - 1
            if !isEscaped, mark == "\"", character == "\\" {
                isEscaped = true
            } else if !isEscaped, character == mark {
                mark = nil
            } else if mark == nil, character == "\"" || character == "'" {
                (mark, words[last].isQuoted) = (character, true)
            } else {
                words[last].text.append(character)
                isEscaped = false
            }
        }
        isOpen = mark != nil
    }

    /// Returns a text as one word.
    static func quoted(_ text: String) -> String {
        guard text.isEmpty || text.contains(where: { " \"'\\#".contains($0) }) else { return text }
        return "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
}
