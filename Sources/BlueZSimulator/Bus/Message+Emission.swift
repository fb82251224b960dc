import DBus

extension Message {
    /// The signal that says it. Object manager signals come from the root object, as BlueZ has it.
    static func signal(_ emission: Emission) -> Message {
        switch emission {
        case .interfacesAdded(let path, let interfaces):
            .signal(path: .root, interface: objectManager, member: "InterfacesAdded") { writer in
                writer.value(.objectPath(path))
                writer.interfaces(interfaces)
            }
        case .interfacesRemoved(let path, let interfaces):
            .signal(path: .root, interface: objectManager, member: "InterfacesRemoved") { writer in
                writer.value(.objectPath(path))
                writer.strings(interfaces)
            }
        case .propertiesChanged(let path, let interface, let changed, let invalidated):
            .signal(
                path: ObjectPath(validating: path) ?? .root, interface: properties, member: "PropertiesChanged"
            ) { writer in
                writer.string(interface)
                writer.properties(changed)
                writer.strings(invalidated)
            }
        case .disconnected(let path, let interface, let reason):
            .signal(path: ObjectPath(validating: path) ?? .root, interface: interface, member: "Disconnected") {
                writer in
                writer.string(reason.name)
                writer.string(reason.message)
            }
        }
    }

    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let properties = "org.freedesktop.DBus.Properties"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let peer = "org.freedesktop.DBus.Peer"
}

extension Emission {
    /// The signal's name.
    var member: String {
        switch self {
        case .interfacesAdded: "InterfacesAdded"
        case .interfacesRemoved: "InterfacesRemoved"
        case .propertiesChanged: "PropertiesChanged"
        case .disconnected: "Disconnected"
        }
    }
}
