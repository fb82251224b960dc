/// An attribute of a remote device: its object on the bus, and what clients do with it. It outlives the link, because
/// BlueZ keeps the objects of a device that it remembers.
struct RemoteAttribute: Sendable {
    /// As it is when it is put on the bus.
    let object: ObjectTree.Attribute
    let uuid: String
    /// The handle that requests carry: of the value, or of the descriptor.
    let requestHandle: UInt16
    /// Those of a characteristic; empty for other attributes.
    let flags: Set<CharacteristicFlag>
    /// Whether it belongs to a service that BlueZ keeps for itself.
    let isClaimed: Bool
    var reading: ReadOperation?
    /// Whether a write is under way, the only one at a time.
    var isWriting = false
    /// The clients that have asked for notifications, in their order.
    var clients: [NotifyClient] = []
    /// Whether the configuration was written on this link, or is being written.
    var isConfigured = false
    /// The socket that notifications go to instead of signals, once a client has acquired them.
    var notifySocket: AcquiredSocket?
    /// The socket that write commands come from.
    var writeSocket: SocketID?

    var isDescriptor: Bool { object.interface == InterfaceName.descriptor }
    var canNotify: Bool { flags.contains(.notify) || flags.contains(.indicate) }
    /// What a subscription writes: 1 for notifications, 2 for indications.
    var configurationBits: UInt8 { flags.contains(.notify) ? 1 : 2 }
}

/// A socket for notifications that a client has acquired, or waits for.
enum AcquiredSocket: Hashable, Sendable {
    case pending
    case open(SocketID)

    var id: SocketID? { if case .open(let id) = self { id } else { nil } }
}

/// A client's session of notifications; it ends with the client's connection to the bus.
struct NotifyClient: Hashable, Sendable {
    var owner: String
    /// Whether it is in effect on this link. If not, it is put into effect when the device connects again.
    var isArmed = false
}

/// A read under way. Calls for the same value wait for it too.
struct ReadOperation: Hashable, Sendable {
    var offset: Int
    var calls: [CallID]
}

/// The attributes of a remote device by the handles of their declarations.
struct RemoteTable: Sendable {
    /// All that were discovered.
    var services: [AttributeDatabase.Service] = []
    /// Those that have objects, or will have.
    private(set) var attributes: [UInt16: RemoteAttribute] = [:]

    subscript(handle: UInt16) -> RemoteAttribute? {
        _read { yield attributes[handle] }
        _modify { yield &attributes[handle] }
    }

    func service(_ handle: UInt16) -> AttributeDatabase.Service? { services.first { $0.handle == handle } }

    /// The handles of a service's objects, parents first.
    static func handles(of service: AttributeDatabase.Service) -> [UInt16] {
        [service.handle] + service.characteristics.flatMap { [$0.handle] + $0.descriptors.map(\.handle) }
    }

    /// Makes the attributes of a service, unless they are there.
    mutating func adopt(_ service: AttributeDatabase.Service, of device: Device, _ traits: DaemonTraits) {
        guard attributes[service.handle] == nil else { return }
        let isClaimed = Self.claimedServices.contains(service.uuid)
        let path = device.path + "/service" + Self.digits(service.handle)
        let properties = ServiceProperty.values(of: traits.serviceProperties) { property in
            switch property {
            case .handle: .uint16(service.handle)
            case .uuid: .string(service.uuid)
            case .device: .objectPath(device.path)
            case .primary: .bool(service.isPrimary)
            case .includes: .objectPaths(service.includes.map { device.path + "/service" + Self.digits($0) })
            }
        }
        attributes[service.handle] = RemoteAttribute(
            object: ObjectTree.Attribute(path: path, interface: InterfaceName.service, properties: properties),
            uuid: service.uuid, requestHandle: service.handle, flags: [], isClaimed: isClaimed)
        for characteristic in service.characteristics {
            adopt(characteristic, in: path, isClaimed: isClaimed, traits)
        }
    }

    private mutating func adopt(
        _ characteristic: AttributeDatabase.Characteristic, in servicePath: String, isClaimed: Bool,
        _ traits: DaemonTraits
    ) {
        let path = servicePath + "/char" + Self.digits(characteristic.handle)
        let flags = characteristic.flags
        let properties = CharacteristicProperty.values(of: traits.characteristicProperties) { property in
            switch property {
            case .handle: .uint16(characteristic.handle)
            case .uuid: .string(characteristic.uuid)
            case .service: .objectPath(servicePath)
            case .value: .bytes([])
            case .notifying: characteristic.canNotify ? .bool(false) : nil
            case .flags: .strings(CharacteristicFlag.allCases.filter(flags.contains).map(\.rawValue))
            case .writeAcquired: flags.contains(.writeWithoutResponse) ? .bool(false) : nil
            case .notifyAcquired: flags.contains(.notify) ? .bool(false) : nil
            case .mtu: nil
            }
        }
        attributes[characteristic.handle] = RemoteAttribute(
            object: ObjectTree.Attribute(path: path, interface: InterfaceName.characteristic, properties: properties),
            uuid: characteristic.uuid, requestHandle: characteristic.valueHandle, flags: flags, isClaimed: isClaimed)
        for descriptor in characteristic.descriptors {
            let properties = DescriptorProperty.values(of: traits.descriptorProperties) { property in
                switch property {
                case .handle: .uint16(descriptor.handle)
                case .uuid: .string(descriptor.uuid)
                case .characteristic: .objectPath(path)
                case .value: .bytes([])
                }
            }
            attributes[descriptor.handle] = RemoteAttribute(
                object: ObjectTree.Attribute(
                    path: path + "/desc" + Self.digits(descriptor.handle), interface: InterfaceName.descriptor,
                    properties: properties),
                uuid: descriptor.uuid, requestHandle: descriptor.handle, flags: [], isClaimed: isClaimed)
        }
    }

    /// Services that BlueZ keeps for itself: generic access, and input devices, which it passes to the kernel.
    static let claimedServices: Set<String> = [
        AttributeDatabase.genericAccess, "00001812-0000-1000-8000-00805f9b34fb",
    ]

    private static func digits(_ handle: UInt16) -> String {
        let text = String(handle, radix: 16)
        return String(repeating: "0", count: 4 - text.utf8.count) + text
    }
}
