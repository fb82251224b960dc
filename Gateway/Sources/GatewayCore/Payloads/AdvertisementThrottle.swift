/// When the advertisements of one peripheral are published again: a value for each peripheral.
public struct AdvertisementThrottle: Sendable {
    private var last: (time: Duration, strength: Int?, fingerprint: Int?)?

    /// Creates the value of a peripheral of which nothing was published.
    public init() {}

    /// Makes the next report a change; the shortest time between two messages is kept.
    public mutating func forget() { last?.fingerprint = nil }

    /// Returns whether a report is published now, and if so keeps it as the last one that was.
    ///
    /// - Parameters:
    ///   - time: The time on a clock that does not run backwards.
    ///   - strength: The strength in dBm.
    ///   - fingerprint: A hash of the advertised data: a report with another one is a change.
    ///   - options: The limits.
    public mutating func admits(
        at time: Duration, strength: Int?, fingerprint: Int, options: GatewayConfiguration.ThrottleOptions
    ) -> Bool {
        guard let last else {
            self.last = (time, strength, fingerprint)
            return true
        }
        let elapsed = time - last.time
        guard elapsed >= options.minimumInterval else { return false }
        let change =
            strength.flatMap { now in last.strength.map { abs(now - $0) } } ?? (strength == last.strength ? 0 : .max)
        guard fingerprint != last.fingerprint || change >= options.strengthChange || elapsed >= options.heartbeat else {
            return false
        }
        self.last = (time, strength, fingerprint)
        return true
    }
}
