// The options that this library adds to `CBPeripheralManagerOptionRestoreIdentifierKey`. All are keys of the dictionary
// that a `PeripheralManager` takes. A value of the wrong type fails with `PeripheralManagerError.invalidOption`.

/// `PeripheralManager(options:)`: the D-Bus address of the bus to use, a `String`.
///
/// Without this option the manager uses the system bus (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). Set it to the address
/// of a simulator to use that.
public let PeripheralManagerOptionBusAddressKey = "PeripheralManagerOptionBusAddressKey"

/// `PeripheralManager(options:)`: the adapter to use, a `String`: a name such as `hci0`, or an address such as
/// `00:1A:7D:DA:71:13`.
///
/// Without this option the manager uses the adapter with the lowest number, and keeps it, by its address, while it is
/// present.
///
/// If several adapters have one address, the manager uses the one that it used last, by its name, or else the one with
/// the lowest number. That also holds if the option is their address.
public let PeripheralManagerOptionAdapterKey = "PeripheralManagerOptionAdapterKey"

/// `PeripheralManager(options:)`: the folder in which state is kept, a `String` with an absolute path, such as the one
/// that systemd passes to a service in `STATE_DIRECTORY`; `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap` without
/// this option.
///
/// The folder is created if it is missing. The option has an effect only together with
/// `CBPeripheralManagerOptionRestoreIdentifierKey`. The folder must belong to the user of this process or to root, and
/// must not be writable by others unless it is sticky. A symbolic link is followed only if it belongs to the system, as
/// those of systemd do. Otherwise no state is restored or kept.
public let PeripheralManagerOptionStateDirectoryKey = "PeripheralManagerOptionStateDirectoryKey"
