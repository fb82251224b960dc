import BlueCapReactor

/// Decides whether signals arrive so fast that the loop should let some gather before it reads again.
///
/// At tens of thousands of signals in a second, the wake-ups of this process cost it and the daemon more than the signals do;
/// after a short rest, one wake-up brings several. A pure value.
struct FloodDetector {
    /// How many signals are counted before a decision. No room of devices and no radio link sends so many in `window`.
    static let signals = 64
    /// The time in which they must arrive: a flood has more than 10,000 signals in a second.
    static let window: UInt64 = 6_400_000

    private var count = 0
    private var others = 0
    private var start = Instant.origin
    private var isFlood = false

    mutating func received(isSignal: Bool) {
        if isSignal { count += 1 } else { others += 1 }
    }

    /// Ends a batch; returns whether to rest before the next one. A batch with another message than signals ends a flood: who
    /// exchanges calls and replies waits no longer than necessary.
    mutating func batchEnded(at now: Instant) -> Bool {
        let isLate = now.nanoseconds - start.nanoseconds > Self.window
        guard count >= Self.signals || isLate || others > 0 else { return isFlood }
        isFlood = !isLate && others == 0
        (count, others, start) = (0, 0, now)
        return isFlood
    }
}
