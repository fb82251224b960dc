/// One scan of one user on an adapter; several share the adapter's one discovery session.
package struct ScanID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Why a session that was up had to be started anew.
package enum ScanRestartReason: Hashable, Sendable {
    /// No device was heard for the watchdog's time.
    case silence
    /// `Discovering` became false although nobody here stopped it.
    case discoveringEnded
    /// The adapter was off or away and is back.
    case adapterReturned
    /// `bluetoothd` refused to change the filter of the running session.
    case filterRefused
}

/// What the machine is told of, what it orders, and what it knows.
extension DiscoveryMachine {
    package enum Timer: Hashable, Sendable, CaseIterable {
        /// Until a refused start or stop is tried again.
        case retry
        /// Until silence becomes suspicious.
        case watchdog
    }

    package enum Effect: Hashable, Sendable {
        /// `SetDiscoveryFilter`; answer with ``DiscoveryMachine/setFilterReplied(_:error:)``.
        case setFilter(RequestID, DiscoveryFilter)
        /// `StartDiscovery`; answer with ``DiscoveryMachine/startReplied(_:error:)``.
        case startDiscovery(RequestID)
        /// `StopDiscovery`; answer with ``DiscoveryMachine/stopReplied(_:error:)``.
        case stopDiscovery(RequestID)
        /// `SetDiscoveryFilter` with nothing in it; answer with ``DiscoveryMachine/setFilterReplied(_:error:)``.
        case clearFilter(RequestID)
        /// Starts the timer, or starts it again.
        case startTimer(Timer, seconds: Double)
        case cancelTimer(Timer)
        /// Reports arrive from now on.
        case scanStarted(ScanID)
        /// There was a gap.
        case scanRestarted(ScanID, ScanRestartReason)
        /// The scan is over; the machine has forgotten it.
        case scanFailed(ScanID, BlueZError)
    }

    /// What is known of the session that BlueZ keeps for us.
    package enum Session: Hashable, Sendable {
        /// No adapter, or it is off: BlueZ has dropped filter and session.
        case unavailable
        /// The adapter is on, no session.
        case idle
        case settingFilter(RequestID, DiscoveryFilter)
        case starting(RequestID, DiscoveryFilter)
        case running(DiscoveryFilter)
        /// `SetDiscoveryFilter` under way in a running session. `bluetoothd` restarts the scan by itself if it has to,
        /// without a word on the bus (`update_discovery_filter` in its adapter.c).
        case updatingFilter(RequestID, DiscoveryFilter)
        case stopping(RequestID, Purpose)
        /// The session has ended, and its filter, which BlueZ keeps beyond that, is being taken back. A client that
        /// leaves the bus with a filter and no session ends another client's scan (`discovery_disconnect` at 5.66).
        case clearingFilter(RequestID)
        /// A start or stop was refused; the retry timer runs.
        case waiting(Step)
    }

    package enum Purpose: Hashable, Sendable {
        /// Nobody scans any more.
        case unwanted
        /// To start again at once.
        case restart
        /// A start was refused as being in progress: end whatever is left of it.
        case clearing
    }

    package enum Step: Hashable, Sendable {
        case start
        case stop
    }

    package struct Scan: Hashable, Sendable {
        package let id: ScanID
        package var filter: DiscoveryFilter
        /// After how long without any report the session is started anew; `nil` for never. Of several the shortest counts.
        package let watchdogSeconds: Double?

        package init(_ id: ScanID, _ filter: DiscoveryFilter, watchdogSeconds: Double? = 90) {
            self.id = id
            self.filter = filter
            self.watchdogSeconds = watchdogSeconds
        }
    }
}
