/// Decides whether messages of the bus, or packets of another socket, arrive so fast that the loop should let some gather before it
/// reads again.
///
/// At tens of thousands of messages in a second, the wake-ups of this process cost it and the daemon more than the messages do;
/// after a short rest, one wake-up brings several. A pure value.
// Inlinable, because a part of it runs for each batch in other modules.
@usableFromInline
package struct FloodDetector {
    /// How many messages are counted before a decision. No room of devices and no radio link sends so many in `window`.
    @usableFromInline static var messages: Int { 64 }
    /// The nanoseconds in which they must arrive: a flood has more than 10,000 messages in a second.
    @usableFromInline static var window: UInt64 { 6_400_000 }
    /// With so many calls under way, the next reply is no longer one that the program waits for before it goes on.
    @usableFromInline static var manyCalls: Int { 32 }

    @usableFromInline var count = 0
    @usableFromInline var hasCall = false
    /// The calls that the present batch has answered.
    @usableFromInline var answered = 0
    /// When ``count`` was 0, and whether there was a flood then.
    @usableFromInline var start = Instant.origin
    @usableFromInline var isFlood = false

    package init() {}

    /// Counts what has arrived.
    ///
    /// - Parameter isCall: Whether it is a call that a peer waits for the reply to.
    @inlinable
    package mutating func received(_ messages: Int, isCall: Bool = false) {
        count += messages
        if isCall { hasCall = true }
    }

    /// Notes that what was received is the reply to a call.
    @inlinable
    package mutating func answeredCall() { answered += 1 }

    /// Ends a batch; returns whether to rest before the next one. A call from a peer ends a flood, and there is no rest as long
    /// as some calls, but fewer than ``manyCalls``, have no reply, nor when the last of them has just been answered: the program,
    /// which may learn of that later and on another thread, is about to make the next one.
    ///
    /// - Parameters:
    ///   - now: The present time, which is not asked for as long as little has arrived.
    ///   - unanswered: The number of calls that have no reply.
    @inlinable
    package mutating func batchEnded(at now: @autoclosure () -> Instant, waiting unanswered: Int = 0) -> Bool {
        let calls = unanswered + answered
        answered = 0
        guard isFlood || hasCall || count >= Self.messages else { return false }
        decide(at: now())
        return isFlood && (calls == 0 || calls >= Self.manyCalls)
    }

    @usableFromInline
    mutating func decide(at now: Instant) {
        let isLate = now.nanoseconds - start.nanoseconds > Self.window
        guard count >= Self.messages || isLate || hasCall else { return }
        isFlood = !isLate && !hasCall
        (count, hasCall, start) = (0, false, now)
    }
}
