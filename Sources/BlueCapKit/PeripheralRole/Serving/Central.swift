public import Foundation
public import GATT

/// A central that uses a characteristic of ours, as far as BlueZ tells of it.
///
/// Two are equal where they are the same device, whatever the size of its packets is now.
public struct Central: CBCentralInjectable, CustomStringConvertible {
    /// The same as that of the device's ``Peripheral``, had this machine discovered it; zeros where BlueZ does not tell who
    /// it is.
    public let identifier: UUID
    /// The address that it has on this link; `nil` where BlueZ does not tell who it is.
    public let address: BluetoothAddress?
    /// The size of an ATT packet on its link in bytes; `nil` where BlueZ does not tell.
    public let mtu: Int?

    /// Whether BlueZ says that there is somebody, and not who: so it is of subscribers over signals.
    public var isAnonymous: Bool { address == nil }

    /// How many bytes of an update reach it; BlueZ cuts off what is more. 20 where the size of its packets is not known.
    public var maximumUpdateValueLength: Int { (mtu ?? 23) - 3 }

    init(address: BluetoothAddress?, type: BluetoothAddress.AddressType?, mtu: Int?) {
        self.address = address
        self.mtu = mtu
        identifier = address?.identifier(type: type ?? .public) ?? Self.nobody
    }

    private static let nobody = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    public var description: String { address.map { "Central(\($0))" } ?? "Central(anonymous)" }
}

extension Central: Hashable {
    public static func == (left: Central, right: Central) -> Bool { left.identifier == right.identifier }
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// A read or a write of a central that waits for the application's answer.
public struct ATTRequest: CBATTRequestInjectable, CustomStringConvertible {
    public let characteristicUUID: CBUUID
    /// At which byte of the value the request begins: 0, but where a central writes or reads an end without its beginning.
    /// What a central writes in parts comes as one value.
    public let offset: Int
    /// What the central writes; `nil` in a read request.
    public let value: Data?
    /// Whether the central waits for an answer. Without that none is needed, and one that is given goes nowhere.
    public let expectsAnswer: Bool
    let characteristic: MutableCharacteristic.Number
    let number: MutableCharacteristic.Number?

    /// Whether the central reads.
    public var isRead: Bool { value == nil }

    public var description: String {
        guard let value else { return "ATTRequest(read \(characteristicUUID))" }
        return "ATTRequest(write \(value.count) bytes to \(characteristicUUID))"
    }
}
