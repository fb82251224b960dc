/// A program's GATT application, as `src/gatt-database.c` keeps it.
struct LocalApplication: Hashable, Sendable {
    let id: ApplicationID
    let owner: String
    /// The path of its object manager.
    let path: String
    let adapter: Int
    /// The call that registers it, until the reply.
    var registration: CallID?
    var characteristics: [String: ServedCharacteristicObject] = [:]
    var descriptors: [String: ServedDescriptorObject] = [:]
    /// The handles of the services, by their paths.
    var services: [String: UInt16] = [:]
}

/// What BlueZ stores about a characteristic's object.
struct ServedCharacteristicObject: Hashable, Sendable {
    var valueHandle: UInt16
    var properties: Set<CharacteristicFlag>
    /// Whether BlueZ can ask for sockets: the object has the property `NotifyAcquired` or `WriteAcquired`.
    var offersNotifySocket: Bool
    var offersWriteSocket: Bool
    var wantsAuthorization: Bool
    /// The number of centrals with a subscription.
    var subscriptions = 0
    var notifySockets: [ServedSocket] = []
    var writeSockets: [ServedSocket] = []
    /// The writes that wait for the socket that BlueZ has asked for.
    var waitingForSocket: [WaitingWrite] = []
    var isAuthorized = false
}

/// A socket of a program for values or writes.
struct ServedSocket: Hashable, Sendable {
    let id: SocketID
    /// The central for which BlueZ has asked for it.
    let central: DeviceKey
    /// Whether it has sent an empty packet, which BlueZ takes for the end: BlueZ reads no more from it.
    var isDeaf = false
    /// Whether another one has replaced it without closing it: BlueZ still reads its packets.
    var isReplaced = false
}

struct ServedDescriptorObject: Hashable, Sendable {
    var handle: UInt16
    var wantsAuthorization: Bool
    var isAuthorized = false
}

/// A write that is sent to a socket as soon as there is one.
struct WaitingWrite: Hashable, Sendable {
    var packet: PacketID
    /// The link of the central.
    var link: DeviceKey
    var bytes: [UInt8]
}

extension AttributeDatabase {
    /// The services that BlueZ has on each adapter, in its order: generic access, generic attribute, device information.
    init(name: String, hasAddressResolution: Bool, version: BlueZVersion) {
        self.init()
        add(Self.genericAccess, count: hasAddressResolution ? 7 : 5) { database, service in
            database.add("2a00", [.read], Array(name.utf8), to: &service)
            database.add("2a01", [.read], [0, 0], to: &service)
            if hasAddressResolution { database.add("2aa6", [.read], [1], to: &service) }
        }
        add(Self.genericAttribute, count: 10) { database, service in
            database.add("2a05", [.indicate], [], to: &service)
            _ = database.insertConfiguration(permissions: [.read, .write], in: &service)
            database.add("2b29", [.read, .write], [0], to: &service)
            database.add("2b2a", [.read], Array(repeating: 0, count: 16), to: &service)
            database.add("2b3a", [.read], [1], to: &service)
        }
        add(Self.deviceInformation, count: 3) { database, service in
            // Source, vendor, product, version, as the adapter's `Modalias` has them.
            let identity = [2, 0x6B, 0x1D, 0x46, 0x02, UInt8(version.release), UInt8(version.major)]
            database.add("2a50", [.read], identity, to: &service)
        }
    }

    private mutating func add(_ uuid: String, count: Int, _ fill: (inout Self, inout Service) -> Void) {
        var service = Service(count: count, uuid: uuid, isPrimary: true)
        _ = insert(&service)
        fill(&self, &service)
        store(service)
    }

    private mutating func add(
        _ uuid: String, _ flags: Set<CharacteristicFlag>, _ value: [UInt8], to service: inout Service
    ) {
        var permissions: AttributePermissions = flags.contains(.read) ? .read : []
        if flags.contains(.write) { permissions.insert(.write) }
        _ = insert(
            ServiceUUID.long(uuid) ?? uuid, flags: flags, permissions: permissions, content: .value(value), in: &service
        )
    }
}
