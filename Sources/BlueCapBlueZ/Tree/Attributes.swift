import BlueCapDBus
package import Foundation
package import BlueCapGATT

/// A service, a characteristic or a descriptor of a remote device: `org.bluez.GattService1`, `GattCharacteristic1` or
/// `GattDescriptor1`. Each interface has some of the properties.
package struct GattAttribute: Hashable, Sendable, PropertyOwner {
    package let kind: AttributeKind
    /// The ATT handle; see ``AttributeKey``.
    package let handle: UInt16
    /// The handle of the service that contains the attribute; of a service its own.
    package let service: UInt16
    /// The handle of the characteristic that contains a descriptor; 0 for the others.
    package let characteristic: UInt16
    package internal(set) var fields: AttributeFields = []
    var truths: AttributeFields = []
    package internal(set) var uuid = CBUUID(0)
    package internal(set) var flags: GattFlags = []
    var rawMTU: UInt16 = 0
    /// The handles of the services that a service includes.
    package internal(set) var includes: [UInt16] = []
    /// The value that was last read, written, notified or indicated by any process of this machine; `nil` before.
    package internal(set) var value: Data?

    init(_ path: AttributePath) {
        (kind, handle, service, characteristic) = (path.kind, path.key.handle, path.service, path.characteristic)
    }

    func isAt(_ path: AttributePath) -> Bool {
        (kind, handle, service, characteristic) == (path.kind, path.key.handle, path.service, path.characteristic)
    }

    package var isPrimary: Bool { truths.contains(.isPrimary) }
    package var properties: CBCharacteristicProperties { flags.properties }
    /// Whether notifications or indications are on for any process of this machine.
    package var isNotifying: Bool { truths.contains(.isNotifying) }
    /// The ATT MTU of the link in bytes, three of them ATT's own. Since 5.62.
    package var mtu: Int? { fields.contains(.mtu) ? Int(rawMTU) : nil }
    /// Whether this process or another holds the socket of `AcquireNotify`.
    package var isNotifyAcquired: Bool { truths.contains(.isNotifyAcquired) }
    /// Whether this process or another holds the socket of `AcquireWrite`.
    package var isWriteAcquired: Bool { truths.contains(.isWriteAcquired) }
}

/// The type of an attribute that `bluetoothd` exports.
package enum AttributeKind: UInt8, Hashable, Sendable, CaseIterable {
    case service
    case characteristic
    case descriptor

    /// Each property of the three interfaces that we use, once (BlueZ's `doc/gatt-api.txt`, and `src/gatt-client.c` of
    /// 5.66). `Device`, `Service` and `Characteristic` are not among them: they repeat what the object's path contains.
    package var table: PropertyTable<GattAttribute> {
        switch self {
        case .service: Self.services
        case .characteristic: Self.characteristics
        case .descriptor: Self.descriptors
        }
    }

    private static let services = PropertyTable<GattAttribute>(
        "org.bluez.GattService1",
        [
            uuid,
            .flag("Primary", .isPrimary),
            .value(
                "Includes", .includes, "ao", isOptional: true,
                read: { $0.texts(of: .objectPath) { AttributePath($0)?.service }.set(&$1.includes) },
                clear: { $0.includes = [] }),
        ])

    private static let characteristics = PropertyTable<GattAttribute>(
        "org.bluez.GattCharacteristic1",
        [
            uuid, flags(isOptional: false), value,
            // Present only if the flags contain "notify" or "indicate".
            .flag("Notifying", .isNotifying, isOptional: true),
            // Since 5.62.
            .value("MTU", .mtu, "q", isOptional: true) { $0.uint16().set(&$1.rawMTU) },
            // These two are present only if the flags allow it.
            .flag("NotifyAcquired", .isNotifyAcquired, isOptional: true),
            .flag("WriteAcquired", .isWriteAcquired, isOptional: true),
        ])

    private static let descriptors = PropertyTable<GattAttribute>(
        "org.bluez.GattDescriptor1", [uuid, flags(isOptional: true), value])

    private static let uuid = Property<GattAttribute>.value("UUID", .uuid, "s") {
        ($0.withString { CBUUID(utf8: $0) } ?? nil).set(&$1.uuid)
    }

    private static func flags(isOptional: Bool) -> Property<GattAttribute> {
        .value("Flags", .flags, "as", isOptional: isOptional) { reader, attribute in
            guard reader.elementType == .string else { return false }
            var flags: GattFlags = []
            reader.array { element in
                if let flag = element.withString({ GattFlags(name: $0) }) ?? nil { flags.insert(flag) }
            }
            attribute.flags = flags
            return true
        }
    }

    /// The only copy that is made of a value on its way from the socket to the user.
    private static let value = Property<GattAttribute>.value(
        "Value", .value, "ay", isOptional: true, read: { $0.data().set(&$1.value) }, clear: { $0.value = nil })
}

extension MessageReader {
    /// Reads an array of bytes, in one copy.
    mutating func data() -> Data? { withBytes { copy($0) } }

    /// Reads an array of bytes without a copy if `known` has the same bytes, else in one copy.
    mutating func data(like known: Data?) -> Data? {
        withBytes { bytes in
            guard let known, known.count == bytes.count, let start = bytes.baseAddress else { return copy(bytes) }
            let isSame = known.withUnsafeBytes { $0.baseAddress.map { memcmp($0, start, bytes.count) } == 0 }
            return isSame ? known : copy(bytes)
        }
    }
}

private func copy(_ bytes: UnsafeBufferPointer<UInt8>) -> Data {
    bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
}

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
