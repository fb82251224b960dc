import CDBus
import Reactor

/// The objects that a connection exports, and the answers to calls of them. On the connection's loop.
///
/// Errors have the names and texts that BlueZ's own D-Bus layer (gdbus, over libdbus) answers with, so that a client sees
/// no difference. A path is found in one look-up; what is above an exported object (`/org` above `/org/bluez`) exists
/// too, as something without interfaces.
final class ObjectRegistry {
    private struct Entry {
        let object: ExportedObject
        let number: UInt64
    }

    private var entries: [ObjectPath: Entry] = [:]
    /// How many objects are below each path.
    private var descendants: [ObjectPath: Int] = [:]
    private var lastNumber: UInt64 = 0

    subscript(path: ObjectPath) -> ExportedObject? { entries[path]?.object }

    /// Exports the object, in the place of what had its path before.
    func add(_ object: ExportedObject) {
        lastNumber += 1
        let isNew = entries.updateValue(Entry(object: object, number: lastNumber), forKey: object.path) == nil
        if isNew { forEachAncestor(of: object.path) { descendants[$0, default: 0] += 1 } }
    }

    @discardableResult
    func remove(_ path: ObjectPath) -> ExportedObject? {
        guard let entry = entries.removeValue(forKey: path) else { return nil }
        forEachAncestor(of: path) { ancestor in
            let count = descendants[ancestor, default: 1] - 1
            descendants[ancestor] = count > 0 ? count : nil
        }
        return entry.object
    }

    func removeAll() {
        entries = [:]
        descendants = [:]
    }

    /// The object manager that answers for the path; nil where there is none above it.
    func manager(of path: ObjectPath) -> ObjectPath? {
        var manager: ObjectPath?
        forEachAncestor(of: path) { if manager == nil, self[$0]?.isObjectManager == true { manager = $0 } }
        return manager
    }

    private func forEachAncestor(of path: ObjectPath, _ body: (ObjectPath) -> Void) {
        var ancestor = path.parent
        while let path = ancestor {
            body(path)
            ancestor = path.parent
        }
    }

    /// The objects below the path, in the order they were exported.
    private func objects(below path: ObjectPath) -> [ExportedObject] {
        entries.values.filter { $0.object.path.isBelow(path) }.sorted { $0.number < $1.number }.map(\.object)
    }

    private func children(of path: ObjectPath) -> [String] {
        let depth = path == .root ? 1 : path.rawValue.utf8.count + 1
        let names = entries.keys.lazy.filter { $0.isBelow(path) }.map { below in
            String(decoding: below.rawValue.utf8.dropFirst(depth).prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
        }
        return Set(names).sorted()
    }

    // MARK: Calls

    func handle(_ message: Message, on connection: ConnectionCore) {
        guard let path = message.path else { return }
        if answerAsPeer(message, on: connection) { return }
        if message.isCall(interface: "org.freedesktop.DBus.Introspectable", member: "Introspect"),
            message.hasSignature("")
        {
            let xml = Introspection.xml(
                interfaces: entries[path]?.object.allInterfaces ?? [], children: children(of: path))
            return connection.answer(message) { $0.string(xml) }
        }
        guard let object = self[path] else {
            let name = descendants[path] == nil ? DBusError.Name.unknownObject : DBusError.Name.unknownMethod
            return connection.answer(message, .unhandled(message, name: name))
        }
        if answerProperties(message, of: object, on: connection) { return }
        if object.isObjectManager, answerObjectManager(message, below: path, on: connection) { return }
        let called = object.interfaces.contains { interface in
            message.hasInterface(interface.name) && interface.call(message) { connection.invocation(message, of: $0) }
        }
        if !called {
            connection.answer(message, .unhandled(message, name: DBusError.Name.unknownMethod))
        }
    }

    /// org.freedesktop.DBus.Peer, which every connection answers on every path.
    private func answerAsPeer(_ message: Message, on connection: ConnectionCore) -> Bool {
        guard message.hasInterface("org.freedesktop.DBus.Peer") else { return false }
        if message.hasMember("Ping") {
            connection.answer(message) { _ in }
        } else if message.hasMember("GetMachineId"), let id = cdbus_machine_id() {
            connection.answer(message) { $0.string(String(cString: id)) }
            cdbus_free(id)
        } else {
            connection.answer(message, .unhandled(message, name: DBusError.Name.unknownMethod))
        }
        return true
    }

    private func answerObjectManager(_ message: Message, below path: ObjectPath, on connection: ConnectionCore) -> Bool
    {
        guard
            message.isCall(interface: "org.freedesktop.DBus.ObjectManager", member: "GetManagedObjects"),
            message.hasSignature("")
        else { return false }
        let objects = objects(below: path)
        connection.answer(message) { writer in
            writer.dictionary(key: "o", value: "a{sa{sv}}") { dictionary in
                for object in objects {
                    dictionary.entry { entry in
                        entry.objectPath(object.path)
                        object.writeInterfaces(&entry)
                    }
                }
            }
        }
        return true
    }
}

extension DBusError {
    /// What libdbus answers to a call that nobody takes, its line feed included.
    static func unhandled(_ message: Message, name: String) -> DBusError {
        DBusError(
            name: name,
            message: """
                Method "\(message.member ?? "")" with signature "\(message.signature)" on interface \
                "\(message.interface ?? "(null)")" doesn't exist

                """)
    }
}

extension ConnectionCore {
    /// Answers a received call, unless the caller wants no answer.
    func answer(_ call: Message, _ body: (inout MessageWriter) -> Void) {
        if !call.expectsNoReply { send(.reply(to: call, body: body)) }
    }

    func answer(_ call: Message, _ error: DBusError) {
        if !call.expectsNoReply { send(.error(to: call, error)) }
    }

    func invocation(_ call: Message, of method: MethodDescription) -> Invocation {
        Invocation(call, of: method) { [weak self] reply in
            guard let self else { return }
            loop.perform { self.send(reply) }
        }
    }
}
