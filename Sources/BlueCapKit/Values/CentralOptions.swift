// Options of ours, beside the ones that GATT takes over from Core Bluetooth. All are keys of the `options`
// dictionaries; a value of the wrong type or range is answered with `CentralManagerError.invalidOption`.

/// `CentralManager(options:)`: the D-Bus address of the bus to use, a `String`.
///
/// Without it the system bus is used (`DBUS_SYSTEM_BUS_ADDRESS` is honoured). The address of a simulator goes here.
public let CentralManagerOptionBusAddressKey = "CentralManagerOptionBusAddressKey"

/// `CentralManager(options:)`: which adapter to use, a `String`: a name such as `hci0`, or an address such as
/// `00:1A:7D:DA:71:13`.
///
/// Without it the adapter with the lowest number is used, and kept, by its address, while it is there.
///
/// Of several adapters with one address, the manager uses the one that it used last, by its name, else the one with the
/// lowest number. That also holds if the option is their address.
public let CentralManagerOptionAdapterKey = "CentralManagerOptionAdapterKey"

/// `CentralManager(options:)`: how many peripherals the manager remembers at most, an `Int` from 1; 16 384 without it.
///
/// Where more are heard, those silent for the longest are forgotten first.
public let CentralManagerOptionMaximumPeripheralsKey = "CentralManagerOptionMaximumPeripheralsKey"

/// `CentralManager(options:)`: whether links that the manager opened stay up when it is deallocated, a `Bool`; `false`
/// without it.
///
/// `bluetoothd` keeps a link when the program that asked for it is gone, and a peripheral that is connected advertises no
/// more: nobody would find it. Links that other programs opened are left alone either way.
public let CentralManagerOptionKeepsLinksKey = "CentralManagerOptionKeepsLinksKey"

/// `CentralManager(options:)`: the folder in which state is kept, a `String` with an absolute path, such as what systemd
/// gives a service in `STATE_DIRECTORY`; `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap` without it.
///
/// It is made where it is missing, and matters only beside `CBCentralManagerOptionRestoreIdentifierKey`. It must belong to the user of
/// this process or to root, and not be writable by others unless it is sticky; a link is followed only if it is the system's,
/// as those of systemd are. Otherwise no state is restored or kept.
public let CentralManagerOptionStateDirectoryKey = "CentralManagerOptionStateDirectoryKey"

/// `startScanning(options:)`: the weakest signal to report, an `Int` in dBm from -127 to 20.
///
/// A sighting whose strength is not known is never stronger than the threshold.
public let CentralManagerScanOptionRSSIThresholdKey = "CentralManagerScanOptionRSSIThresholdKey"

/// `startScanning(options:)`: a prefix of the name or of the address that a peripheral must have, a `String`.
///
/// Names are compared case by case, addresses without regard to case.
public let CentralManagerScanOptionPatternKey = "CentralManagerScanOptionPatternKey"

/// `startScanning(options:)`: after how many seconds without any report the discovery is restarted, a number;
/// 90 without it, 0 for never.
public let CentralManagerScanOptionWatchdogKey = "CentralManagerScanOptionWatchdogKey"
