import BlueCapKit
import Foundation

/// What makes a display draw.
enum ScreenEvent: Sendable {
    case frameIsDue
    case resized
    /// The process continues after it was stopped.
    case resumed
}

/// Draws one frame over the last, in place, on the terminal's ordinary screen: the lines above stay readable, and the last
/// frame remains when the program has ended.
struct LiveScreen: Sendable {
    private var last: [StyledLine] = []
    private var lastWidth = 0

    /// Hides the cursor, which would flicker over the table.
    static let begin = "\u{1B}[?25l"
    /// Shows the cursor again.
    static let end = "\u{1B}[?25h"

    private static let state = Locked((isOpen: false, isSilent: false))

    /// Hides the cursor, and stops the echo: a line feed that the terminal echoes would move the frame.
    static func open() throws {
        state.withLock { $0 = (true, Terminal.setEcho(false) || $0.isSilent) }
        try Output.standard.write(begin)
    }

    /// Leaves the terminal as it was. A second call does nothing.
    static func close() throws {
        let wasOpen = state.withLock { state in
            defer { state = (false, false) }
            if state.isSilent { Terminal.setEcho(true) }
            return state.isOpen
        }
        if wasOpen { try Output.standard.write(end) }
    }

    /// Calls `body` when the terminal has another size, and when the process continues after it was stopped.
    ///
    /// - Parameter close: Leaves the terminal as it was.
    static func watchTerminal(
        close: @escaping @Sendable () -> Void = { try? LiveScreen.close() },
        _ body: @escaping @Sendable (ScreenEvent) -> Void
    ) {
        Signals.watch([SIGWINCH]) { _ in body(.resized) }
        Signals.watch([SIGTSTP]) { _ in
            // Ctrl-Z: the shell needs its cursor, and what it writes must not be drawn over.
            close()
            // To this thread: it must not continue before the process is stopped, as it might with `kill`.
            raise(SIGSTOP)
            body(.resumed)
        }
    }

    /// Returns the bytes that replace the last frame by this one. Lines that have not changed are not written again.
    ///
    /// - Parameter width: The terminal's width now. If it has become narrower since the last frame, the terminal has broken
    ///   that frame's lines, and the cursor has to move up further.
    mutating func frame(_ lines: [StyledLine], width: Int) -> String {
        let columns = max(width, 1)
        let rows = last.reduce(0) { $0 + max(1, ($1.width + columns - 1) / columns) }
        // The carriage return also covers the "^C" that a terminal echoes.
        var text = "\r"
        if rows > 0 { text += "\u{1B}[\(rows)A" }
        for (index, line) in lines.enumerated() {
            let isDrawn = width == lastWidth && index < last.count && last[index] == line
            text += (isDrawn ? "" : line.text + "\u{1B}[K") + "\r\n"
        }
        text += "\u{1B}[J"
        (last, lastWidth) = (lines, width)
        return text
    }
}

/// Decides when to draw the next frame: soon after a change, but not too often, and every second for the ages.
struct RedrawPace: Sendable {
    /// The least number of seconds between two frames.
    static let shortest = 0.15
    /// The greatest number of seconds between two frames.
    static let longest = 1.0

    private var lastFrame = -Double.infinity
    /// When the timer fires that counts; `nil` if none runs.
    private var due: Double?

    private let pause: Double

    init(shortest: Double = shortest) { pause = shortest }

    /// Something to show has changed: returns the seconds until the frame that shows it, or `nil` if a timer that is early
    /// enough runs already.
    mutating func changed(at now: Double) -> Double? { ask(for: max(now, lastFrame + pause), at: now) }

    /// Whether the timer that has just fired is the one that counts; then this is the moment to draw.
    mutating func rang(at now: Double) -> Bool {
        // Timers may fire a little early; one that an earlier frame made superfluous is ignored.
        due.map { now >= $0 - 0.01 } ?? false
    }

    /// A frame was drawn: returns the seconds until the next one that is due without a change.
    mutating func drew(at now: Double) -> Double? {
        lastFrame = now
        due = nil
        return ask(for: now + Self.longest, at: now)
    }

    private mutating func ask(for time: Double, at now: Double) -> Double? {
        if let due, due <= time { return nil }
        due = time
        return time - now
    }
}
