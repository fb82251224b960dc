import BlueCapKit
import CoreBluetooth

/// What the code in the documentation of the module CoreBluetooth assumes.
enum CoreBluetoothContext {}
