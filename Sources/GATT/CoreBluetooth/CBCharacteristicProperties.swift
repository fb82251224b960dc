/// The operations that a characteristic supports: the properties field of its declaration, and two extended properties.
///
/// The low eight bits are transmitted (Core Specification, Vol 3, Part G, 3.3.1.1).
public struct CBCharacteristicProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value may be broadcast in advertisements.
    public static let broadcast = CBCharacteristicProperties(rawValue: 0x01)
    /// The value can be read.
    public static let read = CBCharacteristicProperties(rawValue: 0x02)
    /// The value can be written without response.
    public static let writeWithoutResponse = CBCharacteristicProperties(rawValue: 0x04)
    /// The value can be written with response.
    public static let write = CBCharacteristicProperties(rawValue: 0x08)
    /// The peripheral sends new values, which the central does not acknowledge.
    public static let notify = CBCharacteristicProperties(rawValue: 0x10)
    /// The peripheral sends new values, which the central acknowledges one by one.
    public static let indicate = CBCharacteristicProperties(rawValue: 0x20)
    /// Signed writes without response are allowed.
    public static let authenticatedSignedWrites = CBCharacteristicProperties(rawValue: 0x40)
    /// A descriptor holds further properties.
    public static let extendedProperties = CBCharacteristicProperties(rawValue: 0x80)
    /// Only trusted devices can subscribe to notifications.
    public static let notifyEncryptionRequired = CBCharacteristicProperties(rawValue: 0x100)
    /// Only trusted devices can subscribe to indications.
    public static let indicateEncryptionRequired = CBCharacteristicProperties(rawValue: 0x200)
}

/// The access that a characteristic of this program allows a central.
public struct CBAttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Anyone may read.
    public static let readable = CBAttributePermissions(rawValue: 0x01)
    /// Anyone may write.
    public static let writeable = CBAttributePermissions(rawValue: 0x02)
    /// Reading requires an encrypted link.
    public static let readEncryptionRequired = CBAttributePermissions(rawValue: 0x04)
    /// Writing requires an encrypted link.
    public static let writeEncryptionRequired = CBAttributePermissions(rawValue: 0x08)
}

/// Whether the peripheral responds to a write.
public enum CBCharacteristicWriteType: Int, Hashable, Sendable, CaseIterable {
    /// The peripheral confirms or refuses the write.
    case withResponse = 0
    /// The write is sent, and the peripheral does not respond.
    case withoutResponse = 1
}

/// The state of the link between a peripheral and this machine.
public enum CBPeripheralState: Int, Hashable, Sendable, CaseIterable {
    case disconnected = 0
    case connecting = 1
    case connected = 2
    case disconnecting = 3
}
