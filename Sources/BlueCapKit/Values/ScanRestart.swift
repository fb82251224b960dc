import BlueZ

/// Why a scan's discovery had to be started anew in BlueZ. The scan went on; what was sent meanwhile was not heard.
public enum ScanRestart: Hashable, Sendable {
    /// Nobody was heard for longer than the watchdog's time of 90 seconds.
    case silence
    /// BlueZ ended the discovery although nobody here asked for it.
    case discoveringEnded
    /// The adapter was off or away, or `bluetoothd` was, and is back.
    case adapterReturned
    /// BlueZ refused to change the filter of the running discovery.
    case filterRefused

    init(_ reason: ScanRestartReason) {
        self =
            switch reason {
            case .silence: .silence
            case .discoveringEnded: .discoveringEnded
            case .adapterReturned: .adapterReturned
            case .filterRefused: .filterRefused
            }
    }
}
