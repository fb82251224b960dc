import Reactor

/// Exporting objects. Nothing is announced by itself: whoever owns the objects decides when, and how much together.
extension Connection {
    /// Answers calls of this object from now on. What had the path before is replaced.
    package func export(_ object: ExportedObject) {
        let core = core
        loop.perform { core.export(object) }
    }

    /// Stops answering calls of the object at this path.
    package func unexport(_ path: ObjectPath) {
        let core = core
        loop.perform { core.objects.remove(path) }
    }

    /// Announces an exported object with its properties, or some of its interfaces, from the object manager above it.
    /// Nothing is sent where there is no such object or no such manager.
    package func emitInterfacesAdded(_ path: ObjectPath, interfaces: [String]? = nil) {
        let core = core
        loop.perform {
            guard let object = core.objects[path], let manager = core.objects.manager(of: path) else { return }
            core.send(.interfacesAdded(object, manager: manager, interfaces: interfaces))
        }
    }

    /// Announces that the object at this path has lost these interfaces; it need not be exported any more.
    package func emitInterfacesRemoved(_ path: ObjectPath, interfaces: [String]) {
        let core = core
        loop.perform {
            guard let manager = core.objects.manager(of: path) else { return }
            core.send(.interfacesRemoved(path, manager: manager, interfaces: interfaces))
        }
    }

    /// Announces the present values of these properties, and as invalidated those that the object has not at present.
    /// Nothing is sent where there is no such object or interface.
    package func emitPropertiesChanged(_ path: ObjectPath, interface: String, properties: [String]) {
        let core = core
        loop.perform {
            guard let found = core.objects[path]?.interfaces.first(where: { $0.name == interface }) else { return }
            core.send(.propertiesChanged(path, found, properties))
        }
    }
}

extension Connection {
    /// Gives every call that comes to this handler, on the loop, in the place of exported objects: for those who keep
    /// their objects themselves. Whoever takes a call answers it, with `send(.reply(to:…))` or `send(.error(to:…))`,
    /// unless it expects no reply.
    package func answerCalls(with handler: @escaping @Sendable (Message) -> Void) {
        let core = core
        loop.perform { core.callHandler = handler }
    }
}

extension Message {
    package static func interfacesAdded(
        _ object: ExportedObject, manager: ObjectPath, interfaces: [String]? = nil
    ) -> Message {
        .signal(path: manager, interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesAdded") { writer in
            writer.objectPath(object.path)
            object.writeInterfaces(&writer, only: interfaces)
        }
    }

    package static func interfacesRemoved(
        _ path: ObjectPath, manager: ObjectPath, interfaces: [String]
    ) -> Message {
        .signal(path: manager, interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesRemoved") { writer in
            writer.objectPath(path)
            writer.strings(interfaces)
        }
    }

    /// Names that the interface does not know trap: they are misspelt.
    package static func propertiesChanged(
        _ path: ObjectPath, _ interface: any ExportedInterface, _ names: [String]
    ) -> Message {
        var invalidated: [String] = []
        return .signal(path: path, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") {
            writer in
            writer.string(interface.name)
            writer.dictionary(key: "s", value: "v") { dictionary in
                for name in names {
                    var text = name
                    guard let property = text.withUTF8({ interface.property(named: $0) }) else {
                        preconditionFailure("\(interface.name) has no property \"\(name)\".")
                    }
                    guard property.exists else {
                        invalidated.append(name)
                        continue
                    }
                    dictionary.entry { entry in
                        entry.string(name)
                        entry.variant(static: property.description.signature, property.get)
                    }
                }
            }
            writer.strings(invalidated)
        }
    }
}
