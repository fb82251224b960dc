import BlueCapBlueZ
public import Foundation
public import BlueCapGATT

/// A central that uses a characteristic of this program, as far as BlueZ reports it.
///
/// Two are equal if they are the same device, whatever the size of its packets is.
public struct Central: CBCentralInjectable, CustomStringConvertible {
    /// The identifier that the device's ``Peripheral`` would have if this machine discovered it; zeros if BlueZ does
    /// not name the device. A bond replaces a private address of the device: ``address`` changes, and the identifier stays
    /// until `bluetoothd` ends.
    public let identifier: UUID
    /// The address that BlueZ reports for the device; `nil` if BlueZ does not name the device.
    public let address: BluetoothAddress?
    /// Whether links to it can be encrypted, or this one is, when BlueZ reported this central.
    public let isPaired: Bool
    /// Whether BlueZ stored the keys of a pairing with it, when BlueZ reported this central.
    public let isBonded: Bool
    /// The size of an ATT packet on its link in bytes; `nil` if BlueZ does not report it.
    public let mtu: Int?

    /// Whether BlueZ reports that a central has subscribed without naming it, as it does for subscribers over signals.
    public var isAnonymous: Bool { address == nil }

    /// The largest number of bytes of an update that the central receives: what fits into a packet, and at most 512. BlueZ
    /// cuts longer updates. It is 20 if the size of its packets is not known.
    public var maximumUpdateValueLength: Int { AttributeProtocol.longestValue(inPacketOf: mtu) }

    /// Creates a central of which BlueZ reports no more than this.
    init(address: BluetoothAddress?, mtu: Int?) {
        (self.address, self.mtu) = (address, mtu)
        identifier = address?.identifier(type: .public) ?? Self.unknown
        (isPaired, isBonded) = (false, false)
    }

    /// Creates the central with that key.
    init(_ key: PeripheralKey, _ device: borrowing Device1, mtu: Int?) {
        identifier = key.identifier
        (address, self.mtu) = (device.address, mtu)
        (isPaired, isBonded) = (device.isPaired, device.keepsKeys)
    }

    private static let unknown = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    public var description: String { address.map { "Central(\($0))" } ?? "Central(anonymous)" }
}

extension Central: Hashable {
    public static func == (left: Central, right: Central) -> Bool { left.identifier == right.identifier }
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// A read or a write of a central that waits for the application's response.
public struct ATTRequest: CBATTRequestInjectable, CustomStringConvertible {
    public let characteristicUUID: CBUUID
    /// The byte of the value at which the request begins: 0, unless a central writes or reads the end of a value
    /// without its beginning. A value that a central writes in parts is delivered as one.
    public let offset: Int
    /// What the central writes; `nil` in a read request.
    public let value: Data?
    /// Whether the central waits for a response. Otherwise a response has no effect.
    public let expectsAnswer: Bool
    /// The security that the characteristic's permissions require for this request; `nil` if they require none.
    ///
    /// The link has at least this security: BlueZ refuses the request otherwise. BlueZ does not report which security the
    /// link has, so it may be higher.
    public let security: RequiredSecurity?
    let characteristic: ServerAttributeID
    /// The number of the request among those that wait for a response; `nil` if the central expects none.
    let number: UInt64?

    /// Whether the central reads.
    public var isRead: Bool { value == nil }

    public var description: String {
        guard let value else { return "ATTRequest(read \(characteristicUUID))" }
        return "ATTRequest(write \(value.count) bytes to \(characteristicUUID))"
    }
}
