/// Prints a scan: as a table that is drawn in place, or as a line for each event.
struct ScanDisplay: LiveDisplay {
    let format: Format
    /// Whether every sighting has a line, and not only those that are news.
    let includesDuplicates: Bool
    let terminal: Terminal
    var view = LiveView()

    mutating func show(_ event: ScanEvent, _ board: ScanBoard, at now: Double) throws {
        if format != .table {
            let line = event.line(format, includesDuplicates: includesDuplicates)
            if let line { try Output.standard.write(line + "\n") }
        } else if case .finished = event {
            try end(board, summary: event.line(.lines), at: now)
        } else {
            view.changed(at: now)
        }
    }

    func lines(_ board: ScanBoard, width: Int, height: Int?, summary: String?, at now: Double) -> [StyledLine] {
        ScanTable(width: width, height: height, isColoured: terminal.isColoured, glyphs: terminal.glyphs)
            .lines(board, summary: summary, notice: view.notice, at: now)
    }
}
