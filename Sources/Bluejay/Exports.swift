// Where the document shows Core Bluetooth there is BlueCapKit: `Peripheral`, `CentralManager`, `CBUUID`,
// `ServiceIdentifier`, `CharacteristicIdentifier` come with `import Bluejay`.
@_exported public import BlueCapKit
