// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Constants that the module GATT does not have, with the spellings and values of Apple's platforms.

// MARK: Descriptors

/// Further properties of a characteristic.
public let CBUUIDCharacteristicExtendedPropertiesString = "2900"
/// A description of a characteristic for users.
public let CBUUIDCharacteristicUserDescriptionString = "2901"
/// The descriptor with which a central subscribes.
public let CBUUIDClientCharacteristicConfigurationString = "2902"
/// The descriptor with which a central has a server broadcast a value.
public let CBUUIDServerCharacteristicConfigurationString = "2903"
/// The format and the unit of a value.
public let CBUUIDCharacteristicFormatString = "2904"
/// The formats of a value that consists of several.
public let CBUUIDCharacteristicAggregateFormatString = "2905"
/// The least and the greatest valid value.
public let CBUUIDCharacteristicValidRangeString = "2906"
/// The times at which a value is measured.
public let CBUUIDCharacteristicObservationScheduleString = "2910"
/// The characteristic in which a peripheral publishes the number of an L2CAP channel.
public let CBUUIDL2CAPPSMCharacteristicString = "ABDD3056-28FA-441D-A470-55A75A52553A"

// MARK: Options

/// Whether the manager may use audio devices; a `Bool`. Ignored on Linux.
public let CBCentralManagerOptionDeviceAccessForMedia = "kCBInitOptionDeviceAccessForMedia"
/// Seconds to wait before the connection; an `NSNumber`.
public let CBConnectPeripheralOptionStartDelayKey = "kCBConnectOptionStartDelay"
/// Whether Bluetooth Classic profiles are connected too; a `Bool`. Ignored on Linux.
public let CBConnectPeripheralOptionEnableTransportBridgingKey = "kCBConnectOptionEnableTransportBridging"
/// Whether the peripheral needs Apple's notification service; a `Bool`. Ignored on Linux, which does not have it.
public let CBConnectPeripheralOptionRequiresANCS = "kCBConnectOptionRequiresANCS"
/// Whether a lost connection is made again without another call of `connect`; a `Bool`.
public let CBConnectPeripheralOptionEnableAutoReconnect = "kCBConnectOptionEnableAutoReconnect"
