/// Prints a scan: as a table that is drawn in place, or as a line for each event. Times are seconds since the scan began.
struct ScanDisplay {
    let format: Format
    /// Whether every sighting has a line, and not only those that are news.
    let includesDuplicates: Bool
    let terminal: Terminal

    private var view = LiveView()

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
            view.changed(at: now)
        }
    }

    /// Shows a line for people that is no part of the output.
    mutating func remark(_ text: String, at now: Double) {
        guard format == .table else { return Output.remark(text) }
        view.remark(text, at: now)
    }

    /// Draws the table if its time has come, or (`isForced`) because the terminal's size has changed.
    mutating func redraw(_ board: ScanBoard, isForced: Bool, at now: Double) throws {
        guard isForced || view.isDue(at: now) else { return }
        try draw(board, at: now)
    }

    /// Draws below the present cursor: the process was stopped, and other programs have written to the terminal.
    mutating func resume(_ board: ScanBoard, at now: Double) throws {
        try view.resume()
        try redraw(board, isForced: true, at: now)
    }

    /// Returns the seconds after which `redraw` must be called; `nil` if no new timer is needed.
    mutating func takeRedrawDelay() -> Double? { view.takeRedrawDelay() }

    private mutating func draw(_ board: ScanBoard, summary: String? = nil, at now: Double) throws {
        let size = Terminal.size()
        // The last frame stays as the result, with all its rows; the others must not be taller than the terminal, and leave a
        // line for the cursor.
        let table = ScanTable(
            width: size.width, height: summary == nil ? size.height - 1 : nil, isColoured: terminal.isColoured,
            glyphs: terminal.glyphs)
        let lines = table.lines(board, summary: summary, notice: view.notice, at: now)
        try view.draw(lines, width: size.width, at: now)
    }
}
