import Foundation

/// Counts and durations of the connections of one peripheral; dates are the caller's.
///
/// A clock that is set back between two dates yields no negative times.
struct ConnectionStatistics: Equatable {
    /// `Date.distantPast` until there was a connection.
    private(set) var connectedAt = Date.distantPast
    /// `Date.distantPast` until one ended.
    private(set) var disconnectedAt = Date.distantPast
    private(set) var connectionCount: UInt = 0
    /// Ends of connections, for any reason.
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

    /// Seconds of the connection that is, or else of the last one.
    func secondsConnected(at date: Date) -> TimeInterval {
        isConnected ? max(0, date.timeIntervalSince(connectedAt)) : secondsOfLast
    }

    /// Seconds of all connections, the one that is included.
    func cumulativeSecondsConnected(at date: Date) -> TimeInterval {
        totalSecondsConnected + (isConnected ? secondsConnected(at: date) : 0)
    }

    /// Seconds since the discovery without a connection.
    func cumulativeSecondsDisconnected(since discovery: Date, at date: Date) -> TimeInterval {
        max(0, date.timeIntervalSince(discovery) - cumulativeSecondsConnected(at: date))
    }
}
