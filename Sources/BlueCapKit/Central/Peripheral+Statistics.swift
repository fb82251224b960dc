public import Foundation

/// Statistics of the peripheral's connections, counted by its manager since the peripheral's discovery.
extension Peripheral {
    /// When the last connection began; `Date.distantPast` before the first.
    public var connectedAt: Date { statistics?.connectedAt ?? .distantPast }

    /// When the last connection ended; `Date.distantPast` before the first end.
    public var disconnectedAt: Date { statistics?.disconnectedAt ?? .distantPast }

    /// How many connection attempts have timed out.
    public var timeoutCount: UInt { statistics?.timeoutCount ?? 0 }

    /// How many connections have ended, for any reason.
    public var disconnectionCount: UInt { statistics?.disconnectionCount ?? 0 }

    /// How many connections have been made.
    public var connectionCount: UInt { statistics?.connectionCount ?? 0 }

    /// The duration of the current connection in seconds, or of the last one if there is none.
    public var secondsConnected: TimeInterval { statistics?.secondsConnected(at: session.date) ?? 0 }

    /// The total duration in seconds of all connections that have ended.
    public var totalSecondsConnected: TimeInterval { statistics?.totalSecondsConnected ?? 0 }

    /// The total duration in seconds of all connections, including the current one.
    public var cumulativeSecondsConnected: TimeInterval {
        statistics?.cumulativeSecondsConnected(at: session.date) ?? 0
    }

    /// The seconds without a connection since the discovery.
    public var cumulativeSecondsDisconnected: TimeInterval {
        (statistics ?? ConnectionStatistics()).cumulativeSecondsDisconnected(since: discoveredAt, at: session.date)
    }

    /// The documents' spelling of ``cumulativeSecondsConnected``.
    public var cumlativeSecondsConnected: TimeInterval { cumulativeSecondsConnected }

    /// The documents' spelling of ``cumulativeSecondsDisconnected``.
    public var cumlativeSecondsDisconnected: TimeInterval { cumulativeSecondsDisconnected }

    private var statistics: ConnectionStatistics? { session.readState(of: key) { $0.statistics } }
}
