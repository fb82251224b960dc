import Foundation

/// What is drawn in place on a terminal: its frames, their pace, and a line for people in them. Times are seconds.
struct LiveView: Sendable {
    private var screen = LiveScreen()
    private var pace = RedrawPace()
    private var redrawDelay: Double?
    /// The latest remark, which each frame shows.
    private(set) var notice: String?

    /// Shows a line for people from the next frame on.
    mutating func remark(_ text: String, at now: Double) {
        notice = DisplayText.safe(text)
        changed(at: now)
    }

    /// Something to show has changed.
    mutating func changed(at now: Double) {
        if let delay = pace.changed(at: now) { redrawDelay = delay }
    }

    /// Whether the timer that has just fired is that of the next frame.
    mutating func isDue(at now: Double) -> Bool { pace.rang(at: now) }

    /// Draws below the present cursor from now on: the process was stopped, and other programs have written to the terminal.
    mutating func resume() throws {
        screen = LiveScreen()
        try Output.standard.write(LiveScreen.begin)
    }

    mutating func draw(_ lines: [StyledLine], width: Int, at now: Double) throws {
        redrawDelay = pace.drew(at: now)
        try Output.standard.write(screen.frame(lines, width: width))
    }

    /// Returns the seconds after which a frame may be due; `nil` if no new timer is needed.
    mutating func takeRedrawDelay() -> Double? {
        defer { redrawDelay = nil }
        return redrawDelay
    }
}

/// Draws one frame over the last, in place, on the terminal's ordinary screen: the lines above stay readable, and the last
/// frame remains when the program has ended.
struct LiveScreen: Sendable {
    private var lastWidths: [Int] = []

    /// Hides the cursor, which would flicker over the table.
    static let begin = "\u{1B}[?25l"
    /// Shows the cursor again.
    static let end = "\u{1B}[?25h"

    /// Calls `changed` when the terminal has another size, and `resumed` when the process continues after it was stopped.
    static func watchTerminal(
        changed: @escaping @Sendable () -> Void, resumed: @escaping @Sendable () -> Void
    ) {
        Signals.watch([SIGWINCH]) { _ in changed() }
        Signals.watch([SIGTSTP]) { _ in
            // Ctrl-Z: the shell needs its cursor, and what it writes must not be drawn over.
            try? Output.standard.write(LiveScreen.end)
            kill(getpid(), SIGSTOP)
            resumed()
        }
    }

    /// Returns the bytes that replace the last frame by this one.
    ///
    /// - Parameter width: The terminal's width now. If it has become narrower since the last frame, the terminal has broken
    ///   that frame's lines, and the cursor has to move up further.
    mutating func frame(_ lines: [StyledLine], width: Int) -> String {
        let columns = max(width, 1)
        let rows = lastWidths.reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
        // The carriage return also covers the "^C" that a terminal echoes.
        var text = "\r"
        if rows > 0 { text += "\u{1B}[\(rows)A" }
        for line in lines { text += line.text + "\u{1B}[K\r\n" }
        text += "\u{1B}[J"
        lastWidths = lines.map(\.width)
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

    /// Something to show has changed: returns the seconds until the frame that shows it, or `nil` if a timer that is early
    /// enough runs already.
    mutating func changed(at now: Double) -> Double? { ask(for: max(now, lastFrame + Self.shortest), at: now) }

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
