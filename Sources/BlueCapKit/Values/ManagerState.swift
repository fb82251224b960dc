/// Whether Bluetooth can be used at the moment, as `CentralManager.state` and `whenStateChanges()` tell it.
///
/// On Linux the answer comes from `bluetoothd` over D-Bus:
///
/// | state | what is the case |
/// |---|---|
/// | `unknown` | nobody has answered yet |
/// | `unsupported` | no bus, no `org.bluez` on it, or no adapter |
/// | `unauthorized` | the bus refuses to let this process talk to `bluetoothd` |
/// | `poweredOff` | the adapter is off, or blocked by rfkill |
/// | `poweredOn` | ready |
/// | `resetting` | `bluetoothd` or the bus went away after being there; the manager comes back by itself when they do |
public enum ManagerState: CustomStringConvertible, Hashable, Sendable, CaseIterable {
    case unauthorized
    case unknown
    case unsupported
    case resetting
    case poweredOff
    case poweredOn

    /// Another name for ``unknown``, which one revision of the documents uses.
    public static var unlikely: ManagerState { .unknown }

    public var description: String {
        switch self {
        case .unauthorized: "unauthorized"
        case .unknown: "unknown"
        case .unsupported: "unsupported"
        case .resetting: "resetting"
        case .poweredOff: "poweredOff"
        case .poweredOn: "poweredOn"
        }
    }
}
