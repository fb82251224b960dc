import Foundation

/// What standard output's terminal can do, from the environment.
struct Terminal: Equatable, Sendable {
    var isTerminal: Bool
    var environment: [String: String]

    static var present: Terminal {
        Terminal(isTerminal: Output.standard.isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    /// Whether a table can be drawn in place.
    var canRedraw: Bool { isTerminal && environment["TERM"] != "dumb" }

    /// Whether colours are used: unless the user disables them (no-color.org).
    var isColoured: Bool { canRedraw && (environment["NO_COLOR"] ?? "").isEmpty }

    /// ASCII only if the locale has another encoding than UTF-8.
    var glyphs: Glyphs {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        // Without any locale, as in most containers, the terminal outside still uses UTF-8.
        guard let locale = locale?.lowercased() else { return .unicode }
        return locale.contains("utf-8") || locale.contains("utf8") ? .unicode : .ascii
    }

    /// The page for a text of any size.
    var page: Page { Page(isColoured: isColoured, glyphs: glyphs) }

    /// The same, as wide as the terminal.
    var widePage: Page { Page(width: canRedraw ? Self.size().width : .max, isColoured: isColoured, glyphs: glyphs) }

    /// Opens the process's terminal, which it has also if its output is redirected. Returns `nil` if there is none, or if the
    /// process is in the background, where reading would stop it.
    static func openInForeground() -> Int32? {
        let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard tcgetpgrp(descriptor) == getpgrp() else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Whether the process has a terminal, and is in its foreground.
    static var isInForeground: Bool {
        guard let descriptor = openInForeground() else { return false }
        close(descriptor)
        return true
    }

    /// Makes standard output's terminal show what is typed, or not. Returns whether that was a change. In the background it
    /// does nothing: the terminal is the shell's, and the process would be stopped.
    @discardableResult
    static func setEcho(_ isOn: Bool) -> Bool {
        var settings = termios()
        guard tcgetpgrp(STDOUT_FILENO) == getpgrp(), tcgetattr(STDOUT_FILENO, &settings) == 0,
            (settings.c_lflag & tcflag_t(ECHO) != 0) != isOn
        else { return false }
        settings.c_lflag ^= tcflag_t(ECHO)
        return tcsetattr(STDOUT_FILENO, TCSANOW, &settings) == 0
    }

    /// Columns and rows now; 80 and 24 if the terminal does not report them.
    static func size(of descriptor: Int32 = STDOUT_FILENO) -> (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }
}

/// The characters that tables and trees are drawn with.
struct Glyphs: Equatable, Sendable {
    /// From an empty cell of a bar to a full one.
    var bar: [String]
    /// From the lowest bar of a small plot to the highest.
    var spark: [String]
    /// Marks a peripheral that is new, or a value that is sent.
    var new: String
    /// Marks a peripheral that is connected.
    var link: String
    /// Replaces what was cut.
    var ellipsis: String
    /// Between the parts of the status line.
    var separator: String
    /// Before an entry of a tree, before the last one, and below those that have more after them.
    var branch: String
    var lastBranch: String
    var trunk: String
    /// The axes of a plot: beside a label, elsewhere, where both meet, and below.
    var tick: String
    var vertical: String
    var corner: String
    var horizontal: String
    /// A time without values in a plot.
    var gap: String
    /// Whether plots consist of Braille patterns.
    var hasBraille: Bool

    static let unicode = Glyphs(
        bar: [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"], spark: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        new: "●", link: "⇄", ellipsis: "…", separator: " · ",
        branch: "├─ ", lastBranch: "└─ ", trunk: "│  ", tick: "┤", vertical: "│", corner: "└", horizontal: "─",
        gap: "░",
        hasBraille: true)

    static let ascii = Glyphs(
        bar: ["-", "#"], spark: ["_", ".", "-", "=", "#"], new: "*", link: "@", ellipsis: "~", separator: " - ",
        branch: "|- ",
        lastBranch: "`- ", trunk: "|  ", tick: "+", vertical: "|", corner: "+", horizontal: "-", gap: "x",
        hasBraille: false)
}

/// Colours and weights, by their number in "Select Graphic Rendition" (ECMA-48, 8.3.117).
///
/// Only the terminal's own palette is used, so that a light background and a dark one both work.
enum Tint: Int, Sendable {
    case bold = 1
    case dim = 2
    case reverse = 7
    case red = 31
    case green = 32
    case yellow = 33
    case cyan = 36
}

/// A line for a terminal, with the number of cells that it takes.
struct StyledLine: Equatable, Sendable {
    /// A text that is drawn in one way.
    struct Part: Equatable, Sendable {
        var text: String
        var tints: [Tint]
    }

    private(set) var parts: [Part] = []
    private(set) var width = 0
    var isColoured = false

    mutating func append(_ text: String, _ tints: [Tint] = []) {
        guard !text.isEmpty else { return }
        width += DisplayText.width(text)
        parts.append(Part(text: text, tints: tints))
    }

    /// The line as it is written to a terminal, with the sequences of its colours.
    var text: String {
        parts.map { part in
            guard isColoured, !part.tints.isEmpty, part.text.contains(where: { $0 != " " }) else { return part.text }
            return "\u{1B}[\(part.tints.map { String($0.rawValue) }.joined(separator: ";"))m\(part.text)\u{1B}[0m"
        }.joined()
    }
}
