public import BlueCapKit

// The guide's names of Core Bluetooth's types, in ``StartMode/use(manager:peripheral:)`` and
// ``Bluejay/Bluejay/stopAndExtractBluetoothState()``, for as long as there is no module of Core Bluetooth on Linux.

/// The guide's name of the manager that Bluejay takes over and gives away: BlueCapKit's `CentralManager`.
public typealias CBCentralManager = CentralManager

/// The guide's name of the peripheral that Bluejay takes over and gives away: BlueCapKit's `Peripheral`.
public typealias CBPeripheral = Peripheral
