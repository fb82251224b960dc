// The keys that this library adds to those that GATT has from Core Bluetooth, for the dictionaries of options. Each is a
// property of a configuration.

/// The key of ``CentralManager/Configuration/busAddress``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.busAddress.")
public let CentralManagerOptionBusAddressKey = "CentralManagerOptionBusAddressKey"

/// The key of ``CentralManager/Configuration/adapter``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.adapter.")
public let CentralManagerOptionAdapterKey = "CentralManagerOptionAdapterKey"

/// The key of ``CentralManager/Configuration/maximumPeripherals``: an `Int`.
@available(*, deprecated, message: "Use CentralManager.Configuration.maximumPeripherals.")
public let CentralManagerOptionMaximumPeripheralsKey = "CentralManagerOptionMaximumPeripheralsKey"

/// The key of ``CentralManager/Configuration/keepsLinks``: a `Bool`.
@available(*, deprecated, message: "Use CentralManager.Configuration.keepsLinks.")
public let CentralManagerOptionKeepsLinksKey = "CentralManagerOptionKeepsLinksKey"

/// The key of ``CentralManager/Configuration/pairingPolicy``: a ``PairingPolicy``, or the `String` `reject`, `justWorks` or `ask`.
@available(*, deprecated, message: "Use CentralManager.Configuration.pairingPolicy.")
public let CentralManagerOptionPairingPolicyKey = "CentralManagerOptionPairingPolicyKey"

/// The key of ``CentralManager/Configuration/logger``: a swift-log `Logger`.
@available(*, deprecated, message: "Use CentralManager.Configuration.logger.")
public let CentralManagerOptionLoggerKey = "CentralManagerOptionLoggerKey"

/// The key of ``CentralManager/Configuration/stateDirectory``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.stateDirectory.")
public let CentralManagerOptionStateDirectoryKey = "CentralManagerOptionStateDirectoryKey"

/// The key of ``PeripheralManager/Configuration/busAddress``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.busAddress.")
public let PeripheralManagerOptionBusAddressKey = "PeripheralManagerOptionBusAddressKey"

/// The key of ``PeripheralManager/Configuration/adapter``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.adapter.")
public let PeripheralManagerOptionAdapterKey = "PeripheralManagerOptionAdapterKey"

/// The key of ``PeripheralManager/Configuration/pairingPolicy``: a ``PairingPolicy``, or the `String` `reject`, `justWorks` or `ask`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.pairingPolicy.")
public let PeripheralManagerOptionPairingPolicyKey = "PeripheralManagerOptionPairingPolicyKey"

/// The key of ``PeripheralManager/Configuration/logger``: a swift-log `Logger`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.logger.")
public let PeripheralManagerOptionLoggerKey = "PeripheralManagerOptionLoggerKey"

/// The key of ``PeripheralManager/Configuration/stateDirectory``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.stateDirectory.")
public let PeripheralManagerOptionStateDirectoryKey = "PeripheralManagerOptionStateDirectoryKey"

/// The key of ``ScanOptions/rssiThreshold``: an `Int` in dBm.
@available(*, deprecated, message: "Use ScanOptions.rssiThreshold.")
public let CentralManagerScanOptionRSSIThresholdKey = "CentralManagerScanOptionRSSIThresholdKey"

/// The key of ``ScanOptions/pattern``: a `String`.
@available(*, deprecated, message: "Use ScanOptions.pattern.")
public let CentralManagerScanOptionPatternKey = "CentralManagerScanOptionPatternKey"

/// The key of ``ScanOptions/watchdog``: a number of seconds.
@available(*, deprecated, message: "Use ScanOptions.watchdog.")
public let CentralManagerScanOptionWatchdogKey = "CentralManagerScanOptionWatchdogKey"
