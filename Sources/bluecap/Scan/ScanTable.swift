import Foundation

/// Draws the live table: a header, a row for each peripheral, a status line.
struct ScanTable: Drawing {
    let page: Page
    /// The row that is marked; `nil` if rows cannot be selected.
    var selected: UUID?
    /// The peripherals with a link.
    var connected: Set<UUID> = []

    init(page: Page) { self.page = page }

    private struct Column {
        var title: String
        /// 0 is shown first if there is little space.
        var importance: Int
        /// Cells.
        var least: Int
        var most: Int
        var alignment = DisplayText.Alignment.leading
        /// The parts of a row's cell. Several parts together are as wide as the column.
        var parts: (_ row: ScanBoard.Row, _ isNew: Bool) -> [Page.Part]
    }

    /// Seconds for which a peripheral is marked as new.
    static let newness = 4.0
    /// Seconds after which a silent peripheral's row fades.
    static let fading = 12.0
    /// Cells of the mark before each row.
    private static let margin = 2
    private static let barCells = 8

    func lines(_ board: ScanBoard, summary: String?, notice: String?, at now: Double) -> [StyledLine] {
        let rows = board.rows
        // In addition to the rows there is the header.
        let capacity = page.rows(beside: notice).map { max(1, $0 - 1) } ?? rows.count
        let shown = rows.prefix(rows.count > capacity ? max(0, capacity - 1) : capacity)
        var lines = table(shown, at: now)
        if rows.isEmpty, summary == nil { lines.append(page.line("  Listening " + page.glyphs.ellipsis, .dim)) }
        if shown.count < rows.count {
            lines.append(page.line("  \(page.glyphs.ellipsis) \(rows.count - shown.count) more", .dim))
        }
        return page.frame(lines, notice: notice, status: status(board, now), summary: summary)
    }

    // MARK: Lines

    /// Returns the header and a line for each row.
    func table(_ rows: ArraySlice<ScanBoard.Row>, at now: Double) -> [StyledLine] {
        let columns = columns(at: now)
        // Once, for the widths and the lines: an advertisement is decoded for its cells.
        let cells = rows.map { row in columns.map { $0.parts(row, Self.isNew(row, at: now)) } }
        let widths = widths(of: columns, for: cells)
        return [header(columns, widths)] + zip(rows, cells).map { line($0, $1, columns, widths, at: now) }
    }

    private static func isNew(_ row: ScanBoard.Row, at now: Double) -> Bool {
        !row.hasExpired && now - row.firstSeen < newness
    }

    private func header(_ columns: [Column], _ widths: [Int: Int]) -> StyledLine {
        let titles = columns.enumerated().compactMap { index, column in
            widths[index].map { DisplayText.padded(column.title, to: $0, alignment: column.alignment) }
        }
        var text = String(repeating: " ", count: Self.margin) + titles.joined(separator: Self.gap)
        while text.last == " " { text.removeLast() }
        return page.line([(DisplayText.cut(text, to: page.width, ellipsis: ""), [.bold])])
    }

    private func line(
        _ row: ScanBoard.Row, _ cells: [[Page.Part]], _ columns: [Column], _ widths: [Int: Int], at now: Double
    ) -> StyledLine {
        let isLinked = connected.contains(row.sighting.identifier)
        let isFaded = !isLinked && (row.hasExpired || now - row.lastSeen > Self.fading)
        let mark = isLinked ? page.glyphs.link : Self.isNew(row, at: now) ? page.glyphs.new : " "
        let shown = columns.enumerated().compactMap { index, column -> [Page.Part]? in
            guard let width = widths[index] else { return nil }
            var parts = cells[index]
            if parts.count == 1 {
                let text = page.cut(parts[0].text, to: width)
                parts[0].text = DisplayText.padded(text, to: width, alignment: column.alignment)
            }
            return parts.map { ($0.text, isFaded ? [.dim] : $0.tints) }
        }
        let line: [Page.Part] =
            [(DisplayText.padded(mark, to: min(Self.margin, page.width)), [.green])]
            + shown.joined(separator: [(Self.gap, [])])
        return row.sighting.identifier == selected ? page.selected(line) : page.line(line)
    }

    private func status(_ board: ScanBoard, _ seconds: Double) -> [String] {
        var parts = [Wording.count(board.count, "peripheral")]
        if let newest = board.newestRow?.sighting, page.width >= 56 {
            let name = newest.name.map(DisplayText.name) ?? newest.address
            parts.append("newest: " + page.cut(name, to: min(24, page.width - 44)))
        }
        return parts + ["\(Int(seconds)) s"]
    }

    // MARK: Columns

    private static let gap = String(repeating: " ", count: ColumnLayout.gap)
    private static let signalCells = barCells + 5
    private static let heardCells = 6

    private func columns(at now: Double) -> [Column] {
        // Names are typed: they are cut only where the strength and the time would have no space.
        let nameCells = page.width - Self.margin - Self.signalCells - Self.heardCells - 2 * ColumnLayout.gap
        return [
            Column(title: "NAME", importance: 0, least: max(10, min(48, nameCells)), most: 60) { row, isNew in
                [(row.sighting.nameText, row.sighting.name == nil ? [.dim] : isNew ? [.bold, .green] : [.bold])]
            },
            Column(title: "ADDRESS", importance: 3, least: 17, most: 17) { row, _ in [(row.sighting.address, [])] },
            Column(title: "SIGNAL", importance: 1, least: Self.signalCells, most: Self.signalCells) { row, _ in
                guard let rssi = row.sighting.rssi else { return [("not known", [.dim])] }
                let bar = SignalBar(cells: Self.barCells, glyphs: page.glyphs).text(rssi)
                let number = DisplayText.padded(String(rssi), to: 4, alignment: .trailing)
                return [(bar, [SignalBar.tint(rssi)]), (" ", []), (number, [])]
            },
            Column(title: "DETAILS", importance: 4, least: 25, most: .max) { row, _ in
                [(row.sighting.detailsText, [.green])]
            },
            Column(title: "SERVICES", importance: 5, least: 19, most: 60) { row, _ in
                [(row.sighting.servicesText, [.cyan])]
            },
            Column(title: "MAKER", importance: 6, least: 12, most: 48) { row, _ in [(row.sighting.makersText, [])] },
            Column(
                title: "HEARD", importance: 2, least: Self.heardCells, most: Self.heardCells, alignment: .trailing
            ) { row, _ in
                [(row.hasExpired ? "gone" : Wording.age(now - row.lastSeen), [.dim])]
            },
        ]
    }

    /// A column is as wide as its content, and one without content is left out.
    private func widths(of columns: [Column], for cells: [[[Page.Part]]]) -> [Int: Int] {
        let layout = columns.enumerated().compactMap { index, column -> ColumnLayout.Column? in
            guard column.most > column.least else {
                return ColumnLayout.Column(
                    id: index, importance: column.importance, least: column.least, wanted: column.least)
            }
            let content = cells.map { $0[index].reduce(0) { $0 + DisplayText.width($1.text) } }.max() ?? 0
            guard content > 0 || index == 0 else { return nil }
            let wanted = min(max(content, index == 0 ? 10 : column.title.count), column.most)
            return ColumnLayout.Column(
                id: index, importance: column.importance, least: min(column.least, wanted), wanted: wanted)
        }
        return ColumnLayout(layout, width: page.width - Self.margin).widths
    }
}

/// Decides which columns a table of a given width has, and how wide each is.
///
/// Columns are added by their importance as long as their least widths fit; what is left goes to the columns with wider content,
/// the most important first.
struct ColumnLayout: Equatable, Sendable {
    struct Column: Equatable, Sendable {
        var id: Int
        /// 0 is added first.
        var importance: Int
        var least: Int
        /// As wide as its content; never below `least`.
        var wanted: Int
    }

    /// Cells between two columns.
    static let gap = 2

    /// The widths of the columns that are shown.
    private(set) var widths: [Int: Int] = [:]

    init(_ columns: [Column], width: Int) {
        var rest = width + Self.gap
        var shown: [Column] = []
        for column in columns.sorted(by: { $0.importance < $1.importance }) {
            guard rest >= column.least + Self.gap else { break }
            rest -= column.least + Self.gap
            widths[column.id] = column.least
            shown.append(column)
        }
        if shown.isEmpty, let first = columns.min(by: { $0.importance < $1.importance }) {
            widths[first.id] = max(0, min(width, first.least))
            return
        }
        for column in shown {
            let growth = min(rest, max(0, column.wanted - column.least))
            widths[column.id, default: 0] += growth
            rest -= growth
        }
    }
}

/// A bar that shows how strong a signal is.
struct SignalBar: Sendable {
    /// The strength of an empty bar, in dBm: about the limit of a receiver.
    static let weakest = -100.0
    /// The strength of a full bar, in dBm: a peripheral that touches the adapter.
    static let strongest = -35.0

    let cells: Int
    let glyphs: Glyphs

    /// Returns the bar's text, always `cells` wide.
    func text(_ rssi: Int) -> String {
        let steps = glyphs.bar.count - 1
        let filled = Int((Self.share(rssi) * Double(cells * steps)).rounded())
        return (0..<cells).map { cell in
            glyphs.bar[min(max(filled - cell * steps, 0), steps)]
        }.joined()
    }

    /// Where a strength is between the weakest, 0, and the strongest, 1.
    static func share(_ rssi: Int) -> Double { min(max((Double(rssi) - weakest) / (strongest - weakest), 0), 1) }

    /// Green is near, yellow is farther away, red is at the limit.
    static func tint(_ rssi: Int) -> Tint {
        switch rssi {
        case (-67)...: .green
        case (-82)...: .yellow
        default: .red
        }
    }
}
