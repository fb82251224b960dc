/// The objects that the daemon has on the bus, with the values of their properties.
struct ObjectTree: Sendable {
    struct Attribute: Sendable {
        let path: String
        let interface: String
        /// Without `MTU`, which is the device's.
        var properties: [NamedValue]
    }

    let traits: DaemonTraits
    let properties: PropertyTables
    var adapters: [Int: Adapter] = [:] { didSet { adapterChanges += 1 } }
    private(set) var adapterChanges = 0
    var devices: [DeviceKey: Device] = [:]
    /// Those on the bus, by their handles.
    private var attributes: [DeviceKey: [UInt16: Attribute]] = [:]
    /// By device, the properties that a fault makes the daemon write with a wrong type.
    var mistyped: [VirtualAddress: Set<String>] = [:]

    init(traits: DaemonTraits) {
        self.traits = traits
        properties = PropertyTables(traits)
    }

    mutating func removeAll() { (adapters, devices, attributes) = ([:], [:], [:]) }

    // MARK: Lists

    func devices(of index: Int) -> [Device] {
        devices.values.filter { $0.key.adapter == index }.sorted { $0.sequence < $1.sequence }
    }

    /// All objects that `GetManagedObjects` lists, parents first.
    var objects: [ObjectState] {
        var keys = [ObjectKey.root] + adapters.keys.sorted().map(ObjectKey.adapter)
        for device in devices.values.sorted(by: { $0.sequence < $1.sequence }).map(\.key) {
            keys.append(.device(device))
            let handles = attributes[device]?.keys.sorted() ?? []
            keys += handles.map { .attribute(device.attribute($0)) }
        }
        return keys.compactMap(state(of:))
    }

    // MARK: Attributes

    func attribute(_ key: AttributeKey) -> Attribute? { attributes[key.device]?[key.handle] }

    mutating func add(_ attribute: Attribute, as key: AttributeKey) {
        attributes[key.device, default: [:]][key.handle] = attribute
    }

    mutating func removeAttribute(_ key: AttributeKey) { attributes[key.device]?[key.handle] = nil }

    /// Sets a property; one that the object does not have stays absent.
    mutating func set(_ name: String, to value: BusValue, of key: AttributeKey) {
        guard let place = attribute(key)?.properties.firstIndex(where: { $0.name == name }) else { return }
        attributes[key.device]?[key.handle]?.properties[place].value = value
    }

    // MARK: Paths

    /// Returns the object that a path names. A device need not exist.
    func key(at path: String) -> ObjectKey? {
        if path == Self.root { return .root }
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
        let key = device.attribute(handle)
        return attribute(key)?.path == path ? .attribute(key) : nil
    }

    /// Returns the path of an object; nil if there is no such object.
    func path(of key: ObjectKey) -> String? {
        switch key {
        case .root: Self.root
        case .adapter(let index), .advertising(let index): adapters[index]?.path
        case .device(let key): devices[key]?.path
        case .attribute(let key): attribute(key)?.path
        }
    }

    private static let root = "/org/bluez"

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

    // MARK: Interfaces

    /// Returns the interfaces of the object at a path; none if there is no object.
    func interfaces(at path: String) -> [String] {
        switch path {
        case "/": [InterfaceName.introspectable, InterfaceName.objectManager]
        case "/org": [InterfaceName.introspectable]
        default: key(at: path).map(interfaces(of:)) ?? []
        }
    }

    /// Returns the interfaces of an object in the order of `GetManagedObjects`; none if there is no such object.
    func interfaces(of key: ObjectKey) -> [String] {
        let (introspectable, properties) = (InterfaceName.introspectable, InterfaceName.properties)
        switch key {
        case .root: return [introspectable, InterfaceName.agentManager, InterfaceName.profileManager]
        case .adapter, .advertising:
            let managers = [InterfaceName.gattManager, InterfaceName.advertisingManager]
            return [introspectable, InterfaceName.adapter, properties] + managers
                + (traits.hasBatteryProviders ? [InterfaceName.batteryProviders] : [])
        case .device(let key):
            guard let device = devices[key] else { return [] }
            return [introspectable, InterfaceName.device, properties]
                + (traits.hasBearers ? [InterfaceName.bearer] : [])
                + (device.batteryLevel == nil ? [] : [InterfaceName.battery])
        case .attribute(let key): return [introspectable, attribute(key)?.interface ?? "", properties]
        }
    }

    /// Returns the interfaces that a removed object loses, the latest first. Its battery has gone before.
    func interfacesLost(by key: ObjectKey) -> [String] {
        var names = interfaces(of: key).filter { $0 != InterfaceName.properties && $0 != InterfaceName.battery }
        if case .adapter = key { names.swapAt(2, 3) }
        return [InterfaceName.properties] + names
    }

    // MARK: Properties

    func state(of key: ObjectKey) -> ObjectState? {
        path(of: key).map { path in
            ObjectState(
                path: path,
                interfaces: interfaces(of: key).map { InterfaceState(name: $0, properties: values(of: $0, key)) })
        }
    }

    /// Returns the properties that an interface of an object has at the moment.
    func values(of interface: String, _ key: ObjectKey) -> [NamedValue] {
        switch (key, interface) {
        case (.adapter(let index), InterfaceName.adapter): return adapters[index].map(properties.adapter.values) ?? []
        case (.adapter(let index), InterfaceName.advertisingManager):
            return adapters[index].map(properties.advertisingManager.values) ?? []
        case (.device(let key), InterfaceName.device):
            return devices[key].map { mistyping(properties.device.values(of: $0), of: key) } ?? []
        case (.device(let key), InterfaceName.battery):
            return devices[key]?.batteryLevel.map { InterfaceState.battery($0).properties } ?? []
        case (.attribute(let key), _):
            guard let attribute = attribute(key), attribute.interface == interface else { return [] }
            guard interface == InterfaceName.characteristic, properties.characteristic["MTU"] != nil,
                let mtu = devices[key.device]?.mtu
            else { return attribute.properties }
            return attribute.properties + [NamedValue(name: "MTU", value: .uint16(UInt16(mtu)))]
        default: return []
        }
    }

    /// Returns the values, with wrong types if a fault makes the daemon write those.
    private func mistyping(_ values: [NamedValue], of device: DeviceKey) -> [NamedValue] {
        guard !mistyped.isEmpty, let names = mistyped[device.address] else { return values }
        return values.map { names.contains($0.name) ? NamedValue(name: $0.name, value: $0.value.mistyped) : $0 }
    }

    /// Returns the signal for an object's changed properties: those that exist with their values, those that do not
    /// exist any more by name, the latest first, in which order gdbus collects them.
    func propertiesChanged(_ entry: Outbox.Entry) -> Emission? {
        guard let path = path(of: entry.key) else { return nil }
        let interface: String
        let news: [(name: String, value: BusValue?)]
        switch entry.key {
        case .root: return nil
        case .adapter(let index):
            interface = InterfaceName.adapter
            news = properties.adapter.values(of: adapters[index], named: entry.properties)
        case .advertising(let index):
            interface = InterfaceName.advertisingManager
            news = properties.advertisingManager.values(of: adapters[index], named: entry.properties)
        case .device(let key):
            interface = InterfaceName.device
            news = properties.device.values(of: devices[key], named: entry.properties)
        case .attribute(let key):
            let attribute = attribute(key)
            interface = attribute?.interface ?? ""
            news = entry.properties.map { ($0, attribute?.properties[$0]) }
        }
        var changed = news.compactMap { name, value in value.map { NamedValue(name: name, value: $0) } }
        if case .device(let key) = entry.key { changed = mistyping(changed, of: key) }
        let invalidated = Array(news.filter { $0.value == nil }.map(\.name).reversed())
        guard !changed.isEmpty || !invalidated.isEmpty else { return nil }
        return .propertiesChanged(path: path, interface: interface, changed: changed, invalidated: invalidated)
    }
}

extension InterfaceState {
    static func battery(_ level: UInt8) -> InterfaceState {
        InterfaceState(name: InterfaceName.battery, properties: [NamedValue(name: "Percentage", value: .byte(level))])
    }
}
