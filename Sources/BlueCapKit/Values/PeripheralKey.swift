import BlueZ
import GATT

/// Names a peripheral within a manager: address and address type in one word.
struct PeripheralKey: Hashable, Comparable, Sendable {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(_ address: BluetoothAddress, _ type: BluetoothAddress.AddressType) {
        rawValue = address.rawValue | (type == .random ? 1 << 48 : 0)
    }

    init(_ device: borrowing Device1) { self.init(device.address, device.addressType) }

    static func < (left: PeripheralKey, right: PeripheralKey) -> Bool { left.rawValue < right.rawValue }

    var address: BluetoothAddress { BluetoothAddress(rawValue: rawValue) }
    var addressType: BluetoothAddress.AddressType { rawValue & 1 << 48 == 0 ? .public : .random }
}
