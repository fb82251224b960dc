// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The keys of Core Bluetooth's option dictionaries, with the spellings and values they have on Apple's platforms.

// MARK: A central manager's options

/// Whether the system shows an alert if Bluetooth is off; a `Bool`. There is no such alert on Linux: it is ignored.
public let CBCentralManagerOptionShowPowerAlertKey = "kCBInitOptionShowPowerAlert"
/// The name under which a central manager's state is saved and restored; a `String`.
public let CBCentralManagerOptionRestoreIdentifierKey = "kCBInitOptionRestoreIdentifier"

// MARK: Options of a scan

/// Whether each sighting of a peripheral is reported, and not only the first; a `Bool`, `false` by default.
public let CBCentralManagerScanOptionAllowDuplicatesKey = "kCBScanOptionAllowDuplicates"
/// Services that a peripheral looks for in a central; `[CBUUID]`.
public let CBCentralManagerScanOptionSolicitedServiceUUIDsKey = "kCBScanOptionSolicitedServiceUUIDs"

// MARK: Options of a connection

/// Whether the system shows an alert for a connection while the program is suspended; a `Bool`. Ignored on Linux.
public let CBConnectPeripheralOptionNotifyOnConnectionKey = "kCBConnectOptionNotifyOnConnection"
/// Whether the system shows an alert for a disconnection while the program is suspended; a `Bool`. Ignored on Linux.
public let CBConnectPeripheralOptionNotifyOnDisconnectionKey = "kCBConnectOptionNotifyOnDisconnection"
/// Whether the system shows an alert for notifications while the program is suspended; a `Bool`. Ignored on Linux.
public let CBConnectPeripheralOptionNotifyOnNotificationKey = "kCBConnectOptionNotifyOnNotification"

// MARK: The restored state of a central manager

/// The peripherals that were connected or connecting; an array of them.
public let CBCentralManagerRestoredStatePeripheralsKey = "kCBRestoredPeripherals"
/// The services that were scanned for; `[CBUUID]`.
public let CBCentralManagerRestoredStateScanServicesKey = "kCBRestoredScanServices"
/// The options of the scan that was running; `[String: Any]`.
public let CBCentralManagerRestoredStateScanOptionsKey = "kCBRestoredScanOptions"

// MARK: A peripheral manager's options

/// Whether the system shows an alert if Bluetooth is off; a `Bool`. Ignored on Linux.
public let CBPeripheralManagerOptionShowPowerAlertKey = "kCBInitOptionShowPowerAlert"
/// The name under which a peripheral manager's state is saved and restored; a `String`.
public let CBPeripheralManagerOptionRestoreIdentifierKey = "kCBInitOptionRestoreIdentifier"
/// The services that were published; an array of them.
public let CBPeripheralManagerRestoredStateServicesKey = "kCBRestoredServices"
/// The advertisement; `[String: Any]`.
public let CBPeripheralManagerRestoredStateAdvertisementDataKey = "kCBRestoredAdvertisement"

// MARK: The contents of an advertisement

/// The local name; a `String`.
public let CBAdvertisementDataLocalNameKey = "kCBAdvDataLocalName"
/// The transmission power of the peripheral in dBm; an `NSNumber`.
public let CBAdvertisementDataTxPowerLevelKey = "kCBAdvDataTxPowerLevel"
/// The services that the peripheral offers; `[CBUUID]`.
public let CBAdvertisementDataServiceUUIDsKey = "kCBAdvDataServiceUUIDs"
/// Data that belongs to services; `[CBUUID: Data]`.
public let CBAdvertisementDataServiceDataKey = "kCBAdvDataServiceData"
/// Manufacturer data, the company identifier's two bytes first, little endian; `Data`.
public let CBAdvertisementDataManufacturerDataKey = "kCBAdvDataManufacturerData"
/// Services that did not fit in the advertisement; `[CBUUID]`.
public let CBAdvertisementDataOverflowServiceUUIDsKey = "kCBAdvDataHashedServiceUUIDs"
/// Whether the peripheral accepts connections; an `NSNumber` with a `Bool`.
public let CBAdvertisementDataIsConnectable = "kCBAdvDataIsConnectable"
/// Services that the peripheral looks for; `[CBUUID]`.
public let CBAdvertisementDataSolicitedServiceUUIDsKey = "kCBAdvDataSolicitedServiceUUIDs"
