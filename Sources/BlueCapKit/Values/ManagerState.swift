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
    /// The bus does not permit this process to communicate with `bluetoothd`.
    case unauthorized
    /// There is no reply yet from the bus or `bluetoothd`.
    case unknown
    /// There is no bus, no `bluetoothd` on it, or no adapter.
    case unsupported
    /// `bluetoothd` or the bus was there and has ended. When both are back, the state follows without a call.
    case resetting
    /// The adapter is off, or blocked by rfkill.
    case poweredOff
    /// The manager can scan, connect and advertise.
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
