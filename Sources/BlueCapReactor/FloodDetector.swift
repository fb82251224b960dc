/// Decides whether messages of the bus, or packets of another socket, arrive so fast that the loop should let some gather before it
/// reads again.
///
/// At tens of thousands of messages in a second, the wake-ups of this process cost it and the daemon more than the messages do;
/// after a short rest, one wake-up brings several. A pure value.
package struct FloodDetector {
    /// How many messages are counted before a decision. No room of devices and no radio link sends so many in `window`.
    static let messages = 64
    /// The nanoseconds in which they must arrive: a flood has more than 10,000 messages in a second.
    static let window: UInt64 = 6_400_000
    /// With so many calls under way, the next reply is no longer one that the program waits for before it goes on.
    static let manyCalls = 32

    @usableFromInline var count = 0
    @usableFromInline var hasCall = false
    /// The calls that the present batch has answered.
    private var answered = 0
    private var start = Instant.origin
    private var isFlood = false

    package init() {}

    /// Counts what has arrived.
    ///
    /// - Parameter isCall: Whether it is a call that a peer waits for the reply to.
    @inlinable
    package mutating func received(_ messages: Int = 1, isCall: Bool = false) {
        count += messages
        if isCall { hasCall = true }
    }

    /// Notes that what was received is the reply to a call.
    package mutating func answeredCall() { answered += 1 }

    /// Ends a batch; returns whether to rest before the next one. A call from a peer ends a flood, and there is no rest as long
    /// as some calls, but fewer than ``manyCalls``, have no reply, nor when the last of them has just been answered: the program,
    /// which may learn of that later and on another thread, is about to make the next one.
    ///
    /// - Parameters:
    ///   - now: The present time.
    ///   - unanswered: The number of calls that have no reply.
    package mutating func batchEnded(at now: Instant, waiting unanswered: Int = 0) -> Bool {
        let calls = unanswered + exchange(&answered, with: 0)
        let isLate = now.nanoseconds - start.nanoseconds > Self.window
        if count >= Self.messages || isLate || hasCall {
            isFlood = !isLate && !hasCall
            (count, hasCall, start) = (0, false, now)
        }
        return isFlood && (calls == 0 || calls >= Self.manyCalls)
    }
}
