import Foundation

/// What happens while a peripheral is monitored.
enum MonitorEvent: Equatable, Sendable {
    case sample(series: String, Quantity, Date)
    /// Values may be missing from here on: the link was lost, or the peripheral is out of range.
    case gap(Date)
    case finished(values: Int, seconds: Double)

    /// Returns the event's line of the output; `nil` if it has none.
    func line(_ format: Format, in timeZone: TimeZone = .current) -> String? {
        guard format == .json else {
            guard case .sample(let series, let quantity, let date) = self else { return nil }
            return
                "\(Wording.clock(date, in: timeZone))  \(DisplayText.safe(series))  \(DisplayText.safe(quantity.text))"
        }
        let members: JSON.Members =
            switch self {
            case .sample(let series, let quantity, let date):
                [
                    ("event", JSON("sample")), ("time", JSON(Wording.timestamp(date))), ("series", JSON(series)),
                    ("number", JSON(number: quantity.number)),
                    ("unit", JSON(quantity.unit.isEmpty ? nil : quantity.unit)),
                ]
            case .gap(let date): [("event", JSON("gap")), ("time", JSON(Wording.timestamp(date)))]
            case .finished(let values, let seconds):
                [("event", JSON("finished")), ("values", JSON(values)), ("seconds", JSON(seconds: seconds))]
            }
        return JSON(members).text
    }

    /// The last line for people.
    var summary: String? {
        guard case .finished(let values, let seconds) = self else { return nil }
        return "\(Wording.count(values, "value")) in \(Wording.tenths(seconds))"
    }
}

/// Prints what is monitored: as plots that are drawn in place, or as a line for each number. Times are seconds since the
/// command began to monitor.
struct MonitorDisplay {
    let format: Format
    let title: String
    let terminal: Terminal
    private var view = LiveView()

    init(_ format: Format, title: String, terminal: Terminal) {
        (self.format, self.title, self.terminal) = (format, title, terminal)
    }

    mutating func begin(_ board: MonitorBoard) throws {
        guard format == .table else { return }
        try Output.standard.write(LiveScreen.begin)
        try draw(board, at: 0)
    }

    mutating func show(_ event: MonitorEvent, _ board: MonitorBoard, at now: Double) throws {
        guard format == .table else {
            if let line = event.line(format) { try Output.standard.write(line + "\n") }
            if format == .lines, let summary = event.summary { Output.remark(summary) }
            return
        }
        guard let summary = event.summary else { return view.changed(at: now) }
        try draw(board, summary: summary, at: now)
        try Output.standard.write(LiveScreen.end)
    }

    /// Shows a line for people that is no part of the output.
    mutating func remark(_ text: String, at now: Double) {
        guard format == .table else { return Output.remark(text) }
        view.remark(text, at: now)
    }

    /// Draws the plots if their time has come, or (`isForced`) because the terminal's size has changed.
    mutating func redraw(_ board: MonitorBoard, isForced: Bool, at now: Double) throws {
        guard isForced || view.isDue(at: now) else { return }
        try draw(board, at: now)
    }

    /// Draws below the present cursor: the process was stopped, and other programs have written to the terminal.
    mutating func resume(_ board: MonitorBoard, at now: Double) throws {
        try view.resume()
        try draw(board, at: now)
    }

    /// Returns the seconds after which `redraw` must be called; `nil` if no new timer is needed.
    mutating func takeRedrawDelay() -> Double? { view.takeRedrawDelay() }

    private mutating func draw(_ board: MonitorBoard, summary: String? = nil, at now: Double) throws {
        let size = Terminal.size()
        let plot = MonitorPlot(
            width: size.width, height: summary == nil ? size.height - 1 : nil, isColoured: terminal.isColoured,
            glyphs: terminal.glyphs)
        let lines = plot.lines(board, title: title, summary: summary, notice: view.notice, at: now)
        try view.draw(lines, width: size.width, at: now)
    }
}
