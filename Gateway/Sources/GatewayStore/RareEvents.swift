/// Decides when an event that may be frequent is logged: the first time, and then at most once in an interval.
struct RareEvents {
    private let interval: Duration
    private var count: Int64 = 0
    private var last: Duration?

    init(interval: Duration = .seconds(60)) { self.interval = interval }

    /// Counts events. Returns how many there were since the last result, or `nil` if they are not to be logged now.
    mutating func add(_ number: Int64 = 1, at now: Duration) -> Int64? {
        count += number
        if let last, now - last < interval { return nil }
        defer { count = 0 }
        last = now
        return count
    }
}
