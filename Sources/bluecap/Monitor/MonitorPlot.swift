import Foundation

/// Draws the plots of a monitor: for each series a line with its numbers and a plot, below them the axis of time.
///
/// ```
/// Heart Rate  74 bpm   min 72 · max 76 · mean 73.6 · 31 values
///   76 ┤⠀⠀⠀⢀⡠⠔⠒⠊⠉
///   72 ┤⠤⠒⠉
///      └────────────
///       -60 s    now
/// ```
struct MonitorPlot: Drawing {
    let page: Page

    /// Lines of one plot, if the terminal has no height.
    private static let usualRows = 4
    /// Cells of the labels beside the axis.
    private static let labelWidth = 8
    private static let colours: [Tint] = [.green, .cyan, .yellow, .red]

    func lines(_ board: MonitorBoard, summary: String?, notice: String?, at now: Double) -> [StyledLine] {
        var lines = [page.line(board.title, .bold)]
        let series = board.series
        if series.isEmpty, summary == nil {
            lines.append(page.line("  Waiting for values " + page.glyphs.ellipsis, .dim))
        }
        // In addition to the series there are the title, and the axis with its labels.
        let space = page.rows(beside: notice).map { max(2, $0 - 3) }
        let shown = space.map { series.count * 2 <= $0 ? series.count : max(1, ($0 - 1) / 2) } ?? series.count
        let rest = space.map { shown < series.count ? $0 - 1 : $0 } ?? (Self.usualRows + 1) * shown
        let plotWidth = page.width - Self.labelWidth - 2
        for (number, each) in series.prefix(shown).enumerated() {
            let tint = Self.colours[number % Self.colours.count]
            lines.append(header(each, tint))
            // The first ones have a line more if the height cannot be divided.
            let rows = max(1, rest / shown - (number < rest % shown ? 0 : 1))
            if plotWidth >= 4 { lines += plot(each, board, tint, rows: rows, width: plotWidth, at: now) }
        }
        if shown < series.count {
            lines.append(page.line("\(page.glyphs.ellipsis) \(series.count - shown) more", .dim))
        }
        if !series.isEmpty, plotWidth >= 4 { lines += axis(board.window, width: plotWidth) }
        let status = [Wording.count(board.count, "value"), "\(Int(now)) s"]
        return page.frame(lines, notice: notice, status: status, summary: summary)
    }

    // MARK: Lines

    private func header(_ series: Series, _ tint: Tint) -> StyledLine {
        let latest = Quantity(number: series.latest, unit: series.unit).text
        let numbers =
            "  min \(Quantity.text(series.minimum))  max \(Quantity.text(series.maximum))"
            + "  mean \(Quantity.text(series.mean))"
        let name = DisplayText.safe(series.name)
        return page.line(page.fitted([(name, [.bold]), ("  " + latest, [.bold, tint]), (numbers, [])]))
    }

    private func axis(_ window: Double, width: Int) -> [StyledLine] {
        let left = "-\(Wording.number(window)) s"
        let corner = String(repeating: " ", count: Self.labelWidth) + page.glyphs.corner
        let rest = width - DisplayText.width(left)
        let hasSpace = rest > DisplayText.width("now")
        let labels =
            (hasSpace ? left : "") + DisplayText.padded("now", to: hasSpace ? rest : width, alignment: .trailing)
        return [
            page.line(corner + String(repeating: page.glyphs.horizontal, count: width), .dim),
            page.line(String(repeating: " ", count: Self.labelWidth + 1) + labels, .dim),
        ]
    }

    // MARK: One plot

    private func plot(
        _ series: Series, _ board: MonitorBoard, _ tint: Tint, rows: Int, width: Int, at now: Double
    ) -> [StyledLine] {
        let start = now - board.window
        let samples = series.samples
        let first = samples.firstIndex { $0.time >= start } ?? samples.count
        let scale = PlotScale(samples[max(0, series.isHeld ? first - 1 : first)...].map(\.number))
        var canvas = Canvas(width: width, height: rows, hasBraille: page.glyphs.hasBraille)
        func point(_ sample: Series.Sample) -> (x: Double, y: Double) {
            (
                (sample.time - start) / board.window * Double(canvas.columns - 1),
                (1 - scale.place(of: sample.number)) * Double(canvas.rows - 1)
            )
        }
        for (index, sample) in samples.enumerated() {
            let next = index + 1 < samples.count ? samples[index + 1] : nil
            let gap = board.gap(of: series.owner, from: sample.time, to: next?.time ?? now)
            // A number that comes seldom is a step.
            if let next, gap == nil, !series.isHeld || next.time - sample.time <= max(2, board.window / 10) {
                canvas.line(from: point(sample), to: point(next))
                continue
            }
            canvas.dot(point(sample))
            let end = min(next?.time ?? now, gap?.start ?? now)
            guard series.isHeld, end >= max(sample.time, start) else { continue }
            let edge = point(.init(time: end, number: sample.number))
            canvas.line(from: point(.init(time: max(sample.time, start), number: sample.number)), to: edge)
            if let next, gap == nil { canvas.line(from: edge, to: point(next)) }
        }
        let gaps = gapCells(board, series.owner, from: start, to: now, width)
        return (0..<rows).map { row in
            let label = row == 0 ? Quantity.text(scale.high) : row == rows - 1 ? Quantity.text(scale.low) : ""
            let axis = label.isEmpty ? page.glyphs.vertical : page.glyphs.tick
            let place = DisplayText.padded(
                page.cut(label, to: Self.labelWidth - 1), to: Self.labelWidth - 1, alignment: .trailing)
            var parts: [Page.Part] = [("\(place) \(axis)", [.dim])]
            // Runs of cells, so that a colour is not set for each of them.
            var isGap: Bool?
            for column in 0..<width {
                let cell = canvas.cell(column, row)
                let showsGap = cell == nil && gaps.contains(column)
                if showsGap != isGap { parts.append(("", showsGap ? [.dim] : [tint])) }
                isGap = showsGap
                parts[parts.count - 1].text += cell ?? (showsGap ? page.glyphs.gap : " ")
            }
            return page.line(parts)
        }
    }

    /// The columns in which the link was lost.
    private func gapCells(_ board: MonitorBoard, _ owner: Int, from start: Double, to now: Double, _ width: Int) -> Set<
        Int
    > {
        var columns: Set<Int> = []
        for gap in board.gaps where gap.owner == owner {
            let first = (max(gap.start, start) - start) / board.window * Double(width - 1)
            let last = (min(gap.end ?? now, now) - start) / board.window * Double(width - 1)
            guard last >= 0, first <= last else { continue }
            columns.formUnion(Int(first)...min(width - 1, Int(last)))
        }
        return columns
    }
}

/// The numbers at the lower and the upper edge of a plot. Numbers come from outside: any finite number has a place.
struct PlotScale: Equatable, Sendable {
    private(set) var low: Double
    /// Always greater than `low`.
    private(set) var high: Double

    /// How far from the plot a place can be, in heights of the plot. What is farther away cannot be seen, and its dots could not
    /// be counted.
    private static let farthest = 1e6

    init(_ numbers: [Double]) {
        (low, high) = (numbers.min() ?? 0, numbers.max() ?? 1)
        // A line that does not change is drawn in the middle. What is less than the margin is an error of rounding.
        let margin = max(1, abs(low), abs(high)) * 1e-9
        guard high - low < margin else { return }
        let space = max(1, margin)
        low = max(low - space, -.greatestFiniteMagnitude)
        high = min(high + space, .greatestFiniteMagnitude)
    }

    /// Returns 0 for the lower edge and 1 for the upper one; always finite.
    func place(of number: Double) -> Double {
        // Halves, since the difference of two great numbers can be infinite.
        let share = (number / 2 - low / 2) / (high / 2 - low / 2)
        return min(max(share, -Self.farthest), Self.farthest)
    }
}

/// A field of dots: eight in each cell with Braille patterns (Unicode 15, block 2800), otherwise one.
private struct Canvas {
    let hasBraille: Bool
    /// In cells.
    private let width: Int
    /// In dots.
    let columns: Int
    let rows: Int
    /// Of each cell, the bits of the Braille pattern.
    private var cells: [UInt32]

    init(width: Int, height: Int, hasBraille: Bool) {
        (self.width, self.hasBraille) = (width, hasBraille)
        (columns, rows) = hasBraille ? (width * 2, height * 4) : (width, height)
        cells = Array(repeating: 0, count: width * height)
    }

    /// The bits of a cell's dots, by row and column.
    private static let bits: [[UInt32]] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]

    mutating func dot(_ point: (x: Double, y: Double)) {
        guard point.x >= 0, let x = Int(exactly: point.x.rounded()), let y = Int(exactly: point.y.rounded()),
            (0..<columns).contains(x), (0..<rows).contains(y)
        else { return }
        if hasBraille {
            cells[y / 4 * width + x / 2] |= Self.bits[y % 4][x % 2]
        } else {
            cells[y * width + x] = 1
        }
    }

    mutating func line(from start: (x: Double, y: Double), to end: (x: Double, y: Double)) {
        // A start far to the left is not drawn dot by dot.
        let steps = Int(min(max(abs(end.x - start.x), abs(end.y - start.y)), Double(4 * (columns + rows))).rounded(.up))
        guard steps > 0 else { return dot(end) }
        for step in 0...steps {
            let share = Double(step) / Double(steps)
            dot((start.x + (end.x - start.x) * share, start.y + (end.y - start.y) * share))
        }
    }

    /// `nil` if the cell is empty.
    func cell(_ column: Int, _ row: Int) -> String? {
        let bits = cells[row * width + column]
        guard bits != 0 else { return nil }
        guard hasBraille else { return "*" }
        return Unicode.Scalar(0x2800 + bits).map { String($0) }
    }
}
