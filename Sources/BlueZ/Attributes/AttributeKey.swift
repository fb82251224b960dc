/// An attribute of a remote device: which device, and the attribute's ATT handle there.
///
/// The handle is the number in the last part of a path such as `…/dev_XX/service0028/char002a/desc002c`: of a service
/// that of its first attribute, of a characteristic that of its declaration. The key is the same after a reconnection
/// and after a restart of the daemon as long as the peer's table of attributes is.
package struct AttributeKey: Hashable, Sendable {
    package let device: ObjectKey
    package let handle: UInt16

    package init(device: ObjectKey, handle: UInt16) {
        self.device = device
        self.handle = handle
    }
}

/// What an attribute that `bluetoothd` exports is.
package enum AttributeKind: UInt8, Hashable, Sendable, CaseIterable {
    case service
    case characteristic
    case descriptor

    var interface: StaticString {
        switch self {
        case .service: GattService1.table.interface
        case .characteristic: GattCharacteristic1.table.interface
        case .descriptor: GattDescriptor1.table.interface
        }
    }
}

/// The properties of the three interfaces of attributes, as a set. Each interface has some of them.
package struct AttributeFields: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let uuid = AttributeFields(rawValue: 1 << 0)
    package static let isPrimary = AttributeFields(rawValue: 1 << 1)
    package static let includes = AttributeFields(rawValue: 1 << 2)
    package static let flags = AttributeFields(rawValue: 1 << 3)
    /// A value was read by somebody, written, notified or indicated: BlueZ does not say which.
    package static let value = AttributeFields(rawValue: 1 << 4)
    package static let isNotifying = AttributeFields(rawValue: 1 << 5)
    package static let mtu = AttributeFields(rawValue: 1 << 6)
    package static let isNotifyAcquired = AttributeFields(rawValue: 1 << 7)
    package static let isWriteAcquired = AttributeFields(rawValue: 1 << 8)

    /// What an attribute is, rather than what its value or its subscription is at the moment.
    ///
    /// A constant: in another module a literal of several fields is an array first, at each change anew.
    package static let ofDeclaration: AttributeFields = [.uuid, .flags, .includes]
}
