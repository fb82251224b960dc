import BlueCapKit
import CBlueCapTerminal
import Foundation

/// A key of the keyboard, or an action of the mouse.
enum Key: Equatable, Sendable {
    case character(Character)
    case up, down, left, right, home, end, pageUp, pageDown
    case enter, escape, tab, backTab, backspace, delete
    /// Control and `U`, which removes the text before the cursor in a shell.
    case clear
    /// Control and `K` or `W`, which remove the text after the cursor, or the word before it.
    case deleteRest, deleteWord
    /// Control and `C`, `D` or `Z` in a shell.
    case interrupt, endOfInput, stop
    /// Control and `L`, which draws the screen again.
    case redraw
    case click(row: Int), doubleClick(row: Int), wheelUp, wheelDown

    /// - Parameter code: As `cterminal_key` returns it. A key without a use is `nil`.
    fileprivate init?(_ code: Int, row: Int) {
        let known: [Int: Key] = [
            9: .tab, 12: .redraw, 21: .clear, 27: .escape, CTERMINAL_UP: .up, CTERMINAL_DOWN: .down,
            CTERMINAL_LEFT: .left, CTERMINAL_RIGHT: .right, CTERMINAL_HOME: .home, CTERMINAL_END: .end,
            CTERMINAL_PAGE_UP: .pageUp, CTERMINAL_PAGE_DOWN: .pageDown, CTERMINAL_BACKSPACE: .backspace,
            CTERMINAL_DELETE: .delete, CTERMINAL_ENTER: .enter, CTERMINAL_BACK_TAB: .backTab,
            CTERMINAL_CLICK: .click(row: row), CTERMINAL_DOUBLE_CLICK: .doubleClick(row: row),
            CTERMINAL_WHEEL_UP: .wheelUp, CTERMINAL_WHEEL_DOWN: .wheelDown,
        ]
        let scalar = code < 32 ? nil : Unicode.Scalar(UInt32(code))
        guard let key = known[code] ?? scalar.map({ .character(Character($0)) }) else { return nil }
        self = key
    }
}

/// The whole terminal, drawn by ncurses, which writes only the cells that have changed.
enum FullScreen {
    /// Whether the screen is open. The lock is held during each use of ncurses, which one thread at a time may use.
    private static let isOpen = Locked(false)

    /// - Throws: ``ToolFailure`` if the terminal cannot draw.
    static func open(_ terminal: Terminal) throws(ToolFailure) {
        guard
            isOpen.withLock({ isOpen in
                isOpen = cterminal_open(terminal.isColoured)
                return isOpen
            })
        else {
            let type = terminal.environment["TERM"].map { "\"\($0)\"" } ?? "not set"
            throw ToolFailure(
                "The terminal's type, TERM, is \(type), which is unknown or cannot move the cursor:",
                "set it to the type of this terminal, such as xterm-256color, or use `bluecap scan`.")
        }
    }

    /// Leaves the terminal as it was. A second call does nothing.
    static func close() {
        isOpen.withLock { isOpen in
            if isOpen { cterminal_close() }
            isOpen = false
        }
    }

    /// Opens the screen again after ``close()``.
    static func reopen() {
        isOpen.withLock { isOpen in
            cterminal_reopen()
            isOpen = true
        }
    }

    /// Draws the lines from the top, and nothing below them.
    ///
    /// - Parameter cursor: Where the cursor is shown; `nil` if it is hidden.
    static func draw(_ lines: [StyledLine], cursor: (row: Int, column: Int)?) {
        isOpen.withLock { isOpen in
            guard isOpen else { return }
            cterminal_erase()
            for (row, line) in lines.enumerated() {
                var column = 0
                for part in line.parts {
                    let colour = part.tints.first { $0.rawValue > 30 }.map { Int32($0.rawValue) - 30 } ?? 0
                    var style = 0
                    if part.tints.contains(.bold) { style |= CTERMINAL_BOLD }
                    if part.tints.contains(.dim) { style |= CTERMINAL_DIM }
                    if part.tints.contains(.reverse) { style |= CTERMINAL_REVERSE }
                    cterminal_draw(Int32(row), Int32(column), part.text, Int32(style), line.isColoured ? colour : 0)
                    column += DisplayText.width(part.text)
                }
            }
            cterminal_show(Int32(cursor?.row ?? 0), Int32(cursor?.column ?? -1))
        }
    }

    /// Adapts to the terminal's present size, and draws everything again with the next frame.
    static func resize() {
        let (width, height) = Terminal.size()
        isOpen.withLock { if $0 { cterminal_resize(Int32(width), Int32(height)) } }
    }

    /// Returns the keys that were pressed since the last call.
    static func keys() -> [Key] {
        isOpen.withLock { isOpen in
            var keys: [Key] = []
            var row: Int32 = 0
            while isOpen {
                let code = Int(cterminal_key(&row))
                if code == CTERMINAL_NO_KEY { break }
                if let key = Key(code, row: Int(row)) { keys.append(key) }
            }
            return keys
        }
    }

    /// Copies a text to the clipboard of the terminal, also over a network: the "OSC 52" of xterm, which most terminals know.
    static func copy(_ text: String) {
        let sequence = "\u{1B}]52;c;\(Data(text.utf8).base64EncodedString())\u{07}"
        isOpen.withLock { if $0 { try? Output.standard.write(sequence) } }
    }

    /// Calls `body` when something was typed, and again only after the source is resumed.
    static func watchInput(_ body: @escaping @Sendable () -> Void) -> any DispatchSourceRead {
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO)
        source.setEventHandler {
            source.suspend()
            body()
        }
        source.resume()
        return source
    }
}
