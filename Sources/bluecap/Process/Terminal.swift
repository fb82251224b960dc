import Foundation

/// What standard output's terminal can do, from the environment's words.
struct Terminal: Equatable, Sendable {
    var isTerminal: Bool
    var environment: [String: String]

    static var present: Terminal {
        Terminal(isTerminal: Output.standard.isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    /// Whether a table can be drawn in place.
    var canRedraw: Bool { isTerminal && environment["TERM"] != "dumb" }

    /// Colours, unless the user asked for none (no-color.org).
    var isColoured: Bool { canRedraw && (environment["NO_COLOR"] ?? "").isEmpty }

    /// Plain letters where the locale says that nothing else will be understood.
    var glyphs: Glyphs {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        // Without any locale, as in most containers, the terminal outside still speaks UTF-8.
        guard let locale = locale?.lowercased() else { return .unicode }
        return locale.contains("utf-8") || locale.contains("utf8") ? .unicode : .ascii
    }

    /// Columns and rows now; 80 and 24 where the terminal does not tell.
    static var size: (width: Int, height: Int) { size(of: STDOUT_FILENO) }

    /// Columns of standard error's terminal.
    static var errorWidth: Int { size(of: STDERR_FILENO).width }

    private static func size(of descriptor: Int32) -> (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }
}
