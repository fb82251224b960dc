/// The operations that a characteristic supports: the properties field of its declaration, and the security that a
/// subscription to a characteristic of this program requires.
///
/// The low eight bits are transmitted (Core Specification, Vol 3, Part G, 3.3.1.1). The others imply ``notify`` or
/// ``indicate``; of several the strongest one applies. BlueZ protects the one descriptor for both kinds of
/// subscriptions, so a requirement of one kind applies to the other one as well. Core Bluetooth has no properties that require
/// more than encryption.
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
    /// Subscribing to notifications requires an encrypted link: the central has paired in any way.
    public static let notifyEncryptionRequired = CBCharacteristicProperties(rawValue: 0x100)
    /// Subscribing to indications requires an encrypted link: the central has paired in any way.
    public static let indicateEncryptionRequired = CBCharacteristicProperties(rawValue: 0x200)
    /// Subscribing to notifications requires a pairing with a passkey or a comparison of numbers.
    public static let notifyAuthenticationRequired = CBCharacteristicProperties(rawValue: 0x400)
    /// Subscribing to indications requires a pairing with a passkey or a comparison of numbers.
    public static let indicateAuthenticationRequired = CBCharacteristicProperties(rawValue: 0x800)
    /// Subscribing to notifications requires such a pairing with LE Secure Connections.
    public static let notifySecureConnectionRequired = CBCharacteristicProperties(rawValue: 0x1000)
    /// Subscribing to indications requires such a pairing with LE Secure Connections.
    public static let indicateSecureConnectionRequired = CBCharacteristicProperties(rawValue: 0x2000)
}

extension CBCharacteristicProperties {
    /// The names that BlueZ and the specification use, in the order of the bits.
    private static let namesInOrder: [(CBCharacteristicProperties, String)] = [
        (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
        (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
        (.authenticatedSignedWrites, "authenticated-signed-writes"), (.extendedProperties, "extended-properties"),
        (.notifyEncryptionRequired, "notify-encryption-required"),
        (.indicateEncryptionRequired, "indicate-encryption-required"),
        (.notifyAuthenticationRequired, "notify-authentication-required"),
        (.indicateAuthenticationRequired, "indicate-authentication-required"),
        (.notifySecureConnectionRequired, "notify-secure-connection-required"),
        (.indicateSecureConnectionRequired, "indicate-secure-connection-required"),
    ]

    /// The names of the properties.
    package var names: [String] { Self.namesInOrder.filter { contains($0.0) }.map(\.1) }

    /// The properties of these names; others are ignored.
    package init(names: some Collection<String>) {
        self = Self.namesInOrder.reduce(into: []) { if names.contains($1.1) { $0.insert($1.0) } }
    }
}

/// The access that a characteristic or descriptor of this program allows a central.
///
/// A permission that requires security permits the access as well, without ``readable`` or ``writeable``. Of several for
/// reading, or for writing, the strongest one applies. Core Bluetooth has only the first four.
public struct CBAttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Each central may read.
    public static let readable = CBAttributePermissions(rawValue: 0x01)
    /// Each central may write.
    public static let writeable = CBAttributePermissions(rawValue: 0x02)
    /// Reading requires an encrypted link: the central has paired in any way.
    public static let readEncryptionRequired = CBAttributePermissions(rawValue: 0x04)
    /// Writing requires an encrypted link: the central has paired in any way.
    public static let writeEncryptionRequired = CBAttributePermissions(rawValue: 0x08)
    /// Reading requires a pairing with a passkey or a comparison of numbers, which protects against a device in the middle.
    public static let readAuthenticationRequired = CBAttributePermissions(rawValue: 0x10)
    /// Writing requires a pairing with a passkey or a comparison of numbers.
    public static let writeAuthenticationRequired = CBAttributePermissions(rawValue: 0x20)
    /// Reading requires such a pairing with LE Secure Connections.
    public static let readSecureConnectionRequired = CBAttributePermissions(rawValue: 0x40)
    /// Writing requires such a pairing with LE Secure Connections.
    public static let writeSecureConnectionRequired = CBAttributePermissions(rawValue: 0x80)
    /// The application decides about each request: a read without a stream of read requests, and a write without a stream
    /// of write requests, is refused with `insufficientAuthorization`. A descriptor has no such streams, and refuses each
    /// request.
    public static let authorizationRequired = CBAttributePermissions(rawValue: 0x100)
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
    /// There is no link.
    case disconnected = 0
    /// A connection was requested, and there is no link yet.
    case connecting = 1
    /// There is a link.
    case connected = 2
    /// The link was requested to end, and has not ended.
    case disconnecting = 3
}
