/// A program's GATT application, as `src/gatt-database.c` keeps it.
struct LocalApplication: Hashable, Sendable {
    let id: ApplicationID
    let owner: String
    /// Of its object manager.
    let path: String
    let adapter: Int
    /// The call that registers it, until that is answered.
    var registration: CallID?
    var characteristics: [String: ServedCharacteristicObject] = [:]
    var descriptors: [String: ServedDescriptorObject] = [:]
    /// By their paths, the handles of the services.
    var services: [String: UInt16] = [:]
}

/// What BlueZ keeps of a characteristic's object.
struct ServedCharacteristicObject: Hashable, Sendable {
    var valueHandle: UInt16
    var properties: AttributeProperties
    /// By their presence BlueZ knows whether it can ask for sockets.
    var offersNotifySocket: Bool
    var offersWriteSocket: Bool
    var wantsAuthorization: Bool
    /// How many centrals have a subscription.
    var subscriptions = 0
    var notifySockets: [ServedSocket] = []
    var writeSockets: [ServedSocket] = []
    /// The writes that wait for the socket that was asked for.
    var waitingForSocket: [WaitingWrite] = []
    var isAuthorized = false
}

/// A socket that a program has given for values or writes.
struct ServedSocket: Hashable, Sendable {
    let id: SocketID
    /// The central that it was asked for.
    let central: DeviceKey
    /// A packet without bytes has come out of it: BlueZ takes it for the end and reads no more.
    var isDeaf = false
    /// Another one has taken its place without closing it: its packets are still read.
    var isReplaced = false
}

struct ServedDescriptorObject: Hashable, Sendable {
    var handle: UInt16
    var wantsAuthorization: Bool
    var isAuthorized = false
}

/// A write that goes into a socket as soon as there is one.
struct WaitingWrite: Hashable, Sendable {
    var packet: PacketID
    /// Whose it is.
    var link: DeviceKey
    var bytes: [UInt8]
}
