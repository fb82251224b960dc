/// Colours and weights, by their number in "Select Graphic Rendition" (ECMA-48, 8.3.117).
///
/// Only the terminal's own palette is used, so that a light background and a dark one both work.
enum Tint: Int, Sendable {
    case bold = 1
    case dim = 2
    case red = 31
    case green = 32
    case yellow = 33
    case cyan = 36
}

/// A line for a terminal that knows how many cells it takes.
struct StyledLine: Equatable, Sendable {
    private(set) var text = ""
    private(set) var width = 0

    init() {}

    init(_ text: String, _ tints: Tint..., coloured: Bool) {
        append(text, tints, coloured: coloured)
    }

    mutating func append(_ text: String, _ tints: [Tint] = [], coloured: Bool = false) {
        guard !text.isEmpty else { return }
        width += DisplayText.width(text)
        guard coloured, !tints.isEmpty, text.contains(where: { $0 != " " }) else {
            self.text += text
            return
        }
        let codes = tints.map { String($0.rawValue) }.joined(separator: ";")
        self.text += "\u{1B}[\(codes)m\(text)\u{1B}[0m"
    }
}
