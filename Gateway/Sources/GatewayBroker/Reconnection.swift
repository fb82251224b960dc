/// Which broker a transport tries next, and after how long.
struct Reconnection {
    private let count: Int
    private var failures = 0
    private(set) var index = 0

    /// After a connection that lasted as long, the delay is the shortest again.
    static let stable: Duration = .seconds(10)

    /// - Parameter count: The number of addresses.
    init(count: Int) { self.count = count }

    /// How many times all addresses have failed since the last stable connection.
    var round: Int { failures / count }

    /// Counts the end of a connection or of an attempt, and goes on to the next address.
    ///
    /// - Parameter lasted: How long the connection lasted, `nil` for an attempt that failed.
    /// - Returns: The time until the next attempt. It is random in a range that begins as 0.5…1 s and doubles after each
    ///   round through the addresses, until it is 15…30 s.
    mutating func ended(
        after lasted: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        if let lasted, lasted >= Self.stable { failures = 0 }
        let longest = min(30, Double(1 << min(round, 5)))
        failures += 1
        index = (index + 1) % count
        return .seconds(Double.random(in: longest / 2...longest, using: &generator))
    }
}
