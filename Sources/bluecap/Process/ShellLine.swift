import BlueCapKit
import Foundation

/// The line that is typed in `bluecap shell`, and the lines before it.
struct ShellLine: Equatable, Sendable {
    private(set) var editor = LineEditor()
    /// The newest last.
    private(set) var history: [String]
    /// That of the line of the history that is shown.
    private var place: Int
    /// What was typed before a line of the history was shown.
    private var draft = ""

    init(history: [String] = []) { (self.history, place) = (history, history.count) }

    mutating func press(_ key: Key) {
        if key == .up || key == .down {
            if place == history.count { draft = editor.text }
            // Of the lines that begin as the typed one.
            let next =
                key == .up
                ? history[..<place].lastIndex { $0.hasPrefix(draft) } ?? place
                : history.indices.first { $0 > place && history[$0].hasPrefix(draft) } ?? history.count
            place = next
            editor = LineEditor(place < history.count ? history[place] : draft)
        } else if editor.press(key) {
            place = history.count
        }
    }

    /// Returns the line, which becomes a part of the history, and begins an empty one.
    mutating func take() -> String {
        defer { self = ShellLine(history: ShellHistory.adding(editor.text, to: history)) }
        return editor.text
    }

    mutating func clear() { self = ShellLine(history: history) }

    /// Completes the word before the cursor as far as one of the candidates, or all of them, continue it.
    ///
    /// - Parameter candidates: Returns those that can follow words.
    /// - Returns: The candidates, if the word can mean several and was not changed.
    mutating func complete(_ candidates: ([String]) -> [String]) -> [String] {
        let before = editor.text.prefix(editor.cursor)
        let scan = ShellWords(before)
        var words = scan.words
        let isNew = !scan.isOpen && before.last?.isWhitespace != false
        let last = (isNew ? nil : words.popLast()) ?? .init(start: editor.cursor)
        let found = candidates(words.map(\.text)).filter { $0.lowercased().hasPrefix(last.text.lowercased()) }
        guard let first = found.first else { return [] }
        let common = found.reduce(first) { $0.commonPrefix(with: $1, options: .caseInsensitive) }
        guard found.count == 1 || common.count > last.text.count else { return found }
        var text = ShellWords.quoted(common)
        if found.count == 1 { text += " " } else if text.hasPrefix("\"") { text.removeLast() }
        for _ in last.start..<editor.cursor { _ = editor.press(.backspace) }
        for character in text { _ = editor.press(.character(character)) }
        return []
    }
}

/// The lines that were typed in `bluecap shell`.
struct ShellHistory: KeptState {
    static let folder = "shell"
    static let version = 1
    private static let mostLines = 500

    /// The newest last.
    private(set) var lines: [String] = []

    static var file: SharedStateFile<ShellHistory> { SharedStateFile("history") }

    mutating func add(_ line: String) { lines = Self.adding(line, to: lines) }

    /// A line that begins with a space is not kept, nor one that repeats the line before it.
    static func adding(_ line: String, to lines: [String]) -> [String] {
        guard !line.isEmpty, !line.hasPrefix(" "), line != lines.last else { return lines }
        return (lines + [line]).suffix(mostLines)
    }
}
