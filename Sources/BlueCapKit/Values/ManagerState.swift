/// Whether Bluetooth can be used now: the type of `CentralManager.state` and the elements of `whenStateChanges()`.
///
/// On Linux the state follows from the bus, from `bluetoothd`, and from the adapter:
///
/// | state | meaning |
/// |---|---|
/// | `unknown` | no reply yet from the bus or `bluetoothd` |
/// | `unsupported` | no bus, no `org.bluez` on it, or no adapter |
/// | `unauthorized` | the bus does not permit this process to communicate with `bluetoothd` |
/// | `poweredOff` | the adapter is off, or blocked by rfkill |
/// | `poweredOn` | ready |
/// | `resetting` | `bluetoothd` or the bus was there and has ended; when they return, so does the manager |
public enum ManagerState: CustomStringConvertible, Hashable, Sendable, CaseIterable {
    case unauthorized
    case unknown
    case unsupported
    case resetting
    case poweredOff
    case poweredOn

    /// Another name for ``unknown``, which one revision of the original documents uses.
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
