import DBus

/// A method call, read: something for the daemon to decide, or a look at what is there.
enum Call {
    case request(Request)
    case look(Look)
    case ping
}

extension Call {
    /// Reads a call to an object with these interfaces.
    ///
    /// - Throws: `UnknownMethod` or `UnknownObject`, in the words libdbus has for what nobody handles, also for arguments
    ///   that are not of the method's types.
    static func read(
        _ message: Message, at path: String, object: ObjectKey?, interfaces: [String], tables: [String: InterfaceTable]
    ) throws(DBusError) -> Call {
        let member = message.member ?? ""
        let interface = message.interface ?? owner(of: member, among: interfaces, tables) ?? ""
        if interface == Message.peer, member == "Ping" { return .ping }
        guard !interfaces.isEmpty else { throw unhandled(message, name: DBusError.Name.unknownObject) }
        guard interfaces.contains(interface), let method = tables[interface]?.method(member),
            message.signature == method.signature
        else { throw unhandled(message, name: DBusError.Name.unknownMethod) }

        var reader = message.reader
        switch interface {
        case Message.objectManager: return .look(.managedObjects)
        case Message.introspectable: return .look(.introspection(path: path))
        case Message.properties: return try readProperties(member, &reader, at: path, object: object)
        default: break
        }
        guard let request = Request.read(member, of: interface, at: object, from: &reader) else {
            throw unhandled(message, name: DBusError.Name.unknownMethod)
        }
        return .request(request)
    }

    private static func readProperties(
        _ member: String, _ reader: inout MessageReader, at path: String, object: ObjectKey?
    ) throws(DBusError) -> Call {
        let interface = reader.string() ?? ""
        switch member {
        case "GetAll": return .look(.properties(path: path, interface: interface))
        case "Get": return .look(.property(path: path, interface: interface, name: reader.string() ?? ""))
        default: break
        }
        let name = reader.string() ?? ""
        let value = reader.variant { $0.propertyValue() }
        switch (object, interface) {
        case (.adapter(let index)?, Daemon.adapterInterface):
            return .request(.setAdapterProperty(adapter: index, name: name, value: value))
        case (.device(let key)?, Daemon.deviceInterface):
            return .request(.setDeviceProperty(key, name: name, value: value))
        case (_, Daemon.advertisingManagerInterface), (_, Daemon.gattManagerInterface), (_, Daemon.batteryInterface),
            (.attribute?, _):
            let error = DaemonError.notWritable(name)
            throw DBusError(name: error.name, message: error.message)
        default:
            throw .invalidArguments("No such interface '\(interface)'")
        }
    }

    /// A call may leave the interface out: then it is the first that has such a method.
    private static func owner(
        of member: String, among interfaces: [String], _ tables: [String: InterfaceTable]
    ) -> String? {
        interfaces.first { tables[$0]?.method(member) != nil }
    }

    private static func unhandled(_ message: Message, name: String) -> DBusError {
        DBusError(
            name: name,
            message: "Method \"\(message.member ?? "")\" with signature \"\(message.signature)\" on interface "
                + "\"\(message.interface ?? "(null)")\" doesn't exist\n")
    }
}

extension Request {
    fileprivate static func read(
        _ member: String, of interface: String, at object: ObjectKey?, from reader: inout MessageReader
    ) -> Request? {
        switch (object, interface) {
        case (.adapter(let index)?, Daemon.adapterInterface):
            readAdapter(member, index, &reader)
        case (.adapter(let index)?, Daemon.gattManagerInterface):
            readApplication(member, index, &reader)
        case (.adapter(let index)?, Daemon.advertisingManagerInterface):
            readAdvertisement(member, index, &reader)
        case (.device(let key)?, Daemon.deviceInterface):
            readDevice(member, key)
        case (.attribute(let key)?, Daemon.characteristicInterface), (.attribute(let key)?, Daemon.descriptorInterface):
            readAttribute(member, key, &reader)
        case (nil, Daemon.agentManagerInterface), (nil, Daemon.profileManagerInterface):
            readManager(member, &reader)
        default:
            nil
        }
    }

    private static func readAdapter(_ member: String, _ index: Int, _ reader: inout MessageReader) -> Request? {
        switch member {
        case "StartDiscovery": .startDiscovery(adapter: index)
        case "StopDiscovery": .stopDiscovery(adapter: index)
        case "SetDiscoveryFilter": .setDiscoveryFilter(adapter: index, entries: reader.filterEntries())
        case "GetDiscoveryFilters": .getDiscoveryFilters(adapter: index)
        case "RemoveDevice": .removeDevice(adapter: index, path: reader.objectPath()?.rawValue ?? "")
        default: nil
        }
    }

    private static func readApplication(
        _ member: String, _ index: Int, _ reader: inout MessageReader
    ) -> Request? {
        let path = reader.objectPath()?.rawValue ?? ""
        return member == "RegisterApplication"
            ? .registerApplication(adapter: index, path: path) : .unregisterApplication(adapter: index, path: path)
    }

    private static func readAdvertisement(
        _ member: String, _ index: Int, _ reader: inout MessageReader
    ) -> Request? {
        let path = reader.objectPath()?.rawValue ?? ""
        return member == "RegisterAdvertisement"
            ? .registerAdvertisement(adapter: index, path: path)
            : .unregisterAdvertisement(adapter: index, path: path)
    }

    private static func readDevice(_ member: String, _ key: DeviceKey) -> Request? {
        switch member {
        case "Connect": .connect(key)
        case "Disconnect": .disconnect(key)
        case "ConnectProfile": .connectProfile(key)
        case "DisconnectProfile": .disconnectProfile(key)
        case "Pair": .pair(key)
        case "CancelPairing": .cancelPairing(key)
        default: nil
        }
    }

    private static func readAttribute(
        _ member: String, _ key: AttributeKey, _ reader: inout MessageReader
    ) -> Request? {
        switch member {
        case "StartNotify": return .startNotify(key)
        case "StopNotify": return .stopNotify(key)
        case "AcquireNotify": return .acquireNotify(key)
        case "AcquireWrite": return .acquireWrite(key)
        case "ReadValue":
            let options = reader.attributeOptions()
            return .readValue(key, offset: options.offset)
        case "WriteValue":
            let bytes = reader.bytes() ?? []
            let options = reader.attributeOptions()
            return .writeValue(key, bytes, offset: options.offset, type: options.type)
        default: return nil
        }
    }

    private static func readManager(_ member: String, _ reader: inout MessageReader) -> Request? {
        let path = reader.objectPath()?.rawValue ?? ""
        return switch member {
        case "RegisterAgent": .registerAgent(path: path, capability: reader.string() ?? "")
        case "UnregisterAgent": .unregisterAgent(path: path)
        case "RequestDefaultAgent": .requestDefaultAgent(path: path)
        case "RegisterProfile": .registerProfile(path: path, uuid: reader.string() ?? "")
        case "UnregisterProfile": .unregisterProfile(path: path)
        default: nil
        }
    }
}

extension MessageReader {
    /// A value of one of the kinds that writable properties have; nil for others.
    fileprivate mutating func propertyValue() -> PropertyValue? {
        switch type {
        case .bool: bool().map(PropertyValue.bool)
        case .string: string().map(PropertyValue.string)
        case .uint32: uint32().map(PropertyValue.uint32)
        case .uint16: uint16().map(PropertyValue.uint16)
        case .int16: int16().map(PropertyValue.int16)
        case .byte: byte().map(PropertyValue.byte)
        default: nil
        }
    }

    /// The options of `ReadValue` and `WriteValue`.
    fileprivate mutating func attributeOptions() -> (offset: Int, type: String?) {
        var offset = 0
        var type: String?
        dictionary { entry in
            switch entry.string() {
            case "offset": offset = Int(entry.variant { $0.uint16() } ?? 0)
            case "type": type = entry.variant { $0.string() }
            default: break
            }
        }
        return (offset, type)
    }

    /// The entries of a filter's dictionary, in the order sent and with the types sent.
    fileprivate mutating func filterEntries() -> [(key: String, value: FilterValue)] {
        var entries: [(key: String, value: FilterValue)] = []
        dictionary { entry in
            guard let key = entry.string(), let value = entry.variant({ $0.filterValue() }) else { return }
            entries.append((key, value))
        }
        return entries
    }

    private mutating func filterValue() -> FilterValue? {
        switch type {
        case .string: return string().map(FilterValue.string)
        case .int16: return int16().map(FilterValue.int16)
        case .uint16: return uint16().map(FilterValue.uint16)
        case .bool: return bool().map(FilterValue.bool)
        default:
            if let list = strings() { return .strings(list) }
            return .other(signature: signature)
        }
    }
}
