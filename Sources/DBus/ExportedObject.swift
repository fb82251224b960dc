/// An object of ours on the bus: a path and its interfaces. A small value; what its interfaces do is in their tables.
package struct ExportedObject: Sendable {
    package let path: ObjectPath
    package let interfaces: [any ExportedInterface]
    /// Whether it answers org.freedesktop.DBus.ObjectManager for all objects below it.
    package let isObjectManager: Bool

    package init(_ path: ObjectPath, _ interfaces: [any ExportedInterface] = [], isObjectManager: Bool = false) {
        self.path = path
        self.interfaces = interfaces
        self.isObjectManager = isObjectManager
    }

    /// The names of all interfaces, in the order in which BlueZ has them: Introspectable, then ObjectManager, then the
    /// object's own, with Properties behind the first that has some.
    package var interfaceNames: [String] {
        allInterfaces.map(\.name)
    }

    /// The object's own interfaces and the standard ones that come with them.
    var allInterfaces: [any ExportedInterface] {
        var all: [any ExportedInterface] = [StandardInterface.introspectable]
        if isObjectManager { all.append(StandardInterface.objectManager) }
        var hasProperties = false
        for interface in interfaces {
            all.append(interface)
            if !hasProperties, !interface.description.properties.isEmpty {
                hasProperties = true
                all.append(StandardInterface.properties)
            }
        }
        return all
    }

    func interface(named name: UnsafeBufferPointer<UInt8>) -> (any ExportedInterface)? {
        allInterfaces.first { $0.name.utf8.elementsEqual(name) }
    }

    /// Writes an `a{sa{sv}}`: the interfaces with the properties that the object has at present.
    func writeInterfaces(_ writer: inout MessageWriter, only names: [String]? = nil) {
        writer.dictionary(key: "s", value: "a{sv}") { dictionary in
            for interface in allInterfaces where names?.contains(interface.name) ?? true {
                dictionary.entry { entry in
                    entry.string(interface.name)
                    entry.dictionary(key: "s", value: "v") { interface.writeProperties(&$0) }
                }
            }
        }
    }
}
