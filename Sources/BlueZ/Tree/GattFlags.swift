package import GATT

/// What the `Flags` of a characteristic or a descriptor allow, by the names of BlueZ's `doc/gatt-api.txt`.
package struct GattFlags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let broadcast = GattFlags(rawValue: 1 << 0)
    package static let read = GattFlags(rawValue: 1 << 1)
    package static let writeWithoutResponse = GattFlags(rawValue: 1 << 2)
    package static let write = GattFlags(rawValue: 1 << 3)
    package static let notify = GattFlags(rawValue: 1 << 4)
    package static let indicate = GattFlags(rawValue: 1 << 5)
    package static let authenticatedSignedWrites = GattFlags(rawValue: 1 << 6)
    package static let extendedProperties = GattFlags(rawValue: 1 << 7)
    package static let reliableWrite = GattFlags(rawValue: 1 << 8)
    package static let writableAuxiliaries = GattFlags(rawValue: 1 << 9)
    package static let encryptRead = GattFlags(rawValue: 1 << 10)
    package static let encryptWrite = GattFlags(rawValue: 1 << 11)
    package static let encryptNotify = GattFlags(rawValue: 1 << 12)
    package static let encryptIndicate = GattFlags(rawValue: 1 << 13)
    package static let encryptAuthenticatedRead = GattFlags(rawValue: 1 << 14)
    package static let encryptAuthenticatedWrite = GattFlags(rawValue: 1 << 15)
    package static let encryptAuthenticatedNotify = GattFlags(rawValue: 1 << 16)
    package static let encryptAuthenticatedIndicate = GattFlags(rawValue: 1 << 17)
    package static let secureRead = GattFlags(rawValue: 1 << 18)
    package static let secureWrite = GattFlags(rawValue: 1 << 19)
    package static let secureNotify = GattFlags(rawValue: 1 << 20)
    package static let secureIndicate = GattFlags(rawValue: 1 << 21)
    package static let authorize = GattFlags(rawValue: 1 << 22)

    /// In the order of their bits.
    private static let names: [StaticString] = [
        "broadcast", "read", "write-without-response", "write", "notify", "indicate", "authenticated-signed-writes",
        "extended-properties", "reliable-write", "writable-auxiliaries", "encrypt-read", "encrypt-write",
        "encrypt-notify", "encrypt-indicate", "encrypt-authenticated-read", "encrypt-authenticated-write",
        "encrypt-authenticated-notify", "encrypt-authenticated-indicate", "secure-read", "secure-write",
        "secure-notify", "secure-indicate", "authorize",
    ]

    /// The flag of that name; `nil` for one that is not known here.
    init?(name: UnsafeBufferPointer<UInt8>) {
        guard let index = GattFlags.names.firstIndex(where: { name.equals($0) }) else { return nil }
        self.init(rawValue: 1 << UInt32(index))
    }

    /// BlueZ's names of the flags.
    package var texts: [String] {
        GattFlags.names.enumerated().filter { rawValue & 1 << UInt32($0.offset) != 0 }.map { "\($0.element)" }
    }

    /// The same in Bluetooth's own terms. BlueZ does not give the `encrypt-` flags of a remote characteristic: whether a
    /// link must be encrypted, a peer says only by refusing.
    package var properties: CBCharacteristicProperties {
        // The lower eight have the bits of the declaration (Core Specification, Vol 3, Part G, 3.3.1.1).
        var properties = CBCharacteristicProperties(rawValue: UInt(rawValue & 0xFF))
        if !isDisjoint(with: [.encryptNotify, .encryptAuthenticatedNotify, .secureNotify]) {
            properties.insert(.notifyEncryptionRequired)
        }
        if !isDisjoint(with: [.encryptIndicate, .encryptAuthenticatedIndicate, .secureIndicate]) {
            properties.insert(.indicateEncryptionRequired)
        }
        if !isDisjoint(with: [.reliableWrite, .writableAuxiliaries]) { properties.insert(.extendedProperties) }
        return properties
    }
}
