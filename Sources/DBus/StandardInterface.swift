/// The interfaces of the D-Bus specification that come with every exported object; the connection answers them.
struct StandardInterface: ExportedInterface {
    let description: InterfaceDescription

    var name: String { description.name }

    static let introspectable = StandardInterface(
        "org.freedesktop.DBus.Introspectable",
        methods: [MethodDescription(name: "Introspect", inputs: [:], outputs: ["xml": "s"])])

    static let properties = StandardInterface(
        "org.freedesktop.DBus.Properties",
        methods: [get, set, getAll],
        signals: [
            SignalDescription(
                name: "PropertiesChanged",
                arguments: ["interface": "s", "changed_properties": "a{sv}", "invalidated_properties": "as"])
        ])

    static let get = MethodDescription(
        name: "Get", inputs: ["interface": "s", "name": "s"], outputs: ["value": "v"])
    static let set = MethodDescription(
        name: "Set", inputs: ["interface": "s", "name": "s", "value": "v"], outputs: [:])
    static let getAll = MethodDescription(
        name: "GetAll", inputs: ["interface": "s"], outputs: ["properties": "a{sv}"])

    static let objectManager = StandardInterface(
        "org.freedesktop.DBus.ObjectManager",
        methods: [
            MethodDescription(name: "GetManagedObjects", inputs: [:], outputs: ["objects": "a{oa{sa{sv}}}"])
        ],
        signals: [
            SignalDescription(name: "InterfacesAdded", arguments: ["object": "o", "interfaces": "a{sa{sv}}"]),
            SignalDescription(name: "InterfacesRemoved", arguments: ["object": "o", "interfaces": "as"]),
        ])

    private init(_ name: String, methods: [MethodDescription], signals: [SignalDescription] = []) {
        description = InterfaceDescription(name: name, methods: methods, properties: [], signals: signals)
    }

    // The registry answers these itself: they are about objects, not about one object's interface.
    func call(_ message: Message, answer: (MethodDescription) -> Invocation) -> Bool { false }
    func property(named name: UnsafeBufferPointer<UInt8>) -> PropertyAccess? { nil }
    func writeProperties(_ writer: inout MessageWriter) {}
}
