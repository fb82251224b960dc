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
        switch code {
        case 9: self = .tab
        case 12: self = .redraw
        case 21: self = .clear
        case 27: self = .escape
        case CTERMINAL_UP: self = .up
        case CTERMINAL_DOWN: self = .down
        case CTERMINAL_LEFT: self = .left
        case CTERMINAL_RIGHT: self = .right
        case CTERMINAL_HOME: self = .home
        case CTERMINAL_END: self = .end
        case CTERMINAL_PAGE_UP: self = .pageUp
        case CTERMINAL_PAGE_DOWN: self = .pageDown
        case CTERMINAL_BACKSPACE: self = .backspace
        case CTERMINAL_DELETE: self = .delete
        case CTERMINAL_ENTER: self = .enter
        case CTERMINAL_BACK_TAB: self = .backTab
        case CTERMINAL_CLICK: self = .click(row: row)
        case CTERMINAL_DOUBLE_CLICK: self = .doubleClick(row: row)
        case CTERMINAL_WHEEL_UP: self = .wheelUp
        case CTERMINAL_WHEEL_DOWN: self = .wheelDown
        default:
            guard code >= 32, let scalar = Unicode.Scalar(UInt32(code)) else { return nil }
            self = .character(Character(scalar))
        }
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

    /// Calls `body` when something was typed, and again only after ``InputWatch/proceed()``.
    static func watchInput(_ body: @escaping @Sendable () -> Void) -> InputWatch {
        let watch = InputWatch()
        Thread.detachNewThread {
            while true {
                var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                if poll(&entry, 1, -1) < 0 {
                    guard errno == EINTR else { return }
                    continue
                }
                // A terminal that is closed ends the command with a signal.
                guard entry.revents & Int16(POLLIN) != 0 else { return }
                body()
                watch.wait()
            }
        }
        return watch
    }
}

/// Lets the thread that waits for input continue when the keys are read.
final class InputWatch: Sendable {
    private let isRead = DispatchSemaphore(value: 0)

    func proceed() { isRead.signal() }
    fileprivate func wait() { isRead.wait() }
}
