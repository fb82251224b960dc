public import Foundation
import BlueCapReactor

/// Statistics of the peripheral's connections, counted by its manager since the peripheral's discovery.
extension Peripheral {
    /// When the last connection began; `Date.distantPast` before the first.
    public var connectedAt: Date { counter.connectedAt }

    /// When the last connection ended; `Date.distantPast` before the first end.
    public var disconnectedAt: Date { counter.disconnectedAt }

    /// How many connection attempts have timed out.
    public var timeoutCount: UInt { counter.timeouts }

    /// How many connections have ended, for any reason.
    public var disconnectionCount: UInt { UInt(counter.counts.disconnections) }

    /// How many connections have been made.
    public var connectionCount: UInt { UInt(counter.counts.connections) }

    /// The duration of the current connection in seconds, or of the last one if there is none.
    public var secondsConnected: TimeInterval { counter.secondsConnected(at: session.loop.now) }

    /// The total duration in seconds of all connections that have ended.
    public var totalSecondsConnected: TimeInterval { counter.counts.secondsConnected }

    /// The total duration in seconds of all connections, including the current one.
    public var cumulativeSecondsConnected: TimeInterval { counter.statistics(at: session.loop.now).secondsConnected }

    /// The seconds without a connection since the discovery.
    public var cumulativeSecondsDisconnected: TimeInterval {
        // The clock may have been set back.
        max(0, session.date.timeIntervalSince(discoveredAt) - cumulativeSecondsConnected)
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
        return session.core.withLock { CentralCounter.statistics(of: key, in: &$0, at: now) }
    }

    private var counter: CentralCounter.OfPeripheral {
        session.use(of: key) { $0.counter } ?? CentralCounter.OfPeripheral()
    }
}
