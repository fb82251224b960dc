/// An attribute of a remote device: its object on the bus, and what clients do with it. It outlives the link, because
/// BlueZ keeps the objects of a device that it remembers.
struct RemoteAttribute: Sendable {
    /// As it is when it is put on the bus.
    let object: ObjectTree.Attribute
    let uuid: String
    /// The handle that requests carry: of the value, or of the descriptor.
    let requestHandle: UInt16
    /// The handle of the descriptor that subscriptions are written to; 0 if there is none.
    let configurationHandle: UInt16
    /// Those of a characteristic; empty for other attributes.
    let flags: Set<CharacteristicFlag>
    /// Whether it belongs to a service that BlueZ keeps for itself.
    let isClaimed: Bool
    var reading: ReadOperation?
    /// Whether a write is under way, the only one at a time.
    var isWriting = false
    /// The clients that have a session of notifications, in their order. It ends with the client's connection to the
    /// bus.
    var clients: [String] = []
    /// Those of them whose session is in effect on this link; the others' are put into effect when the device connects
    /// again.
    var armed: Set<String> = []
    /// Whether the configuration was written on this link, or is being written.
    var isConfigured = false
    var sockets: [AcquiredSocket.Kind: AcquiredSocket] = [:]

    var canNotify: Bool { flags.contains(.notify) || flags.contains(.indicate) }
    /// What a subscription writes: 1 for notifications, 2 for indications.
    var configurationBits: UInt8 { flags.contains(.notify) ? 1 : 2 }

    mutating func removeClient(_ client: String) {
        clients.removeAll { $0 == client }
        armed.remove(client)
    }
}

/// A socket that a client has acquired, or waits for.
enum AcquiredSocket: Hashable, Sendable {
    /// By the property that shows it.
    enum Kind: String, Sendable {
        /// Notifications go to it instead of signals.
        case notify = "NotifyAcquired"
        /// Write commands come from it.
        case write = "WriteAcquired"
    }

    case pending
    /// The peer has refused the subscription, for which there is no reply.
    case lost
    case open(SocketID)
}

/// A read under way. Calls for the same value wait for it too.
struct ReadOperation: Hashable, Sendable {
    var offset: Int
    var calls: [CallID]
    /// Whether the link has ended and BlueZ has forgotten to end the read.
    var isLost = false
}

/// The attributes of a remote device by the handles of their declarations.
struct RemoteTable: Sendable {
    /// All that were discovered.
    var services: [AttributeDatabase.Service] = []
    /// Those that have objects, or will have.
    var attributes: [UInt16: RemoteAttribute] = [:]

    /// The attributes of a service, parents first.
    static func keys(of service: AttributeDatabase.Service, on device: DeviceKey) -> [AttributeKey] {
        let below = service.characteristics.flatMap { [$0.handle] + $0.descriptors.map(\.handle) }
        return ([service.handle] + below).map(device.attribute)
    }

    /// Makes the attributes of a service, unless they are there.
    mutating func adopt(_ service: AttributeDatabase.Service, of device: Device, _ properties: PropertyTables) {
        guard attributes[service.handle] == nil else { return }
        let isClaimed = Self.claimedServices.contains(service.uuid)
        func add(
            _ handle: UInt16, _ path: String, _ interface: String, _ values: [NamedValue], uuid: String,
            requestHandle: UInt16, _ characteristic: AttributeDatabase.Characteristic? = nil
        ) {
            attributes[handle] = RemoteAttribute(
                object: ObjectTree.Attribute(path: path, interface: interface, properties: values), uuid: uuid,
                requestHandle: requestHandle, configurationHandle: characteristic?.configurationHandle ?? 0,
                flags: characteristic?.flags ?? [], isClaimed: isClaimed)
        }
        let servicePath = Self.path(of: service.handle, in: device.path)
        add(
            service.handle, servicePath, InterfaceName.service, properties.service.values(of: (service, device.path)),
            uuid: service.uuid, requestHandle: service.handle)
        for characteristic in service.characteristics {
            let path = servicePath + "/char" + Self.digits(characteristic.handle)
            add(
                characteristic.handle, path, InterfaceName.characteristic,
                properties.characteristic.values(of: (characteristic, servicePath)), uuid: characteristic.uuid,
                requestHandle: characteristic.valueHandle, characteristic)
            for descriptor in characteristic.descriptors {
                add(
                    descriptor.handle, path + "/desc" + Self.digits(descriptor.handle), InterfaceName.descriptor,
                    properties.descriptor.values(of: (descriptor, path)), uuid: descriptor.uuid,
                    requestHandle: descriptor.handle)
            }
        }
    }

    static func path(of service: UInt16, in devicePath: String) -> String { devicePath + "/service" + digits(service) }

    /// Services that BlueZ keeps for itself: generic access, and input devices, which it passes to the kernel.
    static let claimedServices: Set<String> = [
        AttributeDatabase.genericAccess, "00001812-0000-1000-8000-00805f9b34fb",
    ]

    private static func digits(_ handle: UInt16) -> String { Hexadecimal.text(handle.bytes.reversed()) }
}
