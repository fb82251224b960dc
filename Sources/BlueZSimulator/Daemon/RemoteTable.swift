/// The attributes of a remote device that BlueZ shows on the bus, and what clients do with them. It outlives the link:
/// BlueZ keeps the objects of a device that it remembers.
struct RemoteTable: Sendable {
    /// As discovered, those that are not shown yet too.
    var services: [AttributeDatabase.Service] = []
    /// By the handle of the declaration.
    var characteristics: [UInt16: RemoteCharacteristic] = [:]
    var descriptors: [UInt16: RemoteDescriptor] = [:]
    /// The objects that are on the bus, in the order they came.
    var order: [UInt16] = []

    func service(_ handle: UInt16) -> AttributeDatabase.Service? { services.first { $0.handle == handle } }

    func kind(of handle: UInt16) -> AttributeKind? {
        guard order.contains(handle) else { return nil }
        if characteristics[handle] != nil { return .characteristic }
        if descriptors[handle] != nil { return .descriptor }
        return service(handle) == nil ? nil : .service
    }
}

enum AttributeKind: Hashable, Sendable {
    case service, characteristic, descriptor
}

/// The state behind one `org.bluez.GattCharacteristic1`.
struct RemoteCharacteristic: Sendable {
    let laid: AttributeDatabase.Characteristic
    let path: String
    let servicePath: String
    let serviceHandle: UInt16
    /// What was last read or notified; empty before.
    var value: [UInt8] = []
    var isNotifying = false
    /// Who has asked for notifications, in their order.
    var clients: [NotifyClient] = []
    /// Whether the configuration has been written on this link, or is being written.
    var isConfigured = false
    var reading: ReadOperation?
    /// The write under way, the only one at a time.
    var writing: UInt64?
    /// Where notifications go in the place of signals, once somebody has acquired them.
    var notifySocket: AcquiredSocket?
    /// Where write commands come from.
    var writeSocket: AcquiredSocket?
}

/// A socket that a client has acquired, or waits for.
enum AcquiredSocket: Hashable, Sendable {
    case pending
    case open(SocketID)

    var id: SocketID? {
        switch self {
        case .pending: nil
        case .open(let id): id
        }
    }
}

/// The state behind one `org.bluez.GattDescriptor1`.
struct RemoteDescriptor: Sendable {
    let laid: AttributeDatabase.Descriptor
    let path: String
    let characteristicPath: String
    let serviceHandle: UInt16
    var value: [UInt8] = []
    var reading: ReadOperation?
    var writing: UInt64?
}

/// A client's session of notifications; it ends with the client's connection to the bus.
struct NotifyClient: Hashable, Sendable {
    var owner: String
    /// Whether it is in effect on this link. One that is not is put into effect when the device connects again.
    var isArmed: Bool
}

/// A read under way; other clients that ask for the same wait for it too.
struct ReadOperation: Hashable, Sendable {
    var id: UInt64
    var offset: Int
    var calls: [CallID]
}

/// A link as the daemon sees it.
struct HostLink: Sendable {
    var mtu: Int
    var exportDelay: Double
    /// Discovered objects that are not on the bus yet.
    var unseen: [UInt16] = []
    /// Whether the services count as resolved only when all of these are.
    var resolvesAfterExport = false
    /// What is asked of the peer and not answered, by its number.
    var requests: [UInt64: HostRequest] = [:]
}

/// What a request is for.
enum HostRequest: Hashable, Sendable {
    case read(handle: UInt16)
    case write(handle: UInt16, call: CallID)
    /// The call is nil for a subscription that comes back by itself.
    case subscribe(handle: UInt16, owner: String, call: CallID?)
    case unsubscribe(handle: UInt16)
    case acquire(handle: UInt16, owner: String, call: CallID)

    /// What it is about.
    var handle: UInt16 {
        switch self {
        case .read(let handle), .write(let handle, _), .subscribe(let handle, _, _), .unsubscribe(let handle),
            .acquire(let handle, _, _):
            handle
        }
    }
}
