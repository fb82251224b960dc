// The keys that this library adds to those that GATT has from Core Bluetooth, for the dictionaries of options. Each is a
// property of a configuration.

/// The texts of these keys: this package uses them without the warnings of the constants.
package enum OptionKey {
    package enum Central {
        package static let busAddress = "CentralManagerOptionBusAddressKey"
        package static let adapter = "CentralManagerOptionAdapterKey"
        static let maximumPeripherals = "CentralManagerOptionMaximumPeripheralsKey"
        package static let keepsLinks = "CentralManagerOptionKeepsLinksKey"
        package static let pairingPolicy = "CentralManagerOptionPairingPolicyKey"
        static let logger = "CentralManagerOptionLoggerKey"
        package static let stateDirectory = "CentralManagerOptionStateDirectoryKey"
    }

    package enum Peripheral {
        package static let busAddress = "PeripheralManagerOptionBusAddressKey"
        package static let adapter = "PeripheralManagerOptionAdapterKey"
        package static let pairingPolicy = "PeripheralManagerOptionPairingPolicyKey"
        static let logger = "PeripheralManagerOptionLoggerKey"
        package static let stateDirectory = "PeripheralManagerOptionStateDirectoryKey"
    }

    enum Scan {
        static let rssiThreshold = "CentralManagerScanOptionRSSIThresholdKey"
        static let pattern = "CentralManagerScanOptionPatternKey"
        static let watchdog = "CentralManagerScanOptionWatchdogKey"
    }
}

/// The key of ``CentralManager/Configuration/busAddress``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.busAddress.")
public let CentralManagerOptionBusAddressKey = OptionKey.Central.busAddress

/// The key of ``CentralManager/Configuration/adapter``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.adapter.")
public let CentralManagerOptionAdapterKey = OptionKey.Central.adapter

/// The key of ``CentralManager/Configuration/maximumPeripherals``: an `Int`.
@available(*, deprecated, message: "Use CentralManager.Configuration.maximumPeripherals.")
public let CentralManagerOptionMaximumPeripheralsKey = OptionKey.Central.maximumPeripherals

/// The key of ``CentralManager/Configuration/keepsLinks``: a `Bool`.
@available(*, deprecated, message: "Use CentralManager.Configuration.keepsLinks.")
public let CentralManagerOptionKeepsLinksKey = OptionKey.Central.keepsLinks

/// The key of ``CentralManager/Configuration/pairingPolicy``: a ``PairingPolicy``, or the `String` `reject`, `justWorks` or `ask`.
@available(*, deprecated, message: "Use CentralManager.Configuration.pairingPolicy.")
public let CentralManagerOptionPairingPolicyKey = OptionKey.Central.pairingPolicy

/// The key of ``CentralManager/Configuration/logger``: a swift-log `Logger`.
@available(*, deprecated, message: "Use CentralManager.Configuration.logger.")
public let CentralManagerOptionLoggerKey = OptionKey.Central.logger

/// The key of ``CentralManager/Configuration/stateDirectory``: a `String`.
@available(*, deprecated, message: "Use CentralManager.Configuration.stateDirectory.")
public let CentralManagerOptionStateDirectoryKey = OptionKey.Central.stateDirectory

/// The key of ``PeripheralManager/Configuration/busAddress``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.busAddress.")
public let PeripheralManagerOptionBusAddressKey = OptionKey.Peripheral.busAddress

/// The key of ``PeripheralManager/Configuration/adapter``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.adapter.")
public let PeripheralManagerOptionAdapterKey = OptionKey.Peripheral.adapter

/// The key of ``PeripheralManager/Configuration/pairingPolicy``: a ``PairingPolicy``, or the `String` `reject`, `justWorks` or `ask`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.pairingPolicy.")
public let PeripheralManagerOptionPairingPolicyKey = OptionKey.Peripheral.pairingPolicy

/// The key of ``PeripheralManager/Configuration/logger``: a swift-log `Logger`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.logger.")
public let PeripheralManagerOptionLoggerKey = OptionKey.Peripheral.logger

/// The key of ``PeripheralManager/Configuration/stateDirectory``: a `String`.
@available(*, deprecated, message: "Use PeripheralManager.Configuration.stateDirectory.")
public let PeripheralManagerOptionStateDirectoryKey = OptionKey.Peripheral.stateDirectory

/// The key of ``ScanOptions/rssiThreshold``: an `Int` in dBm.
@available(*, deprecated, message: "Use ScanOptions.rssiThreshold.")
public let CentralManagerScanOptionRSSIThresholdKey = OptionKey.Scan.rssiThreshold

/// The key of ``ScanOptions/pattern``: a `String`.
@available(*, deprecated, message: "Use ScanOptions.pattern.")
public let CentralManagerScanOptionPatternKey = OptionKey.Scan.pattern

/// The key of ``ScanOptions/watchdog``: a number of seconds.
@available(*, deprecated, message: "Use ScanOptions.watchdog.")
public let CentralManagerScanOptionWatchdogKey = OptionKey.Scan.watchdog
