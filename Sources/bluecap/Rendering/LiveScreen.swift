/// Draws one frame over the last, in place, on the terminal's ordinary screen: what stood above stays readable, and
/// the last frame remains when the program has ended.
struct LiveScreen: Sendable {
    private var lastWidths: [Int] = []

    /// Hides the cursor, which would flicker over the table.
    static let begin = "\u{1B}[?25l"
    /// Shows the cursor again.
    static let end = "\u{1B}[?25h"

    /// The bytes that replace the last frame by this one.
    ///
    /// - Parameter width: the terminal's width now. Where it has become narrower since the last frame, its lines have
    ///   been broken, and the cursor has further to go up.
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
