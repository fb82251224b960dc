public import Foundation

/// A central that exists only in a simulator, and needs no adapter: it connects to an adapter that serves, as a phone
/// does.
///
/// ```swift
/// let phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"), to: 0)
/// simulator.advance(by: 1)
/// let level = phone.read("2A19")
/// ```
public struct VirtualCentral: Hashable, Sendable {
    /// Its address, which no other in the room has.
    public var address: VirtualAddress
    public var addressType: AddressType
    /// What it calls itself once it is connected; nil where it does not say.
    public var name: String?
    /// The largest packet of the attribute protocol that it takes, in bytes, 23 to 517; a number outside becomes the
    /// nearest bound.
    public var mtu: Int { didSet { mtu = Limits.mtu.nearest(to: mtu) } }
    /// Seconds until it gives up where nobody advertises that takes connections; 0 to 1e9.
    public var connectTimeout: TimeInterval { didSet { connectTimeout = Limits.seconds.nearest(to: connectTimeout) } }
    /// Whether it confirms indications, as it must. One that does not loses its link after 30 seconds.
    public var confirmsIndications: Bool
    /// Whether it is bonded with every adapter. BlueZ keeps the subscriptions of a bonded central when its link ends, and
    /// calls the program for none of them when it returns.
    public var isBonded: Bool

    public init(
        _ address: VirtualAddress, addressType: AddressType = .public, name: String? = nil, mtu: Int = 247,
        connectTimeout: TimeInterval = 40, confirmsIndications: Bool = true, isBonded: Bool = false
    ) {
        self.address = address
        self.addressType = addressType
        self.name = name
        self.mtu = Limits.mtu.nearest(to: mtu)
        self.connectTimeout = Limits.seconds.nearest(to: connectTimeout)
        self.confirmsIndications = confirmsIndications
        self.isBonded = isBonded
    }
}

/// A value that a central was sent without asking.
public struct CentralValue: Hashable, Sendable {
    /// The UUID of the characteristic, long form.
    public var characteristic: String
    /// The handle of its value.
    public var handle: UInt16
    public var bytes: [UInt8]
    public var isIndication: Bool
    /// Seconds since the simulator began.
    public var seconds: TimeInterval
}

/// What went wrong with a request of a central.
public enum CentralFailure: Error, Hashable, Sendable {
    /// An error code of the attribute protocol (core specification 5.3, volume 3, part F, 3.4.1.1).
    case attribute(UInt8)
    /// There is no link, or it has ended meanwhile.
    case disconnected
    /// The table has no such attribute.
    case notFound
}

/// What is sent by an adapter, byte for byte.
public struct OnAirAdvertisement: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    /// The adapter's own, or a random one where no connections are taken.
    public var address: VirtualAddress
    /// The AD structures of the advertisement, and of the scan response.
    public var data: [UInt8]
    public var scanResponse: [UInt8]
    public var isConnectable: Bool
    /// Who has registered it: the unique name on the bus, and the object's path.
    public var owner: String
    public var path: String
}

/// A GATT application that is registered.
public struct ServedApplication: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    /// Who has registered it: the unique name on the bus, and the object's path.
    public var owner: String
    public var path: String
    /// In the order of their handles.
    public var services: [ServedService]
}

/// A service that an adapter serves.
public struct ServedService: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    public var handle: UInt16
    public var isPrimary: Bool
    /// The handles of the services that it includes.
    public var includes: [UInt16]
    public var characteristics: [ServedCharacteristic]
}

/// A characteristic that an adapter serves.
public struct ServedCharacteristic: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    /// Of its declaration; that of the value follows.
    public var handle: UInt16
    public var valueHandle: UInt16
    /// What its declaration says; that it must be encrypted is not seen in it.
    public var flags: Set<CharacteristicFlag>
    public var descriptors: [ServedDescriptor]
}

/// A descriptor that an adapter serves.
public struct ServedDescriptor: Hashable, Sendable {
    /// Long form.
    public var uuid: String
    public var handle: UInt16
}
