public import Foundation

/// A central that exists only in a simulator, and needs no adapter: it connects to an adapter that serves, like a phone.
///
/// ```swift
/// let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"), to: 0)
/// simulator.advance(by: .seconds(1))
/// let level = phone.read("2A19")
/// ```
public struct VirtualCentral: Hashable, Sendable {
    /// Its address, unique in the simulator.
    public var address: VirtualAddress
    /// Whether the address is public or random.
    public var addressType: AddressType
    /// The name that it reports once it is connected; nil for none.
    public var name: String?
    /// The largest packet of the attribute protocol that it takes, in bytes, 23 to 517; a number outside becomes the
    /// nearest bound.
    public var mtu: Int { didSet { mtu = Limits.mtu.nearest(to: mtu) } }
    /// Seconds after which an attempt to connect fails if the adapter takes no connections; 0 to 1e9.
    public var connectTimeout: TimeInterval { didSet { connectTimeout = Limits.seconds.nearest(to: connectTimeout) } }
    /// Whether it confirms indications, as it must. One that does not loses its link after 30 seconds.
    public var confirmsIndications: Bool
    /// Whether it has keys of every adapter, and every adapter of it, from a pairing without a number. BlueZ keeps the
    /// subscriptions of a bonded central when its link ends, and calls the program for none of them when it returns.
    public var isBonded: Bool
    /// How it pairs.
    public var security: VirtualSecurity

    /// Creates a central with these properties.
    public init(
        _ address: VirtualAddress, addressType: AddressType = .public, name: String? = nil, mtu: Int = 247,
        connectTimeout: TimeInterval = 40, confirmsIndications: Bool = true, isBonded: Bool = false,
        security: VirtualSecurity = VirtualSecurity()
    ) {
        self.address = address
        self.addressType = addressType
        self.name = name
        self.mtu = Limits.mtu.nearest(to: mtu)
        self.connectTimeout = Limits.seconds.nearest(to: connectTimeout)
        self.confirmsIndications = confirmsIndications
        self.isBonded = isBonded
        self.security = security
    }

    /// The address by which it is known to devices that have paired with it.
    var identity: VirtualAddress { security.privacy?.identity ?? address }
}

/// A notification or an indication that a central received.
public struct CentralValue: Hashable, Sendable {
    /// The UUID of the characteristic, long form.
    public var characteristic: String
    /// The handle of its value.
    public var handle: UInt16
    /// The bytes of the value.
    public var bytes: [UInt8]
    /// Whether it was an indication, which the central confirms, and not a notification.
    public var isIndication: Bool
    /// Seconds since the simulator began.
    public var seconds: TimeInterval
}

/// Why a request of a central failed. A later version may add cases.
public enum CentralLinkError: Error, Hashable, Sendable {
    /// An error code of the attribute protocol (core specification 5.3, volume 3, part F, 3.4.1.1).
    case attribute(UInt8)
    /// There is no link, or it ended before the response.
    case disconnected
    /// The table has no such attribute.
    case notFound
    /// The pairing has failed.
    case pairing(PairingFailure)
}

/// What an adapter sends, byte for byte.
public struct OnAirAdvertisement: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    /// The adapter's own, or a random one if the advertisement takes no connections.
    public var address: VirtualAddress
    /// The AD structures of the advertisement, and of the scan response.
    public var data: [UInt8]
    /// The AD structures of the scan response.
    public var scanResponse: [UInt8]
    /// Whether centrals can connect.
    public var isConnectable: Bool
    /// The unique name on the bus of the program that has registered it.
    public var owner: String
    /// The path of the program's object.
    public var path: String
}

/// A GATT application that is registered.
public struct ServedApplication: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    /// The unique name on the bus of the program that has registered it.
    public var owner: String
    /// The path of the program's object.
    public var path: String
    /// In the order of their handles.
    public var services: [ServedService]
}

/// A service that an adapter serves.
public struct ServedService: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    /// The handle of its declaration.
    public var handle: UInt16
    /// Whether it is a primary service.
    public var isPrimary: Bool
    /// The handles of the services that it includes.
    public var includes: [UInt16]
    /// The characteristics, in the order of their handles.
    public var characteristics: [ServedCharacteristic]
}

/// A characteristic that an adapter serves.
public struct ServedCharacteristic: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    /// The handle of its declaration; that of the value follows.
    public var handle: UInt16
    /// The handle of its value.
    public var valueHandle: UInt16
    /// The flags of its declaration, which do not include a need for encryption.
    public var flags: Set<CharacteristicFlag>
    /// The descriptors, in the order of their handles.
    public var descriptors: [ServedDescriptor]
}

/// A descriptor that an adapter serves.
public struct ServedDescriptor: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    /// The handle of the descriptor.
    public var handle: UInt16
}

extension ServedService {
    init(_ service: AttributeDatabase.Service) {
        self.init(
            uuid: service.uuid, handle: service.handle, isPrimary: service.isPrimary, includes: service.includes,
            characteristics: service.characteristics.map { characteristic in
                ServedCharacteristic(
                    uuid: characteristic.uuid, handle: characteristic.handle, valueHandle: characteristic.valueHandle,
                    flags: characteristic.flags.subtracting([.reliableWrite, .writableAuxiliaries]),
                    descriptors: characteristic.descriptors.map { ServedDescriptor(uuid: $0.uuid, handle: $0.handle) })
            })
    }
}

/// The former name of ``CentralLinkError``.
@available(*, deprecated, renamed: "CentralLinkError")
public typealias CentralFailure = CentralLinkError
