import GATT

// Options of ours, beside `CBPeripheralManagerOptionRestoreIdentifierKey`. All are keys of the dictionary that a
// `PeripheralManager` takes; a value of the wrong type is answered with `PeripheralManagerError.invalidOption`.

/// `PeripheralManager(options:)`: the D-Bus address of the bus to use, a `String`.
///
/// Without it the system bus is used (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). The address of a simulator goes here.
public let PeripheralManagerOptionBusAddressKey = "PeripheralManagerOptionBusAddressKey"

/// `PeripheralManager(options:)`: which adapter to use, a `String`: a name such as `hci0`, or an address such as
/// `00:1A:7D:DA:71:13`.
///
/// Without it the adapter with the lowest number is used, and kept, by its address, while it is there.
///
/// Of several adapters with one address, the manager uses the one that it used last, by its name, else the one with the
/// lowest number. That also holds if the option is their address.
public let PeripheralManagerOptionAdapterKey = "PeripheralManagerOptionAdapterKey"

/// `PeripheralManager(options:)`: the folder in which state is kept, a `String` with an absolute path, such as what
/// systemd gives a service in `STATE_DIRECTORY`; `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap` without it.
///
/// It is made where it is missing, and matters only beside `CBPeripheralManagerOptionRestoreIdentifierKey`. It must belong to the user of
/// this process or to root, and not be writable by others unless it is sticky; a link is followed only if it is the system's,
/// as those of systemd are. Otherwise no state is restored or kept.
public let PeripheralManagerOptionStateDirectoryKey = "PeripheralManagerOptionStateDirectoryKey"

/// The `options` of a peripheral manager, read once. A wrong value is kept as `problem`, since an initializer cannot fail.
struct PeripheralManagerOptions {
    /// `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    /// Under which name the state is kept; `nil` where it is not.
    var restoreIdentifier: String?
    /// `nil` for the usual folder.
    var stateFolder: String?
    var problem: PeripheralManagerError?

    init(_ options: [String: Any]?) {
        let options = OptionReader(options)
        do {
            busAddress = try options.string(PeripheralManagerOptionBusAddressKey)
            adapter = try options.string(PeripheralManagerOptionAdapterKey)
            restoreIdentifier = try options.string(
                CBPeripheralManagerOptionRestoreIdentifierKey, where: "that is not empty"
            ) {
                !$0.isEmpty
            }
            stateFolder = try options.string(PeripheralManagerOptionStateDirectoryKey, where: "with an absolute path") {
                $0.hasPrefix("/")
            }
        } catch {
            problem = .invalidOption("\(error)")
        }
    }
}
