/// Decides which columns a table of a given width has, and how wide each is.
///
/// Columns come in by their importance as long as their least widths fit; what is left is shared out, cell by cell,
/// among those whose content wants more.
struct ColumnLayout: Equatable, Sendable {
    struct Column: Equatable, Sendable {
        /// Names the column.
        var id: Int
        /// 0 comes in first.
        var importance: Int
        var least: Int
        /// As wide as its content asks for; never below `least`.
        var wanted: Int
    }

    /// Cells between two columns.
    static let gap = 2

    /// The widths of the columns that are shown.
    private(set) var widths: [Int: Int] = [:]

    init(_ columns: [Column], width: Int) {
        var room = width + Self.gap
        var shown: [Column] = []
        for column in columns.sorted(by: { $0.importance < $1.importance }) {
            guard room >= column.least + Self.gap else { break }
            room -= column.least + Self.gap
            widths[column.id] = column.least
            shown.append(column)
        }
        if shown.isEmpty, let first = columns.min(by: { $0.importance < $1.importance }) {
            widths[first.id] = max(0, min(width, first.least))
            return
        }
        var isGrowing = true
        while room > 0, isGrowing {
            isGrowing = false
            for column in shown where room > 0 && widths[column.id, default: 0] < column.wanted {
                widths[column.id, default: 0] += 1
                room -= 1
                isGrowing = true
            }
        }
    }
}
