public import Foundation

/// What the connections of a peripheral amounted to, counted by its manager since the peripheral's discovery.
extension Peripheral {
    /// When the last connection began; `Date.distantPast` before the first.
    public var connectedAt: Date { statistics?.connectedAt ?? .distantPast }

    /// When the last connection ended; `Date.distantPast` before that.
    public var disconnectedAt: Date { statistics?.disconnectedAt ?? .distantPast }

    /// How many tries ended with their time-out.
    public var timeoutCount: UInt { statistics?.timeoutCount ?? 0 }

    /// How many connections have ended, whoever ended them.
    public var disconnectionCount: UInt { statistics?.disconnectionCount ?? 0 }

    /// How many connections there were.
    public var connectionCount: UInt { statistics?.connectionCount ?? 0 }

    /// Seconds of the present connection, or of the last one where there is none.
    public var secondsConnected: TimeInterval { statistics?.secondsConnected(at: session.date) ?? 0 }

    /// Seconds of all connections that have ended.
    public var totalSecondsConnected: TimeInterval { statistics?.totalSecondsConnected ?? 0 }

    /// Seconds of all connections, the present one included.
    public var cumulativeSecondsConnected: TimeInterval {
        statistics?.cumulativeSecondsConnected(at: session.date) ?? 0
    }

    /// Seconds since the discovery without a connection.
    public var cumulativeSecondsDisconnected: TimeInterval {
        (statistics ?? ConnectionStatistics()).cumulativeSecondsDisconnected(since: discoveredAt, at: session.date)
    }

    /// The documents' spelling of ``cumulativeSecondsConnected``.
    public var cumlativeSecondsConnected: TimeInterval { cumulativeSecondsConnected }

    /// The documents' spelling of ``cumulativeSecondsDisconnected``.
    public var cumlativeSecondsDisconnected: TimeInterval { cumulativeSecondsDisconnected }

    private var statistics: ConnectionStatistics? { session.readState(of: key) { $0.statistics } }
}
