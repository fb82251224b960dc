import Reactor

/// The requests of centrals that wait for the application's answer.
///
/// `bluetoothd` waits five seconds for an answer, then refuses by itself, and a link that falls meanwhile may take it down
/// (seen in the radio lab at 5.66); a central would wait thirty (Core Specification, Vol 3, Part F, 3.3.3). So what the
/// application does not answer in ``limit`` seconds is refused here. Pure: answers and timers are the caller's.
struct RequestLedger {
    struct Number: Hashable, Sendable {
        let rawValue: UInt64
    }

    static let limit = 4.0

    /// In the order of their arrival, which is that of their deadlines.
    private var open: [(number: Number, arrival: Instant)] = []
    private var last: UInt64 = 0
    private var hasTimer = false

    var count: Int { open.count }

    /// A request has come. Answers its number, and after how many seconds ``timerFired(at:)`` is to be called, unless that
    /// is under way.
    mutating func arrived(at now: Instant) -> (number: Number, timer: Double?) {
        last += 1
        let number = Number(rawValue: last)
        open.append((number, now))
        return (number, startTimer(at: now))
    }

    /// The application answers. Whether the request was open: an answer counts once.
    mutating func answered(_ number: Number) -> Bool {
        guard let index = open.firstIndex(where: { $0.number == number }) else { return false }
        open.remove(at: index)
        return true
    }

    /// Answers those whose time is up, and when to look again.
    mutating func timerFired(at now: Instant) -> (expired: [Number], timer: Double?) {
        hasTimer = false
        let count = open.prefix { now.seconds(since: $0.arrival) >= Self.limit }.count
        let expired = open.prefix(count).map(\.number)
        open.removeFirst(count)
        return (expired, startTimer(at: now))
    }

    /// Nobody answers any more.
    mutating func closeAll() -> [Number] {
        defer { open = [] }
        return open.map(\.number)
    }

    private mutating func startTimer(at now: Instant) -> Double? {
        guard !hasTimer, let first = open.first else { return nil }
        hasTimer = true
        return max(Self.limit - now.seconds(since: first.arrival), 0)
    }
}
