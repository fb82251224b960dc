/// Where a scan is shown. Times are seconds on the session's clock.
protocol ScanDisplay: Sendable {
    /// The scan begins.
    mutating func begin(at now: Double)
    mutating func show(_ event: ScanEvent, at now: Double) -> Output.Outcome
    /// One line for people that is no part of the output.
    mutating func notice(_ text: String, at now: Double)
    /// The frame's clock has rung, or (`isForced`) the terminal has changed.
    mutating func redraw(isForced: Bool, at now: Double) -> Output.Outcome
    /// The process was stopped, others have written to the terminal, and now it goes on.
    mutating func resume(at now: Double)
    /// Seconds after which `redraw` is wanted, asked after every call above; `nil` where no new clock is needed.
    mutating func takeRedrawDelay() -> Double?
}

/// Lines, as they come: for programs, pipes and files.
struct LineDisplay<Reporter: ScanReporter>: ScanDisplay {
    let reporter: Reporter
    let output: Output

    mutating func begin(at now: Double) {}

    mutating func show(_ event: ScanEvent, at now: Double) -> Output.Outcome {
        let lines = reporter.lines(for: event)
        return lines.isEmpty ? .written : output.write(lines.map { $0 + "\n" }.joined())
    }

    mutating func notice(_ text: String, at now: Double) { Output.error.write("bluecap: \(DisplayText.safe(text))\n") }

    mutating func redraw(isForced: Bool, at now: Double) -> Output.Outcome { .written }

    mutating func resume(at now: Double) {}

    mutating func takeRedrawDelay() -> Double? { nil }
}

/// A table that is drawn again and again in one place.
struct LiveDisplay: ScanDisplay {
    let output: Output
    let terminal: Terminal

    private var board = ScanBoard()
    private var screen = LiveScreen()
    private var pace = RedrawPace()
    private var start = 0.0
    private var latestNotice: String?
    private var redrawDelay: Double?

    init(output: Output, terminal: Terminal) {
        self.output = output
        self.terminal = terminal
    }

    mutating func begin(at now: Double) {
        start = now
        output.write(LiveScreen.begin)
        _ = draw(.running(seconds: 0), at: now)
    }

    mutating func show(_ event: ScanEvent, at now: Double) -> Output.Outcome {
        if case .finished(let summary) = event {
            let outcome = draw(.finished(summary), at: now)
            return outcome == .written ? output.write(LiveScreen.end) : outcome
        }
        board.apply(event, at: now)
        changed(at: now)
        return .written
    }

    mutating func notice(_ text: String, at now: Double) {
        latestNotice = DisplayText.safe(text)
        changed(at: now)
    }

    mutating func redraw(isForced: Bool, at now: Double) -> Output.Outcome {
        guard isForced || pace.rang(at: now) else { return .written }
        return draw(.running(seconds: now - start), at: now)
    }

    mutating func resume(at now: Double) {
        screen = LiveScreen()
        output.write(LiveScreen.begin)
        _ = redraw(isForced: true, at: now)
    }

    mutating func takeRedrawDelay() -> Double? {
        defer { redrawDelay = nil }
        return redrawDelay
    }

    private mutating func changed(at now: Double) {
        if let delay = pace.changed(at: now) { redrawDelay = delay }
    }

    private mutating func draw(_ status: ScanTable.Status, at now: Double) -> Output.Outcome {
        let size = Terminal.size
        var height: Int?
        // The last frame stays as the result, with all its rows; the others must not be taller than the terminal, and
        // leave a line for the cursor.
        if case .running = status { height = size.height - 1 }
        let paper = ScanTable.Paper(
            width: size.width, height: height, isColoured: terminal.isColoured, glyphs: terminal.glyphs)
        let lines = ScanTable(paper: paper).lines(board, status: status, notice: latestNotice, at: now)
        redrawDelay = pace.drew(at: now)
        return output.write(screen.frame(lines, width: size.width))
    }
}
