/// What happens to a connection, as `connect(timeoutRetries:disconnectRetries:connectionTimeout:capacity:)` tells it.
public enum ConnectionEvent: Hashable, Sendable, CaseIterable {
    /// The link is up.
    case connect
    /// The link did not come up within the time-out. `reconnect(withDelay:)` tries again.
    case timeout
    /// The link was lost. `reconnect(withDelay:)` tries again.
    case disconnect
    /// The application ended the connection, or the attempt at one.
    case forceDisconnect
    /// The retries that `connect` allowed are spent; the stream ends.
    case giveUp
}

/// Why a peripheral's last link ended.
public enum DisconnectReason: Hashable, Sendable {
    /// The peripheral, the radio, or another program ended it: BlueZ 5.66 does not tell which.
    case linkLost
    /// The application asked for it.
    case application
    /// The adapter was switched off or pulled out, or `bluetoothd` went away.
    case adapterLost
}
