/// A method call on one of the daemon's objects, read and checked for its form.
enum Request: Sendable {
    case startDiscovery(adapter: Int)
    case stopDiscovery(adapter: Int)
    case setDiscoveryFilter(adapter: Int, entries: [(key: String, value: FilterValue)])
    case getDiscoveryFilters(adapter: Int)
    case removeDevice(adapter: Int, path: String)
    /// `Properties.Set`; the value is nil when it is of a kind that no property has.
    case setAdapterProperty(adapter: Int, name: String, value: PropertyValue?)

    case connect(DeviceKey)
    case disconnect(DeviceKey)
    case connectProfile(DeviceKey)
    case disconnectProfile(DeviceKey)
    case pair(DeviceKey)
    case cancelPairing(DeviceKey)
    case setDeviceProperty(DeviceKey, name: String, value: PropertyValue?)

    case readValue(AttributeKey, offset: Int)
    case writeValue(AttributeKey, [UInt8], offset: Int, type: String?)
    case startNotify(AttributeKey)
    case stopNotify(AttributeKey)
    case acquireNotify(AttributeKey)
    case acquireWrite(AttributeKey)

    case registerAgent(path: String, capability: String)
    case unregisterAgent(path: String)
    case requestDefaultAgent(path: String)
    case registerProfile(path: String, uuid: String)
    case unregisterProfile(path: String)

    case registerApplication(adapter: Int, path: String)
    case unregisterApplication(adapter: Int, path: String)
    case registerAdvertisement(adapter: Int, path: String)
    case unregisterAdvertisement(adapter: Int, path: String)

    /// Whether a program registers services or an advertisement.
    var isRegistration: Bool {
        switch self {
        case .registerApplication, .registerAdvertisement: true
        default: false
        }
    }
}

extension Request {
    /// The characteristic or descriptor whose method is called; nil for other objects.
    var attribute: AttributeKey? {
        switch self {
        case .readValue(let key, _), .writeValue(let key, _, _, _), .startNotify(let key), .stopNotify(let key),
            .acquireNotify(let key), .acquireWrite(let key):
            key
        default: nil
        }
    }
}

/// A call that waits for its reply.
struct CallID: Hashable, Sendable {
    let number: UInt64
}

/// A look at an object, which changes nothing.
enum Look: Hashable, Sendable {
    case managedObjects
    case property(path: String, interface: String, name: String)
    case properties(path: String, interface: String)
    case introspection(path: String)
}

/// What a reply carries.
enum Answer: Hashable, Sendable {
    /// Arguments one after another; none for a plain "done".
    case values([PropertyValue])
    /// One value in a variant.
    case variant(PropertyValue)
    case properties([NamedValue])
    case objects([Daemon.ObjectState])
}

/// What the daemon wants done, in order.
enum Effect: Hashable, Sendable {
    case reply(CallID, Answer)
    case fail(CallID, DaemonError)
    case emit(Emission)
    /// For the air, which is in the same process; it never gets as far as a bus.
    case order(AirOrder)
    /// A peripheral's behaviour is to be asked.
    case ask(Question)
    /// A pair of sockets is made, and one of them answers the call.
    case openSocket(SocketID, CallID, mtu: Int)
    /// A packet goes to the client.
    case transmit(SocketID, [UInt8])
    case closeSocket(SocketID)
    /// A client has something here that must end with it.
    case watch(client: String)
    case unwatch(client: String)
    /// A client's objects say something that matters here.
    case listen(client: String)
    case unlisten(client: String)
    /// A client's object is called.
    case call(ClientCall)
    /// A central of the simulator's own hears something.
    case central(UInt64, CentralNews)
    /// The daemon falls over a fault of its own.
    case die
    /// The process starts or ends.
    case joinBus
    case leaveBus
}
