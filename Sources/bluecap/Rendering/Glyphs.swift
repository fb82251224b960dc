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

    static let unicode = Glyphs(
        bar: [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"], new: "●", ellipsis: "…", separator: " · ")

    static let ascii = Glyphs(bar: ["-", "#"], new: "*", ellipsis: "~", separator: " - ")
}
