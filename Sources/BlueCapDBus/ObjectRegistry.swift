import BlueCapFutures
import CBlueCapDBus
import BlueCapReactor

/// The objects that a connection exports, and the dispatch of calls to them. On the connection's loop.
///
/// Errors have the names and texts of BlueZ's own D-Bus layer (gdbus, over libdbus), so that a client sees no difference. A
/// path above an exported object (`/org` above `/org/bluez`) exists too, as an object without interfaces.
///
/// Unchecked for the same reason as `ConnectionCore`.
final class ObjectRegistry: @unchecked Sendable {
    /// A path with an object, or with objects below it.
    private struct Entry {
        var object: ExportedObject?
        /// Greater for an object that was exported later.
        var number = 0
        var descendants = 0
    }

    private var entries: [ObjectPath: Entry] = [:]
    private var lastNumber = 0

    subscript(path: ObjectPath) -> ExportedObject? { entries[path]?.object }

    /// Exports the object and replaces an earlier one at its path.
    func add(_ object: ExportedObject) {
        lastNumber += 1
        if self[object.path] == nil { count(object.path, 1) }
        entries[object.path, default: Entry()].object = object
        entries[object.path]?.number = lastNumber
    }

    func remove(_ path: ObjectPath) {
        guard self[path] != nil else { return }
        entries[path]?.object = nil
        if entries[path]?.descendants == 0 { entries[path] = nil }
        count(path, -1)
    }

    func removeAll() {
        entries = [:]
    }

    /// Changes the number of descendants of all paths above this one.
    private func count(_ path: ObjectPath, _ difference: Int) {
        var ancestor = path.parent
        while let path = ancestor {
            entries[path, default: Entry()].descendants += difference
            if let entry = entries[path], entry.descendants == 0, entry.object == nil { entries[path] = nil }
            ancestor = path.parent
        }
    }

    /// The objects below the path, in the order in which they were exported.
    fileprivate func objects(below path: ObjectPath) -> [ExportedObject] {
        entries.values.filter { $0.object?.path.isBelow(path) ?? false }.ordered { $0.number < $1.number }
            .compactMap(\.object)
    }

    fileprivate func children(of path: ObjectPath) -> [String] {
        entries.keys.filter { $0.parent == path }.map { String($0.lastElement) }.ordered()
    }

    /// Calls the method that the message names, or replies with an error.
    func handle(_ message: Message, on connection: ConnectionCore) {
        guard let path = message.path else { return }
        let object = self[path]
        if let object, object.interfaces.contains(where: { $0.call(message, on: connection) }) { return }
        let place = Place(path: path, registry: self)
        let common = [Self.peer.bound(to: place), Self.introspectable.bound(to: place)]
        if (common + place.interfaces).contains(where: { $0.call(message, on: connection) }) { return }
        guard !message.expectsNoReply else { return }
        let exists = entries[path] != nil || message.hasInterface("org.freedesktop.DBus.Peer")
        connection.send(
            .error(
                to: message,
                DBusError(
                    name: exists ? DBusError.Name.unknownMethod : DBusError.Name.unknownObject,
                    // The text of libdbus, its line feed included.
                    message: """
                        Method "\(message.member ?? "")" with signature "\(message.signature)" on interface \
                        "\(message.interface ?? "(null)")" doesn't exist

                        """)))
    }
}

/// The interfaces of the D-Bus specification. Peer and Introspectable exist at every path.
extension ObjectRegistry {
    /// A path in the registry: the target of these interfaces.
    fileprivate struct Place: Sendable {
        let path: ObjectPath
        let registry: ObjectRegistry

        /// The interfaces that introspection shows, in BlueZ's order: Introspectable, ObjectManager, the object's own, and
        /// Properties after the first that has some.
        var interfaces: [ExportedInterface] {
            guard let object = registry[path] else { return [] }
            var all = [ObjectRegistry.introspectable.bound(to: self)]
            if object.isObjectManager { all.append(ObjectRegistry.objectManager.bound(to: self)) }
            all += object.interfaces
            let first = all.firstIndex { !$0.interface.properties.isEmpty }
            if let first { all.insert(ObjectRegistry.properties.bound(to: self), at: first + 1) }
            return all
        }

        /// Reads the name of an interface; nil after a reply that there is no such interface.
        func interface(_ reader: inout MessageReader, _ invocation: Invocation) -> ExportedInterface? {
            let found = reader.withString { name in
                interfaces.first { $0.interface.name.utf8.elementsEqual(name) }
            }
            if let found = found ?? nil { return found }
            var reader = invocation.reader
            invocation.fail(.invalidArguments("No such interface '\(reader.string() ?? "")'"))
            return nil
        }

        func fail(_ invocation: Invocation, _ error: String) {
            var reader = invocation.reader
            reader.skip()
            invocation.fail(DBusError(name: error, message: "No such property '\(reader.string() ?? "")'"))
        }

        /// Writes an `a{sa{sv}}`: the interfaces with the properties that the object has at present.
        func writeInterfaces(_ writer: inout MessageWriter) {
            writer.dictionary(key: "s", value: "a{sv}") { dictionary in
                for exported in interfaces {
                    dictionary.entry { entry in
                        entry.string(exported.interface.name)
                        exported.writeProperties(&entry)
                    }
                }
            }
        }
    }

    private static let peer = InterfaceTable<Place>(
        "org.freedesktop.DBus.Peer",
        methods: [
            .init("Ping") { _, invocation in invocation.reply() },
            .init("GetMachineId", out: ["machine_uuid": "s"]) { _, invocation in
                guard let id = cdbus_machine_id() else { return invocation.fail(.failed("This machine has no id.")) }
                invocation.reply { $0.string(String(cString: id)) }
                cdbus_free(id)
            },
        ])

    private static let introspectable = InterfaceTable<Place>(
        "org.freedesktop.DBus.Introspectable",
        methods: [
            .init("Introspect", out: ["xml": "s"]) { place, invocation in
                let nodes = place.registry.children(of: place.path).map { "<node name=\"\($0)\"/>" }
                let xml = """
                    <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
                    "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
                    <node>
                    """
                let contents = place.interfaces.map(\.interface.xml) + nodes
                invocation.reply { $0.string(xml + contents.joined() + "</node>") }
            }
        ])

    private static let objectManager = InterfaceTable<Place>(
        "org.freedesktop.DBus.ObjectManager",
        methods: [
            .init("GetManagedObjects", out: ["objects": "a{oa{sa{sv}}}"]) { place, invocation in
                invocation.reply { writer in
                    writer.dictionary(key: "o", value: "a{sa{sv}}") { dictionary in
                        for object in place.registry.objects(below: place.path) {
                            dictionary.entry { entry in
                                entry.objectPath(object.path)
                                Place(path: object.path, registry: place.registry).writeInterfaces(&entry)
                            }
                        }
                    }
                }
            }
        ],
        signals: [
            "InterfacesAdded": ["object": "o", "interfaces": "a{sa{sv}}"],
            "InterfacesRemoved": ["object": "o", "interfaces": "as"],
        ])

    private static let properties = InterfaceTable<Place>(
        "org.freedesktop.DBus.Properties",
        methods: [
            .init("Get", in: ["interface": "s", "name": "s"], out: ["value": "v"]) { place, invocation in
                var reader = invocation.reader
                guard let exported = place.interface(&reader, invocation) else { return }
                guard let property = reader.withString(exported.interface.property(named:)) ?? nil,
                    property.exists(exported.target)
                else { return place.fail(invocation, DBusError.Name.invalidArguments) }
                invocation.reply { writer in
                    writer.variant(static: property.signature) { property.get(exported.target, &$0) }
                }
            },
            .init("Set", in: ["interface": "s", "name": "s", "value": "v"]) { place, invocation in
                var reader = invocation.reader
                guard let exported = place.interface(&reader, invocation) else { return }
                guard let property = reader.withString(exported.interface.property(named:)) ?? nil else {
                    return place.fail(invocation, DBusError.Name.unknownProperty)
                }
                guard let set = property.set else {
                    return invocation.fail(
                        DBusError(
                            name: DBusError.Name.propertyReadOnly,
                            message: "Property '\(property.name)' is not writable"))
                }
                guard property.exists(exported.target) else {
                    return place.fail(invocation, DBusError.Name.unknownProperty)
                }
                reader.variant { value in
                    guard value.signature == "\(property.signature)" else {
                        return invocation.fail(
                            DBusError(
                                name: DBusError.Name.invalidSignature,
                                message: "Invalid signature for '\(property.name)'"))
                    }
                    set(exported.target, &value, invocation)
                }
            },
            .init("GetAll", in: ["interface": "s"], out: ["properties": "a{sv}"]) { place, invocation in
                var reader = invocation.reader
                guard let exported = place.interface(&reader, invocation) else { return }
                invocation.reply { exported.writeProperties(&$0) }
            },
        ],
        signals: [
            "PropertiesChanged": ["interface": "s", "changed_properties": "a{sv}", "invalidated_properties": "as"]
        ])
}

extension Message {
    /// Returns the signal with the present values of these properties; those that the object has not at present are
    /// invalidated. Traps if the interface has no such property.
    package static func propertiesChanged(
        _ path: ObjectPath, _ exported: ExportedInterface, _ names: [String]
    ) -> Message {
        var invalidated: [String] = []
        return .signal(path: path, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") {
            writer in
            writer.string(exported.interface.name)
            writer.options { dictionary in
                for var name in names {
                    guard let property = name.withUTF8({ exported.interface.property(named: $0) }) else {
                        preconditionFailure("\(exported.interface.name) has no property \"\(name)\".")
                    }
                    guard property.exists(exported.target) else {
                        invalidated.append(name)
                        continue
                    }
                    dictionary.entry { entry in
                        entry.string(static: property.name)
                        entry.variant(static: property.signature) { property.get(exported.target, &$0) }
                    }
                }
            }
            writer.strings(invalidated)
        }
    }
}
