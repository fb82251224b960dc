import BlueCapDBus

/// The names of the D-Bus interfaces that the simulator has or calls.
enum InterfaceName {
    static let agentManager = "org.bluez.AgentManager1"
    static let agent = "org.bluez.Agent1"
    static let profileManager = "org.bluez.ProfileManager1"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let bearer = "org.bluez.Bearer.LE1"
    static let battery = "org.bluez.Battery1"
    static let batteryProviders = "org.bluez.BatteryProviderManager1"
    static let gattManager = "org.bluez.GattManager1"
    static let service = "org.bluez.GattService1"
    static let characteristic = "org.bluez.GattCharacteristic1"
    static let descriptor = "org.bluez.GattDescriptor1"
    static let advertisingManager = "org.bluez.LEAdvertisingManager1"
    static let advertisement = "org.bluez.LEAdvertisement1"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let properties = "org.freedesktop.DBus.Properties"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let peer = "org.freedesktop.DBus.Peer"
}

/// An object with its interfaces, as `GetManagedObjects` lists it.
struct ObjectState: Hashable, Sendable {
    var path: String
    var interfaces: [InterfaceState]
}

/// An interface of an object with the properties that exist.
struct InterfaceState: Hashable, Sendable {
    var name: String
    var properties: [NamedValue] = []
}

/// A call of one of the daemon's methods.
struct MethodCall: Hashable, Sendable {
    var path: String
    /// Nil if the message names no interface; then the first one that has the method counts.
    var interface: String?
    var member: String
    var signature: String
    var arguments: [BusValue]
    /// The caller's unique name.
    var client: String
    var id: CallID
    /// The object at the path, if it is not one of the daemon's own; set when the call is dispatched.
    var object: ObjectKey?

    // What a handler reads. An interface's methods are only called at objects of its kind and with arguments of the
    // described types, so that none of these finds anything else.

    var adapter: Int { if case .adapter(let index)? = object { index } else { misplaced() } }
    var device: DeviceKey { if case .device(let key)? = object { key } else { misplaced() } }
    var attribute: AttributeKey { if case .attribute(let key)? = object { key } else { misplaced() } }

    private func misplaced() -> Never {
        preconditionFailure("Describe the method \(member) in an interface that only objects of its kind have.")
    }

    func path(_ index: Int) -> String { arguments[index].path ?? "" }
    func text(_ index: Int) -> String { arguments[index].text ?? "" }
    func options(_ index: Int) -> [NamedValue] { arguments[index].options }
}

extension MethodCall {
    init(_ message: Message, number: UInt64) {
        self.init(
            path: message.path?.rawValue ?? "/", interface: message.interface, member: message.member ?? "",
            signature: message.signature, arguments: message.values, client: message.sender ?? "",
            id: CallID(number: number, message: message))
    }
}

/// An object of the daemon, or an interface of one that changes on its own.
enum ObjectKey: Hashable, Sendable {
    /// `/org/bluez`.
    case root
    case adapter(Int)
    case device(DeviceKey)
    case attribute(AttributeKey)
    /// The advertising manager of an adapter, an interface of the adapter's object.
    case advertising(Int)
}

/// An attribute of a remote device, by the handle of its declaration.
struct AttributeKey: Hashable, Sendable {
    var device: DeviceKey
    var handle: UInt16
}

extension DeviceKey {
    func attribute(_ handle: UInt16) -> AttributeKey { AttributeKey(device: self, handle: handle) }
}

/// Identifies a call that waits for its reply.
///
/// It has the call's message, so that the message is kept for as long as the daemon can reply. A call that the daemon forgets,
/// because BlueZ never replies to it, takes no memory.
struct CallID: Hashable, Sendable {
    let number: UInt64
    /// Nil in tests of the daemon alone.
    var message: Message?

    static func == (left: CallID, right: CallID) -> Bool { left.number == right.number }
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// Identifies a socket that the daemon shares with a client.
struct SocketID: Hashable, Sendable {
    let number: UInt64
}

/// A signal of the daemon, or of a client's object.
enum Emission: Hashable, Sendable {
    case interfacesAdded(path: String, interfaces: [InterfaceState])
    case interfacesRemoved(path: String, interfaces: [String])
    case propertiesChanged(path: String, interface: String, changed: [NamedValue], invalidated: [String])
    case disconnected(path: String, interface: String, LinkEndCause)

    var member: String {
        switch self {
        case .interfacesAdded: "InterfacesAdded"
        case .interfacesRemoved: "InterfacesRemoved"
        case .propertiesChanged: "PropertiesChanged"
        case .disconnected: "Disconnected"
        }
    }

    /// Reads a message of a client; nil for a signal that has no meaning for the daemon.
    init?(_ message: Message) {
        switch (message.interface, message.member, message.signature) {
        case (InterfaceName.properties?, "PropertiesChanged"?, "sa{sv}as"):
            let values = message.values
            self = .propertiesChanged(
                path: message.path?.rawValue ?? "/", interface: values[0].text ?? "", changed: values[1].options,
                invalidated: values[2].strings ?? [])
        case (InterfaceName.objectManager?, "InterfacesRemoved"?, "oas"):
            let values = message.values
            self = .interfacesRemoved(path: values[0].path ?? "", interfaces: values[1].strings ?? [])
        default: return nil
        }
    }
}

/// A call of a client's object by the daemon.
struct ClientCall: Hashable, Sendable {
    enum Reply: Hashable, Sendable {
        case values
        /// One end of a pair of sockets, and the MTU.
        case socket
        /// The message asks for no reply.
        case none
    }

    var id: UInt64
    /// The client's unique name.
    var client: String
    var path: String
    var interface: String
    var member: String
    var arguments: [BusValue] = []
    var reply: Reply
    /// Seconds: 25 as libdbus has it, or 300 where BlueZ calls through a proxy.
    var timeout: Double
}

/// The reply to a call of a client's object.
enum ClientReply: Hashable, Sendable {
    case values([BusValue])
    case socket(SocketID)
    case error(name: String, message: String)

    /// The first value; nil for a socket and an error.
    var value: BusValue? { if case .values(let values) = self { values.first } else { nil } }
}

extension Message {
    var values: [BusValue] {
        var values: [BusValue] = []
        var reader = reader
        while let value = reader.value() { values.append(value) }
        return values
    }

    /// Returns the message of a signal. Those of the object manager come from the root object, as with BlueZ.
    static func signal(_ emission: Emission) -> Message {
        let (path, interface, values): (String, String, [BusValue]) =
            switch emission {
            case .interfacesAdded(let path, let interfaces):
                ("/", InterfaceName.objectManager, [.objectPath(path), .interfaces(interfaces)])
            case .interfacesRemoved(let path, let interfaces):
                ("/", InterfaceName.objectManager, [.objectPath(path), .strings(interfaces)])
            case .propertiesChanged(let path, let interface, let changed, let invalidated):
                (path, InterfaceName.properties, [.string(interface), .options(changed), .strings(invalidated)])
            case .disconnected(let path, let interface, let cause):
                (path, interface, [.string(cause.name), .string(cause.message)])
            }
        return .signal(path: ObjectPath(validating: path) ?? .root, interface: interface, member: emission.member) {
            $0.values(values)
        }
    }
}
