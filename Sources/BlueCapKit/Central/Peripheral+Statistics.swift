public import Foundation
import Reactor

/// Statistics of the peripheral's connections, counted by its manager since the peripheral's discovery.
extension Peripheral {
    /// When the last connection began; `Date.distantPast` before the first.
    public var connectedAt: Date { counts?.connectedAt ?? .distantPast }

    /// When the last connection ended; `Date.distantPast` before the first end.
    public var disconnectedAt: Date { counts?.disconnectedAt ?? .distantPast }

    /// How many connection attempts have timed out.
    public var timeoutCount: UInt { counts?.timeoutCount ?? 0 }

    /// How many connections have ended, for any reason.
    public var disconnectionCount: UInt { counts?.disconnectionCount ?? 0 }

    /// How many connections have been made.
    public var connectionCount: UInt { counts?.connectionCount ?? 0 }

    /// The duration of the current connection in seconds, or of the last one if there is none.
    public var secondsConnected: TimeInterval { counts?.secondsConnected(at: session.date) ?? 0 }

    /// The total duration in seconds of all connections that have ended.
    public var totalSecondsConnected: TimeInterval { counts?.totalSecondsConnected ?? 0 }

    /// The total duration in seconds of all connections, including the current one.
    public var cumulativeSecondsConnected: TimeInterval {
        counts?.cumulativeSecondsConnected(at: session.date) ?? 0
    }

    /// The seconds without a connection since the discovery.
    public var cumulativeSecondsDisconnected: TimeInterval {
        (counts ?? ConnectionStatistics()).cumulativeSecondsDisconnected(since: discoveredAt, at: session.date)
    }

    /// The documents' spelling of ``cumulativeSecondsConnected``.
    public var cumlativeSecondsConnected: TimeInterval { cumulativeSecondsConnected }

    /// The documents' spelling of ``cumulativeSecondsDisconnected``.
    public var cumlativeSecondsDisconnected: TimeInterval { cumulativeSecondsDisconnected }

    /// What has happened with this peripheral: a copy of the present numbers, which can be compared and encoded.
    ///
    /// They begin again at zero when the application has released this object. Any thread may read them.
    public var statistics: PeripheralStatistics {
        let now = session.loop.now
        return session.core.withLock { CentralCounter.statistics(of: key, in: $0, at: now) }
    }

    private var counts: ConnectionStatistics? { session.readState(of: key) { $0.statistics } }
}
