/// Draws the live table: a header, a row for each peripheral, a status line.
struct ScanTable: Sendable {
    /// How the terminal looks that it is drawn for.
    struct Paper: Equatable, Sendable {
        var width: Int
        /// Lines at most; `nil` for as many as there are.
        var height: Int?
        var isColoured: Bool
        var glyphs: Glyphs
    }

    /// What the last line says.
    enum Status: Equatable, Sendable {
        /// The scan goes on, for so many seconds now.
        case running(seconds: Double)
        case finished(ScanSummary)
    }

    /// Seconds for which a peripheral is marked as new.
    static let newness = 4.0
    /// Seconds after which a silent peripheral's row fades.
    static let fading = 12.0

    private enum Field: Int, CaseIterable {
        case name, address, signal, services, maker, age
    }

    /// Cells of the mark before each row.
    private static let margin = 2
    private static let barCells = 8

    let paper: Paper

    /// The lines of the table, none wider than the paper.
    func lines(_ board: ScanBoard, status: Status, notice: String?, at now: Double) -> [StyledLine] {
        let rows = board.rows
        // Beside the rows: header, status, and the notice where there is one.
        let room = paper.height.map { max(1, $0 - 2 - (notice == nil ? 0 : 1)) } ?? rows.count
        let shown = rows.prefix(rows.count > room ? max(0, room - 1) : room)
        let layout = layout(for: shown)
        var lines = [header(layout)]
        if rows.isEmpty, case .running = status {
            lines.append(StyledLine(cut("  Listening " + paper.glyphs.ellipsis), .dim, coloured: paper.isColoured))
        }
        for row in shown { lines.append(line(row, layout, at: now)) }
        if shown.count < rows.count {
            let more = "  \(paper.glyphs.ellipsis) \(rows.count - shown.count) more"
            lines.append(StyledLine(cut(more), .dim, coloured: paper.isColoured))
        }
        if let notice { lines.append(StyledLine(cut(notice), .yellow, coloured: paper.isColoured)) }
        lines.append(statusLine(status, board, at: now))
        return lines
    }

    // MARK: Lines

    private func header(_ layout: ColumnLayout) -> StyledLine {
        var text = String(repeating: " ", count: Self.margin)
        forEachField(of: layout) { field, width in
            let title =
                switch field {
                case .name: "NAME"
                case .address: "ADDRESS"
                case .signal: "SIGNAL"
                case .services: "SERVICES"
                case .maker: "MAKER"
                case .age: "HEARD"
                }
            text += DisplayText.padded(title, to: width, alignment: field == .age ? .trailing : .leading)
        } between: {
            text += $0
        }
        while text.last == " " { text.removeLast() }
        return StyledLine(DisplayText.cut(text, to: paper.width, ellipsis: ""), .bold, coloured: paper.isColoured)
    }

    private func line(_ row: ScanBoard.Row, _ layout: ColumnLayout, at now: Double) -> StyledLine {
        let isNew = row.isAbout && now - row.firstSeen < Self.newness
        let isFaded = !row.isAbout || now - row.lastSeen > Self.fading
        var line = StyledLine()
        let mark = isNew ? paper.glyphs.new : " "
        line.append(
            DisplayText.padded(mark, to: min(Self.margin, paper.width)), [.green], coloured: paper.isColoured && isNew)
        forEachField(of: layout) { field, width in
            append(field, of: row, width: width, isNew: isNew, isFaded: isFaded, at: now, to: &line)
        } between: {
            line.append($0)
        }
        return line
    }

    private func append(
        _ field: Field, of row: ScanBoard.Row, width: Int, isNew: Bool, isFaded: Bool, at now: Double,
        to line: inout StyledLine
    ) {
        let sighting = row.sighting
        let isColoured = paper.isColoured
        func add(_ text: String, _ tints: [Tint], alignment: DisplayText.Alignment = .leading) {
            let cell = DisplayText.padded(cut(text, to: width), to: width, alignment: alignment)
            line.append(cell, isFaded ? [.dim] : tints, coloured: isColoured)
        }
        switch field {
        case .name:
            if let name = sighting.name {
                add(DisplayText.name(name), isNew ? [.bold, .green] : [.bold])
            } else {
                add("(no name)", [.dim])
            }
        case .address: add(sighting.address, [])
        case .signal:
            guard let rssi = sighting.rssi else { return add("not known", [.dim]) }
            let tint: [Tint] = isFaded ? [.dim] : [SignalBar.tint(rssi)]
            let number = DisplayText.padded(String(rssi), to: 4, alignment: .trailing)
            if width > 4 {
                let bar = SignalBar(cells: width - 5, glyphs: paper.glyphs)
                line.append(bar.text(rssi), tint, coloured: isColoured)
                line.append(" ")
            }
            line.append(number, isFaded ? [.dim] : [], coloured: isColoured)
        case .services: add(DisplayText.safe(Wording.services(of: sighting)), [.cyan])
        case .maker: add(DisplayText.safe(Wording.makers(of: sighting)), [])
        case .age: add(age(of: row, at: now), [.dim], alignment: .trailing)
        }
    }

    private func statusLine(_ status: Status, _ board: ScanBoard, at now: Double) -> StyledLine {
        switch status {
        case .finished(let summary):
            return StyledLine(cut(PlainLines.line(summary)), .bold, coloured: paper.isColoured)
        case .running(let seconds):
            var parts = [board.count == 1 ? "1 peripheral" : "\(board.count) peripherals"]
            if let newest = board.newestRow, paper.width >= 56 {
                let name = newest.sighting.name.map(DisplayText.name) ?? newest.sighting.address
                parts.append(
                    "newest: " + DisplayText.cut(name, to: min(24, paper.width - 44), ellipsis: paper.glyphs.ellipsis))
            }
            parts.append("\(Int(seconds)) s")
            parts.append("Ctrl-C ends")
            let text = cut(parts.joined(separator: paper.glyphs.separator))
            return StyledLine(text, .dim, coloured: paper.isColoured)
        }
    }

    // MARK: Columns

    private func layout(for rows: ArraySlice<ScanBoard.Row>) -> ColumnLayout {
        let columns = Field.allCases.map { field -> ColumnLayout.Column in
            let bounds = Self.bounds(of: field)
            let content = rows.reduce(0) { max($0, contentWidth(field, of: $1, limit: bounds.most)) }
            let wanted = min(max(content, bounds.least), bounds.most)
            return ColumnLayout.Column(
                id: field.rawValue, importance: bounds.importance, least: bounds.least, wanted: wanted)
        }
        return ColumnLayout(columns, width: paper.width - Self.margin)
    }

    private static func bounds(of field: Field) -> (importance: Int, least: Int, most: Int) {
        switch field {
        case .name: (0, 10, 32)
        case .signal: (1, barCells + 5, barCells + 5)
        case .age: (2, 6, 6)
        case .address: (3, 17, 17)
        case .services: (4, 16, 44)
        case .maker: (5, 12, 36)
        }
    }

    private func contentWidth(_ field: Field, of row: ScanBoard.Row, limit: Int) -> Int {
        switch field {
        case .name: min(limit, DisplayText.width(row.sighting.name.map(DisplayText.name) ?? "(no name)"))
        case .services: min(limit, DisplayText.width(Wording.services(of: row.sighting)))
        case .maker: min(limit, DisplayText.width(Wording.makers(of: row.sighting)))
        case .address, .signal, .age: 0
        }
    }

    private func forEachField(
        of layout: ColumnLayout, _ visit: (Field, Int) -> Void, between: (String) -> Void
    ) {
        var isFirst = true
        for field in Field.allCases {
            guard let width = layout.widths[field.rawValue] else { continue }
            if !isFirst { between(String(repeating: " ", count: ColumnLayout.gap)) }
            isFirst = false
            visit(field, width)
        }
    }

    private func age(of row: ScanBoard.Row, at now: Double) -> String {
        row.isAbout ? Wording.age(now - row.lastSeen) : "gone"
    }

    private func cut(_ text: String, to width: Int? = nil) -> String {
        DisplayText.cut(text, to: width ?? paper.width, ellipsis: paper.glyphs.ellipsis)
    }
}
