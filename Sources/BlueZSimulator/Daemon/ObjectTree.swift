/// The objects that the daemon has on the bus, with the values of their properties.
struct ObjectTree: Sendable {
    struct Attribute: Sendable {
        let path: String
        let interface: String
        /// Without `MTU`, which is the device's.
        var properties: [NamedValue]
    }

    /// The attributes of a device that are on the bus.
    private struct Attributes: Sendable {
        /// Handles in the order in which the objects were added.
        var order: [UInt16] = []
        var objects: [UInt16: Attribute] = [:]
    }

    let traits: DaemonTraits
    let properties: PropertyTables
    var adapters: [Int: Adapter] = [:] { didSet { adapterChanges += 1 } }
    /// How often an adapter has changed.
    var adapterChanges = 0
    var devices: [DeviceKey: Device] = [:]
    private var attributes: [DeviceKey: Attributes] = [:]
    /// By device, the properties that a fault makes the daemon write with a wrong type.
    var mistyped: [VirtualAddress: Set<String>] = [:]

    init(traits: DaemonTraits) {
        self.traits = traits
        properties = PropertyTables(traits)
    }

    // MARK: Lists

    func devices(of index: Int) -> [Device] {
        devices.values.filter { $0.key.adapter == index }.sorted { $0.sequence < $1.sequence }
    }

    /// All objects that `GetManagedObjects` lists, parents first.
    var objects: [ObjectState] {
        var objects = [Self.root] + adapters.sorted { $0.key < $1.key }.map { state(of: $0.value) }
        for device in devices.values.sorted(by: { $0.sequence < $1.sequence }) {
            objects.append(state(of: device))
            guard let shown = attributes[device.key] else { continue }
            objects += shown.order.compactMap { shown.objects[$0].map { state(of: $0, device) } }
        }
        return objects
    }

    // MARK: Attributes

    func attribute(_ key: AttributeKey) -> Attribute? { attributes[key.device]?.objects[key.handle] }

    mutating func add(_ attribute: Attribute, as key: AttributeKey) {
        attributes[key.device, default: Attributes()].order.append(key.handle)
        attributes[key.device]?.objects[key.handle] = attribute
    }

    mutating func removeAttribute(_ key: AttributeKey) {
        attributes[key.device]?.order.removeAll { $0 == key.handle }
        attributes[key.device]?.objects[key.handle] = nil
    }

    /// Sets a property; one that the object does not have stays absent.
    mutating func set(_ name: String, to value: BusValue, of key: AttributeKey) {
        guard let place = attributes[key.device]?.objects[key.handle]?.properties.firstIndex(where: { $0.name == name })
        else { return }
        attributes[key.device]?.objects[key.handle]?.properties[place].value = value
    }

    // MARK: Paths

    /// Returns the object that a path names, if it is an adapter, a device or an attribute. A device need not exist.
    func key(at path: String) -> ObjectKey? {
        let prefix = "/org/bluez/hci"
        guard path.hasPrefix(prefix) else { return nil }
        let parts = path.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let index = Int(first), adapters[index] != nil else { return nil }
        if parts.count == 1 { return .adapter(index) }
        guard parts.count <= 5, parts[1].hasPrefix("dev_"), let address = VirtualAddress(parts[1].dropFirst(4)) else {
            return nil
        }
        let device = DeviceKey(adapter: index, address: address)
        guard parts.count > 2 else { return .device(device) }
        // The last of "service0028", "char002a" and "desc002c" names the attribute if the whole path is its own.
        guard let handle = UInt16(parts[parts.count - 1].suffix(4), radix: 16) else { return nil }
        let key = AttributeKey(device: device, handle: handle)
        return attribute(key)?.path == path ? .attribute(key) : nil
    }

    /// Returns the interfaces of the object at a path; none if there is no object.
    func interfaces(at path: String) -> [String] {
        switch path {
        case "/": return [InterfaceName.introspectable, InterfaceName.objectManager]
        case "/org": return [InterfaceName.introspectable]
        default: break
        }
        // Attributes are called often: their properties are not worked out for it.
        if case .attribute(let key)? = key(at: path), let attribute = attribute(key) {
            return [InterfaceName.introspectable, attribute.interface, InterfaceName.properties]
        }
        return object(at: path)?.interfaces.map(\.name) ?? []
    }

    /// Returns the last elements of the paths just below a path.
    func children(of path: String) -> [String] {
        switch path {
        case "/": ["org"]
        case "/org": ["bluez"]
        default:
            objects.map(\.path).filter { $0.hasPrefix(path + "/") }.map { String($0.dropFirst(path.utf8.count + 1)) }
                .filter { !$0.contains("/") }
        }
    }

    // MARK: States

    func object(at path: String) -> ObjectState? {
        path == Self.root.path ? Self.root : key(at: path).flatMap(state(of:))
    }

    func state(of key: ObjectKey) -> ObjectState? {
        switch key {
        case .adapter(let index): adapters[index].map(state(of:))
        case .device(let key): devices[key].map(state(of:))
        case .attribute(let key): attribute(key).map { state(of: $0, devices[key.device]) }
        case .advertising: nil
        }
    }

    private func state(of adapter: Adapter) -> ObjectState {
        ObjectState(
            path: adapter.path,
            interfaces: [
                .introspectable,
                InterfaceState(name: InterfaceName.adapter, properties: properties.adapter.values(of: adapter)),
                .properties, InterfaceState(name: InterfaceName.gattManager),
                InterfaceState(
                    name: InterfaceName.advertisingManager,
                    properties: properties.advertisingManager.values(of: adapter)),
            ] + (traits.hasBatteryProviders ? [InterfaceState(name: InterfaceName.batteryProviders)] : []))
    }

    private func state(of device: Device) -> ObjectState {
        var interfaces = [
            .introspectable,
            InterfaceState(
                name: InterfaceName.device, properties: mistyping(properties.device.values(of: device), of: device)),
            .properties,
        ]
        if traits.hasBearers { interfaces.append(InterfaceState(name: InterfaceName.bearer)) }
        if let level = device.batteryLevel { interfaces.append(.battery(level)) }
        return ObjectState(path: device.path, interfaces: interfaces)
    }

    private func state(of attribute: Attribute, _ device: Device?) -> ObjectState {
        var values = attribute.properties
        if attribute.interface == InterfaceName.characteristic, properties.characteristic["MTU"] != nil,
            let mtu = device?.mtu
        {
            values.append(NamedValue(name: "MTU", value: .uint16(UInt16(mtu))))
        }
        return ObjectState(
            path: attribute.path,
            interfaces: [
                .introspectable, InterfaceState(name: attribute.interface, properties: values), .properties,
            ])
    }

    /// Returns the values, with wrong types if a fault makes the daemon write those.
    private func mistyping(_ values: [NamedValue], of device: Device) -> [NamedValue] {
        guard !mistyped.isEmpty, let names = mistyped[device.key.address] else { return values }
        return values.map { names.contains($0.name) ? NamedValue(name: $0.name, value: $0.value.mistyped) : $0 }
    }

    /// Returns the signal for an object's changed properties: those that exist with their values, those that do not
    /// exist any more by name, the latest first, in which order gdbus collects them.
    func propertiesChanged(_ entry: Outbox.Entry) -> Emission? {
        var changed: [NamedValue] = []
        var invalidated: [String] = []
        changed.reserveCapacity(entry.properties.count)
        func take(_ name: String, _ value: BusValue?) {
            if let value {
                changed.append(NamedValue(name: name, value: value))
            } else {
                invalidated.insert(name, at: 0)
            }
        }
        func take<Object>(_ table: PropertyTable<Object>, _ object: Object) {
            for name in entry.properties { if let property = table[name] { take(name, property.value(object)) } }
        }
        let path: String
        let interface: String
        switch entry.key {
        case .adapter(let index), .advertising(let index):
            guard let adapter = adapters[index] else { return nil }
            path = adapter.path
            let isAdapter = entry.key == .adapter(index)
            interface = isAdapter ? InterfaceName.adapter : InterfaceName.advertisingManager
            take(isAdapter ? properties.adapter : properties.advertisingManager, adapter)
        case .device(let key):
            guard let device = devices[key] else { return nil }
            (path, interface) = (device.path, InterfaceName.device)
            take(properties.device, device)
            changed = mistyping(changed, of: device)
        case .attribute(let key):
            guard let attribute = attribute(key) else { return nil }
            (path, interface) = (attribute.path, attribute.interface)
            for name in entry.properties { take(name, attribute.properties[name]) }
        }
        guard !changed.isEmpty || !invalidated.isEmpty else { return nil }
        return .propertiesChanged(path: path, interface: interface, changed: changed, invalidated: invalidated)
    }

    static let root = ObjectState(
        path: "/org/bluez",
        interfaces: [
            .introspectable, InterfaceState(name: InterfaceName.agentManager),
            InterfaceState(name: InterfaceName.profileManager),
        ])

    // MARK: Removal

    // The interfaces that a removed object loses, the latest first.

    static let standardInterfaces = [InterfaceName.properties, InterfaceName.introspectable]

    var interfacesOfDevice: [String] {
        Self.standardInterfaces + [InterfaceName.device] + (traits.hasBearers ? [InterfaceName.bearer] : [])
    }

    var interfacesOfAdapter: [String] {
        Self.standardInterfaces + [InterfaceName.adapter, InterfaceName.advertisingManager, InterfaceName.gattManager]
            + (traits.hasBatteryProviders ? [InterfaceName.batteryProviders] : [])
    }
}

extension InterfaceState {
    static func battery(_ level: UInt8) -> InterfaceState {
        InterfaceState(name: InterfaceName.battery, properties: [NamedValue(name: "Percentage", value: .byte(level))])
    }
}

extension Property<UInt8> {
    /// The only one of `Battery1`.
    static let percentage = Self("Percentage", "y", BusValue.byte)
}
