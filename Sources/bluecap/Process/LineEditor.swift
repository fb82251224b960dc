/// A line of text that is typed, with a cursor.
struct LineEditor: Equatable, Sendable {
    private(set) var text: String
    /// The number of characters before the cursor.
    private(set) var cursor: Int

    init(_ text: String = "") { (self.text, cursor) = (text, text.count) }

    /// Returns whether the key has changed the line or moved the cursor.
    mutating func press(_ key: Key) -> Bool {
        let place = text.index(text.startIndex, offsetBy: cursor)
        switch key {
        case .character(let character):
            let count = text.count
            text.insert(character, at: place)
            // A combining mark becomes a part of the character before it.
            cursor += text.count - count
        case .backspace where cursor > 0:
            text.remove(at: text.index(before: place))
            cursor -= 1
        case .delete where cursor < text.count: text.remove(at: place)
        case .clear:
            text.removeSubrange(..<place)
            cursor = 0
        case .deleteRest: text.removeSubrange(place...)
        case .deleteWord:
            while text.prefix(cursor).last == " " { _ = press(.backspace) }
            while let last = text.prefix(cursor).last, last != " " { _ = press(.backspace) }
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(text.count, cursor + 1)
        case .home: cursor = 0
        case .end: cursor = text.count
        default: return false
        }
        return true
    }

    /// The part of the line that fits in so many cells, and the cells before the cursor in it.
    func window(_ cells: Int) -> (text: String, cursor: Int) {
        var shown = text.prefix(cursor)
        while DisplayText.width(String(shown)) >= max(1, cells), !shown.isEmpty { shown.removeFirst() }
        let before = DisplayText.width(String(shown))
        var rest = text.dropFirst(cursor)
        while before + DisplayText.width(String(rest)) > cells, !rest.isEmpty { rest.removeLast() }
        return (String(shown + rest), before)
    }
}
