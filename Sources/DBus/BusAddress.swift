import Foundation

/// Which bus to connect to.
package enum BusAddress: Hashable, Sendable {
    /// The system bus, where BlueZ is: `DBUS_SYSTEM_BUS_ADDRESS` where it is set, else the socket at its usual place.
    case system
    /// The user's session bus: `DBUS_SESSION_BUS_ADDRESS` where it is set, else the socket of the user's runtime directory.
    case session
    /// Any address as the D-Bus specification writes it, or "loopback:name=…" for a `LoopbackBus` of this process.
    case custom(String)

    /// The address's text. An empty variable counts as one that is not set.
    package func resolved(environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        switch self {
        case .system:
            return value("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/var/run/dbus/system_bus_socket"
        case .session:
            let directory = value("XDG_RUNTIME_DIR") ?? "/run/user/\(getuid())"
            return value("DBUS_SESSION_BUS_ADDRESS") ?? "unix:path=\(directory)/bus"
        case .custom(let text):
            return text
        }
    }
}
