/// A bar that shows how strong a signal is.
struct SignalBar: Sendable {
    /// dBm at which a bar is empty: about what a receiver can hear at all.
    static let weakest = -100.0
    /// dBm at which a bar is full: a peripheral that touches the adapter.
    static let strongest = -35.0

    let cells: Int
    let glyphs: Glyphs

    /// The bar's text, always `cells` wide, without trailing colour.
    func text(_ rssi: Int) -> String {
        let steps = glyphs.bar.count - 1
        let share = (Double(rssi) - Self.weakest) / (Self.strongest - Self.weakest)
        let filled = Int((min(max(share, 0), 1) * Double(cells * steps)).rounded())
        return (0..<cells).map { cell in
            glyphs.bar[min(max(filled - cell * steps, 0), steps)]
        }.joined()
    }

    /// Green is near, yellow is in the room, red is at the edge.
    static func tint(_ rssi: Int) -> Tint {
        switch rssi {
        case (-67)...: .green
        case (-82)...: .yellow
        default: .red
        }
    }
}
