import BlueZ
import GATT

// Where something takes encryption, the plain flag is left out: the other one says by itself what is allowed.

extension GattFlags {
    /// What BlueZ is told of a characteristic.
    ///
    /// A write without response that takes encryption can be written with response too: BlueZ has no other word for it.
    init(_ properties: CBCharacteristicProperties, _ permissions: CBAttributePermissions) {
        // The lower eight have the bits of the declaration, in both.
        self.init(rawValue: UInt32(properties.rawValue & 0xFF))
        if contains(.read), permissions.contains(.readEncryptionRequired) { replace(.read, by: .encryptRead) }
        if permissions.contains(.writeEncryptionRequired), !isDisjoint(with: [.write, .writeWithoutResponse]) {
            replace(.write, by: .encryptWrite)
        }
        if properties.contains(.notifyEncryptionRequired) { replace(.notify, by: .encryptNotify) }
        if properties.contains(.indicateEncryptionRequired) { replace(.indicate, by: .encryptIndicate) }
    }

    init(descriptor permissions: CBAttributePermissions) {
        self = []
        if permissions.contains(.readEncryptionRequired) {
            insert(.encryptRead)
        } else if permissions.contains(.readable) {
            insert(.read)
        }
        if permissions.contains(.writeEncryptionRequired) {
            insert(.encryptWrite)
        } else if permissions.contains(.writeable) {
            insert(.write)
        }
    }

    private mutating func replace(_ flag: GattFlags, by other: GattFlags) {
        remove(flag)
        insert(other)
    }
}
