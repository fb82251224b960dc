/// What a characteristic can be used for: the properties field of its declaration, and two extended properties.
///
/// The low eight bits are those on the air (Core Specification, Vol 3, Part G, 3.3.1.1).
public struct CBCharacteristicProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value may be broadcast in advertisements.
    public static let broadcast = CBCharacteristicProperties(rawValue: 0x01)
    /// The value can be read.
    public static let read = CBCharacteristicProperties(rawValue: 0x02)
    /// The value can be written without an answer.
    public static let writeWithoutResponse = CBCharacteristicProperties(rawValue: 0x04)
    /// The value can be written, and the writing is answered.
    public static let write = CBCharacteristicProperties(rawValue: 0x08)
    /// The peripheral sends new values, which the central does not acknowledge.
    public static let notify = CBCharacteristicProperties(rawValue: 0x10)
    /// The peripheral sends new values, which the central acknowledges one by one.
    public static let indicate = CBCharacteristicProperties(rawValue: 0x20)
    /// Signed writes without an answer are allowed.
    public static let authenticatedSignedWrites = CBCharacteristicProperties(rawValue: 0x40)
    /// A descriptor holds further properties.
    public static let extendedProperties = CBCharacteristicProperties(rawValue: 0x80)
    /// Only trusted devices can subscribe to notifications.
    public static let notifyEncryptionRequired = CBCharacteristicProperties(rawValue: 0x100)
    /// Only trusted devices can subscribe to indications.
    public static let indicateEncryptionRequired = CBCharacteristicProperties(rawValue: 0x200)
}

/// Who may read and write the value of a characteristic that this program publishes.
public struct CBAttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Anyone may read.
    public static let readable = CBAttributePermissions(rawValue: 0x01)
    /// Anyone may write.
    public static let writeable = CBAttributePermissions(rawValue: 0x02)
    /// Reading takes an encrypted link.
    public static let readEncryptionRequired = CBAttributePermissions(rawValue: 0x04)
    /// Writing takes an encrypted link.
    public static let writeEncryptionRequired = CBAttributePermissions(rawValue: 0x08)
}

/// Whether a write is answered.
public enum CBCharacteristicWriteType: Int, Hashable, Sendable, CaseIterable {
    /// The peripheral confirms or refuses the write.
    case withResponse = 0
    /// The write is sent and nothing is heard of it.
    case withoutResponse = 1
}

/// How a peripheral is linked to this machine.
public enum CBPeripheralState: Int, Hashable, Sendable, CaseIterable {
    case disconnected = 0
    case connecting = 1
    case connected = 2
    case disconnecting = 3
}
