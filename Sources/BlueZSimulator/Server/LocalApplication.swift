/// A program's GATT application, as `src/gatt-database.c` keeps it.
struct LocalApplication: Sendable {
    let id: ApplicationID
    let owner: String
    /// The path of its object manager.
    let path: String
    let adapter: Int
    /// The call that registers it, until the reply.
    var registration: CallID?
    /// Its characteristics and descriptors, by their paths.
    var objects: [String: ServedObject] = [:]
    /// The handles of the services, by their paths.
    var services: [String: UInt16] = [:]
}

/// What BlueZ stores about the object of a characteristic or a descriptor; a descriptor has no sockets and no
/// subscriptions.
struct ServedObject: Sendable {
    let interface: String
    /// The handle of the value, or of the descriptor.
    let handle: UInt16
    let flags: Set<CharacteristicFlag>
    /// Whether BlueZ can ask for sockets: the object has the property `NotifyAcquired` or `WriteAcquired`.
    let offersNotifySocket: Bool
    let offersWriteSocket: Bool
    /// Whether the program must allow each write.
    let wantsAuthorization: Bool
    /// The number of centrals with a subscription.
    var subscriptions = 0
    var notifySockets: [ServedSocket] = []
    var writeSockets: [ServedSocket] = []
    /// The writes that are sent to the socket that BlueZ has asked for, as soon as there is one.
    var waitingForSocket: [(packet: PacketID, bytes: [UInt8])] = []
    /// Whether the program has allowed the write that is being prepared.
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

extension AttributeDatabase {
    /// The services that BlueZ has on each adapter, in its order: generic access, generic attribute, device information.
    init(name: String, hasAddressResolution: Bool, version: BlueZVersion) {
        // Source, vendor, product, version, as the adapter's `Modalias` has them.
        let identity = [2, 0x6B, 0x1D, 0x46, 0x02, UInt8(version.release), UInt8(version.major)]
        let resolution = VirtualCharacteristic("2aa6", value: [1])
        let services = [
            VirtualService(
                Self.genericAccess,
                characteristics: [
                    VirtualCharacteristic("2a00", value: Array(name.utf8)),
                    VirtualCharacteristic("2a01", value: [0, 0]),
                ] + (hasAddressResolution ? [resolution] : [])),
            VirtualService(
                Self.genericAttribute,
                characteristics: [
                    VirtualCharacteristic("2a05", [.indicate]),
                    VirtualCharacteristic("2b29", [.read, .write], value: [0]),
                    VirtualCharacteristic("2b2a", value: Array(repeating: 0, count: 16)),
                    VirtualCharacteristic("2b3a", value: [1]),
                ]),
            VirtualService(Self.deviceInformation, characteristics: [VirtualCharacteristic("2a50", value: identity)]),
        ]
        self = (try? Self(placing: services)) ?? Self()
    }
}
