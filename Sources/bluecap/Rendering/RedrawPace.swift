/// When to draw the next frame: soon after a change, but not too often, and every second for the ages.
struct RedrawPace: Sendable {
    /// Seconds between two frames at least.
    static let shortest = 0.15
    /// Seconds between two frames at most.
    static let longest = 1.0

    private var lastFrame = -Double.infinity
    /// When the frame is due for which a clock runs; `nil` where none runs.
    private var due: Double?

    /// Something to show has changed: seconds until the frame that shows it, or `nil` where a clock runs already that
    /// is early enough.
    mutating func changed(at now: Double) -> Double? { ask(for: max(now, lastFrame + Self.shortest), at: now) }

    /// Whether the clock that has just rung is the one that counts; then this is the moment to draw.
    mutating func rang(at now: Double) -> Bool {
        // Clocks may ring a little early; a clock that an earlier frame made superfluous is ignored.
        guard let due, now >= due - 0.01 else { return false }
        return true
    }

    /// A frame was drawn: seconds until the next one that is due by itself.
    mutating func drew(at now: Double) -> Double? {
        lastFrame = now
        due = nil
        return ask(for: now + Self.longest, at: now)
    }

    private mutating func ask(for time: Double, at now: Double) -> Double? {
        if let due, due <= time { return nil }
        due = time
        return time - now
    }
}
