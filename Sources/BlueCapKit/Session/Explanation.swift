import BlueCapBlueZ
import BlueCapDBus

/// Why a manager's state is what it is: the connection to BlueZ counts first, and the adapter only if there is a
/// connection.
struct Standing {
    /// The progress of the connection; `nil` when the manager has BlueZ's adapters.
    var reach: String? = "The system bus has not answered yet."
    /// The explanation of the adapter in use, or that there is none.
    var adapter = ""
    /// The capabilities of the adapter in use; without one, the values that hold for every adapter.
    private(set) var capabilities = BluetoothCapabilities()

    var explanation: String { reach ?? adapter }

    /// - Parameter new: The new capabilities; `nil` if there is no adapter.
    /// - Returns: The public value, if it has changed.
    mutating func capabilitiesChanged(to new: DaemonCapabilities?) -> BluetoothCapabilities? {
        let new = new.map { BluetoothCapabilities($0) } ?? BluetoothCapabilities()
        guard new != capabilities else { return nil }
        capabilities = new
        return new
    }
}

/// Describes the situation in one sentence that says what to do about it.
enum Explanation {
    /// Returns `nil` if the connection is ready: then the adapter decides.
    static func of(_ availability: Availability) -> String? {
        switch availability {
        case .connecting:
            "The system bus has not answered yet: if that lasts, see `systemctl status dbus`."
        case .noBus(let error) where error.name == DBusError.Name.limitsExceeded:
            "The manager cannot connect to the D-Bus system bus: \(error.message)"
        case .noBus(let error):
            "There is no connection to the D-Bus system bus (\(error.message)): "
                + "check that dbus runs (`systemctl status dbus`), "
                + "or set DBUS_SYSTEM_BUS_ADDRESS to the bus to use."
        case .refused(let error):
            "The bus does not allow this process to call bluetoothd (\(error.message)): "
                + "check the D-Bus policy for org.bluez, or run as a user that it admits."
        case .noDaemon:
            "bluetoothd is not running: start it with `systemctl start bluetooth` (Debian's package bluez)."
        case .loading:
            "bluetoothd has not answered yet: if that lasts, restart it with `systemctl restart bluetooth`."
        case .notLoaded(let error) where BlueZError(error).cause == .noReply:
            "bluetoothd does not answer (\(error.message)): if that lasts, restart it with "
                + "`systemctl restart bluetooth`."
        case .notLoaded(let error):
            "bluetoothd's objects cannot be read (\(error)): if that lasts, check which program owns org.bluez "
                + "(`busctl status org.bluez`), or restart bluetoothd with `systemctl restart bluetooth`."
        case .ready:
            nil
        }
    }

    static func of(
        _ adapter: AdapterChoice.Candidate?, isPowered: Bool?, _ powerState: Adapter1.PowerState? = nil,
        wanted: String?, present: [String]
    ) -> String {
        switch (adapter, isPowered) {
        case (let adapter?, true?):
            "The adapter \(adapter.name) (\(adapter.address)) is on."
        case (let adapter?, _) where powerState == .blocked:
            "The adapter \(adapter.name) (\(adapter.address)) is blocked: unblock it with `rfkill unblock bluetooth`, "
                + "or with the computer's switch for radios."
        case (let adapter?, _) where powerState == .turningOn:
            "The adapter \(adapter.name) (\(adapter.address)) is being switched on."
        case (let adapter?, _):
            "The adapter \(adapter.name) (\(adapter.address)) is off: switch it on with `bluetoothctl power on`; "
                + "if it is blocked, `rfkill unblock bluetooth` first."
        case (nil, _):
            if let wanted, !present.isEmpty {
                "There is no adapter \(wanted) here: choose among \(present.joined(separator: ", "))."
            } else {
                "bluetoothd has no Bluetooth adapter: plug one in, or see `rfkill list` and `bluetoothctl list`."
            }
        }
    }
}
