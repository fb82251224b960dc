/// Prints a scan: as a table that is drawn in place, or as a line for each event. Times are seconds since the scan began.
struct ScanDisplay {
    let format: Format
    /// Whether every sighting has a line, and not only those that are news.
    let includesDuplicates: Bool
    let terminal: Terminal

    private var screen = LiveScreen()
    private var pace = RedrawPace()
    private var latestNotice: String?
    private var redrawDelay: Double?

    init(_ format: Format, includesDuplicates: Bool, terminal: Terminal) {
        (self.format, self.includesDuplicates, self.terminal) = (format, includesDuplicates, terminal)
    }

    mutating func begin(_ board: ScanBoard) throws {
        guard format == .table else { return }
        try Output.standard.write(LiveScreen.begin)
        try draw(board, at: 0)
    }

    mutating func show(_ event: ScanEvent, _ board: ScanBoard, at now: Double) throws {
        if format != .table {
            let line = event.line(format, includesDuplicates: includesDuplicates)
            if let line { try Output.standard.write(line + "\n") }
        } else if case .finished = event {
            try draw(board, summary: event.line(.lines), at: now)
            try Output.standard.write(LiveScreen.end)
        } else {
            changed(at: now)
        }
    }

    /// Shows a line for people that is no part of the output.
    mutating func remark(_ text: String, at now: Double) {
        guard format == .table else { return Output.remark(text) }
        latestNotice = DisplayText.safe(text)
        changed(at: now)
    }

    /// Draws the table if its time has come, or (`isForced`) because the terminal's size has changed.
    mutating func redraw(_ board: ScanBoard, isForced: Bool, at now: Double) throws {
        guard isForced || pace.rang(at: now) else { return }
        try draw(board, at: now)
    }

    /// Draws below the present cursor: the process was stopped, and other programs have written to the terminal.
    mutating func resume(_ board: ScanBoard, at now: Double) throws {
        screen = LiveScreen()
        try Output.standard.write(LiveScreen.begin)
        try redraw(board, isForced: true, at: now)
    }

    /// Returns the seconds after which `redraw` must be called; `nil` if no new timer is needed.
    mutating func takeRedrawDelay() -> Double? {
        defer { redrawDelay = nil }
        return redrawDelay
    }

    private mutating func changed(at now: Double) {
        if let delay = pace.changed(at: now) { redrawDelay = delay }
    }

    private mutating func draw(_ board: ScanBoard, summary: String? = nil, at now: Double) throws {
        let size = Terminal.size()
        // The last frame stays as the result, with all its rows; the others must not be taller than the terminal, and leave a
        // line for the cursor.
        let table = ScanTable(
            width: size.width, height: summary == nil ? size.height - 1 : nil, isColoured: terminal.isColoured,
            glyphs: terminal.glyphs)
        let lines = table.lines(board, summary: summary, notice: latestNotice, at: now)
        redrawDelay = pace.drew(at: now)
        try Output.standard.write(screen.frame(lines, width: size.width))
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
