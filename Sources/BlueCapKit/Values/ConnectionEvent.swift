import BlueCapBlueZ

/// A change of a connection, as `connect(timeoutRetries:disconnectRetries:connectionTimeout:capacity:)` reports it.
public enum ConnectionEvent: Hashable, Sendable, CaseIterable {
    /// The link is up.
    case connect
    /// The link did not come up within the time-out. `reconnect(withDelay:)` tries again.
    case timeout
    /// The link was lost. `reconnect(withDelay:)` tries again.
    case disconnect
    /// The application ended the connection, or the attempt to connect.
    case forceDisconnect
    /// The retries that `connect` allowed have been used; the stream ends.
    case giveUp
}

/// A change of a connection, as ``Peripheral/stayConnected(timeout:)`` reports it.
public enum ConnectionChange: Hashable, Sendable {
    /// The link is up.
    case connected
    /// The link was lost; the next attempt follows. ``Peripheral/disconnectDetail`` has BlueZ's cause.
    case disconnected(DisconnectReason)
    /// The link did not come up within the time limit of an attempt; the next one follows.
    case timedOut
}

/// Why a peripheral's last link ended.
public enum DisconnectReason: Hashable, Sendable {
    /// The peripheral, the radio, or another program ended it: ``Peripheral/disconnectDetail`` has the cause, if BlueZ
    /// reports it.
    case linkLost
    /// The application requested it.
    case application
    /// The adapter was switched off or removed, or `bluetoothd` ended.
    case adapterLost
}

/// BlueZ's report of why a link ended, from 5.83 on (``BluetoothCapabilities/disconnectReasons``).
public struct DisconnectDetail: Hashable, Sendable, CustomStringConvertible {
    /// The side that ended the link, or the cause.
    public enum Cause: Hashable, Sendable, CaseIterable {
        /// BlueZ has no name for the reason, or the adapter was switched off.
        case unspecified
        /// Nothing was received within the supervision timeout: the peripheral is out of range or without power.
        case timeout
        /// This computer: this program, another one, or `bluetoothd`.
        case local
        /// The peripheral.
        case remote
        /// A key was missing or refused.
        case authentication
        /// This computer, because it was about to be suspended.
        case suspend
    }

    /// The side that ended the link, or the cause.
    public let cause: Cause
    /// BlueZ's name for the reason, such as `org.bluez.Reason.Remote`.
    public let name: String
    /// BlueZ's sentence, such as "Connection terminated by remote user".
    public let message: String

    public var description: String { message.isEmpty ? name : "\(name): \(message)" }

    init(_ end: LinkEnd) {
        cause =
            switch end.name {
            case "org.bluez.Reason.Timeout": .timeout
            case "org.bluez.Reason.Local": .local
            case "org.bluez.Reason.Remote": .remote
            case "org.bluez.Reason.Authentication": .authentication
            case "org.bluez.Reason.Suspend": .suspend
            // `org.bluez.Reason.Unknown`, and names that this library does not have.
            default: .unspecified
            }
        name = end.name
        message = end.message
    }
}
