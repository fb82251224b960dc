/// Why a link has ended, as BlueZ reports it from 5.83 on.
public enum LinkEndCause: String, CaseIterable, Sendable {
    case unknown = "Unknown"
    case timeout = "Timeout"
    case local = "Local"
    case remote = "Remote"
    case authentication = "Authentication"
    case suspend = "Suspend"

    var name: String { "org.bluez.Reason." + rawValue }

    var message: String {
        switch self {
        case .unknown: "Unspecified"
        case .timeout: "Connection timeout"
        case .local: "Connection terminated by local host"
        case .remote: "Connection terminated by remote user"
        case .authentication: "Connection terminated due to authentication failure"
        case .suspend: "Connection terminated by local host for suspend"
        }
    }
}
