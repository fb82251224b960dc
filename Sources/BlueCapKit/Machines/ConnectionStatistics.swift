import Foundation

/// Counts and durations of the connections of one peripheral; the caller supplies the dates.
///
/// If the clock is set back between two dates, no time is negative.
struct ConnectionStatistics: Equatable {
    /// `Date.distantPast` until there was a connection.
    private(set) var connectedAt = Date.distantPast
    /// `Date.distantPast` until a connection has ended.
    private(set) var disconnectedAt = Date.distantPast
    private(set) var connectionCount: UInt = 0
    /// The number of connections that ended, for any reason.
    private(set) var disconnectionCount: UInt = 0
    private(set) var timeoutCount: UInt = 0
    /// Seconds of all connections that have ended.
    private(set) var totalSecondsConnected: TimeInterval = 0
    private(set) var isConnected = false
    private var secondsOfLast: TimeInterval = 0

    mutating func connected(at date: Date) {
        guard !isConnected else { return }
        isConnected = true
        connectedAt = date
        connectionCount += 1
    }

    mutating func disconnected(at date: Date) {
        guard isConnected else { return }
        isConnected = false
        disconnectedAt = date
        disconnectionCount += 1
        secondsOfLast = max(0, date.timeIntervalSince(connectedAt))
        totalSecondsConnected += secondsOfLast
    }

    mutating func timedOut() { timeoutCount += 1 }

    /// Returns the seconds of the present connection, or else of the last one.
    func secondsConnected(at date: Date) -> TimeInterval {
        isConnected ? max(0, date.timeIntervalSince(connectedAt)) : secondsOfLast
    }

    /// Returns the seconds of all connections, including the present one.
    func cumulativeSecondsConnected(at date: Date) -> TimeInterval {
        totalSecondsConnected + (isConnected ? secondsConnected(at: date) : 0)
    }

    /// Returns the seconds since the discovery without a connection.
    func cumulativeSecondsDisconnected(since discovery: Date, at date: Date) -> TimeInterval {
        max(0, date.timeIntervalSince(discovery) - cumulativeSecondsConnected(at: date))
    }
}
