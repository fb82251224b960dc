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

/// Prints what is monitored: as plots that are drawn in place, or as a line for each number.
struct MonitorDisplay: LiveDisplay {
    let format: Format
    let title: String
    let terminal: Terminal
    var view = LiveView()

    mutating func show(_ event: MonitorEvent, _ board: MonitorBoard, at now: Double) throws {
        guard format == .table else {
            if let line = event.line(format) { try Output.standard.write(line + "\n") }
            if format == .lines, let summary = event.summary { Output.remark(summary) }
            return
        }
        guard let summary = event.summary else { return view.changed(at: now) }
        try end(board, summary: summary, at: now)
    }

    func lines(_ board: MonitorBoard, width: Int, height: Int?, summary: String?, at now: Double) -> [StyledLine] {
        MonitorPlot(width: width, height: height, isColoured: terminal.isColoured, glyphs: terminal.glyphs)
            .lines(board, title: title, summary: summary, notice: view.notice, at: now)
    }
}
