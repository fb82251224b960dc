import BlueZ

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
    /// The peripheral, the radio, or another program ended it: ``Peripheral/disconnectDetail`` says which, if BlueZ does.
    case linkLost
    /// The application asked for it.
    case application
    /// The adapter was switched off or pulled out, or `bluetoothd` went away.
    case adapterLost
}

/// What BlueZ says of a link's end, from 5.83 on (``BluetoothCapabilities/disconnectReasons``).
public struct DisconnectDetail: Hashable, Sendable, CustomStringConvertible {
    /// Which side ended the link, or what did.
    public enum Cause: Hashable, Sendable, CaseIterable {
        /// The reasons of BlueZ do not contain it, or the adapter was switched off.
        case unspecified
        /// Nothing was received for the supervision timeout: the peripheral is out of range or without power.
        case timeout
        /// This computer: this program, another one, or `bluetoothd`.
        case local
        /// The peripheral.
        case remote
        /// A key was missing or refused.
        case authentication
        /// This computer, since it was about to be suspended.
        case suspend
    }

    public let cause: Cause
    /// BlueZ's name for it, such as `org.bluez.Reason.Remote`.
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
            // `org.bluez.Reason.Unknown`, and what this library does not know.
            default: .unspecified
            }
        name = end.name
        message = end.message
    }
}
