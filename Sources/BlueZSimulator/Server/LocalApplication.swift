/// A program's GATT application, as `src/gatt-database.c` of 5.66 keeps it.
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
    var notifySocket: SocketID?
    /// A packet without bytes has come out of that: 5.66 takes it for the end and reads no more.
    var isDeaf = false
    var writeSocket: SocketID?
    /// The writes that wait for the socket that was asked for.
    var waitingForSocket: [WaitingWrite] = []
    var isAuthorized = false
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
