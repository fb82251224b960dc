/// The characters that the table is drawn with.
struct Glyphs: Equatable, Sendable {
    /// From an empty cell of a bar to a full one.
    var bar: [String]
    /// Marks a peripheral that is new.
    var new: String
    /// Stands for what was cut.
    var ellipsis: String
    /// Between the parts of the status line.
    var separator: String
    /// Before an entry of a tree, before the last one, and below those that have some after them.
    var branch: String
    var lastBranch: String
    var trunk: String

    static let unicode = Glyphs(
        bar: [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"], new: "●", ellipsis: "…", separator: " · ",
        branch: "├─ ", lastBranch: "└─ ", trunk: "│  ")

    static let ascii = Glyphs(
        bar: ["-", "#"], new: "*", ellipsis: "~", separator: " - ", branch: "|- ",
        lastBranch: "`- ", trunk: "|  ")
}
