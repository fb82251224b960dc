/// A value that another program has given: a property of one of its objects.
indirect enum RemoteValue: Hashable, Sendable {
    case string(String)
    case objectPath(String)
    case bool(Bool)
    case byte(UInt8)
    case int16(Int16)
    case uint16(UInt16)
    case uint32(UInt32)
    case bytes([UInt8])
    /// Of strings, paths, or anything else but bytes.
    case array([RemoteValue])
    /// Each value as it is inside its variant, where it is in one.
    case dictionary([RemoteEntry])
    case other(signature: String)

    var strings: [String]? {
        guard case .array(let elements) = self else { return nil }
        return elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    var paths: [String]? {
        guard case .array(let elements) = self else { return nil }
        return elements.compactMap { if case .objectPath(let path) = $0 { path } else { nil } }
    }

    var path: String? { if case .objectPath(let path) = self { path } else { nil } }
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    var number: UInt16? { if case .uint16(let number) = self { number } else { nil } }
    var isArray: Bool {
        switch self {
        case .array, .bytes, .dictionary: true
        default: false
        }
    }
}

/// An entry of a dictionary, in the order sent.
struct RemoteEntry: Hashable, Sendable {
    var key: RemoteValue
    var value: RemoteValue
}

/// An object of another program, as `GetManagedObjects` lists it, with its interfaces in the order sent.
struct RemoteObject: Hashable, Sendable {
    struct Interface: Hashable, Sendable {
        var name: String
        var properties: [String: RemoteValue]
    }

    var path: String
    var interfaces: [Interface]
}

/// A call of the daemon to a client's object.
struct ClientCall: Hashable, Sendable {
    enum Argument: Hashable, Sendable {
        case string(String)
        case bytes([UInt8])
        case options([NamedValue])
        case variant(PropertyValue)
    }

    /// What the answer must be to be of use.
    enum Form: Hashable, Sendable {
        case objects, properties, bytes, nothing, socket
        /// Whatever it is, nobody looks at it.
        case ignored
        /// None is wanted, and the call says so.
        case none
    }

    var id: UInt64
    /// The client's unique name.
    var client: String
    var path: String
    var interface: String
    var member: String
    var arguments: [Argument] = []
    var form: Form
    /// Seconds; libdbus's own 25 where BlueZ says nothing, its 300 where it calls through a proxy.
    var timeout: Double
}

/// What came of a call.
enum ClientReply: Hashable, Sendable {
    case objects([RemoteObject])
    case properties([String: RemoteValue])
    case bytes([UInt8])
    case done
    case socket(SocketID, mtu: Int)
    /// An answer of another form than was asked for.
    case malformed
    case error(name: String, message: String)
}

/// What a client's objects say by themselves.
enum ClientSignal: Hashable, Sendable {
    case propertiesChanged(
        path: String, interface: String, changed: [RemoteProperty], invalidated: [String])
    case interfacesRemoved(path: String, interfaces: [String])
}

/// A property in a signal, in the order sent.
struct RemoteProperty: Hashable, Sendable {
    var name: String
    var value: RemoteValue
}
