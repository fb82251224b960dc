/// What clients see who only look.
extension Daemon {
    /// The properties of an interface of the object at a path.
    func properties(of interface: String, at path: String) throws(DaemonError) -> [NamedValue] {
        guard let state = object(at: path)?.interfaces.first(where: { $0.name == interface }) else {
            throw .invalidArgs("No such interface '\(interface)'")
        }
        return state.properties
    }

    func introspection(at path: String) -> String {
        InterfaceTable.introspection(
            of: interfaces(at: path).compactMap { interfaceTables[$0] }, children: children(of: path))
    }

    mutating func setProperty(
        _ name: String, of interface: String, to value: BusValue, _ call: MethodCall
    ) throws(DaemonError) {
        switch (call.object, interface) {
        case (.adapter(let index)?, InterfaceName.adapter):
            try setAdapterProperty(name, to: value, of: index, call: call.id, now: now)
        case (.device(let key)?, InterfaceName.device): try setDeviceProperty(name, to: value, of: key, call: call.id)
        case (_, InterfaceName.advertisingManager), (_, InterfaceName.gattManager), (_, InterfaceName.battery),
            (.attribute?, _):
            throw .notWritable(name)
        default: throw .invalidArgs("No such interface '\(interface)'")
        }
    }

    /// The interfaces of the object at a path; none where there is no object.
    func interfaces(at path: String) -> [String] {
        switch path {
        case "/": ["org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.ObjectManager"]
        case "/org": ["org.freedesktop.DBus.Introspectable"]
        default: key(at: path).flatMap(interfaces(of:)) ?? object(at: path)?.interfaces.map(\.name) ?? []
        }
    }

    /// The same for objects that are called often, without working out their properties; nil for others.
    private func interfaces(of key: ObjectKey) -> [String]? {
        switch key {
        case .adapter, .advertising: nil
        case .device(let key): devices[key]?.batteryLevel == nil && devices[key] != nil ? namesForDevice : nil
        case .attribute(let key):
            switch tables[key.device]?.kind(of: key.handle) {
            case .service: Self.namesForService
            case .characteristic: Self.namesForCharacteristic
            case .descriptor: Self.namesForDescriptor
            case nil: []
            }
        }
    }

    private static func names(_ interface: String) -> [String] {
        [InterfaceName.introspectable, interface, InterfaceName.properties]
    }

    private var namesForDevice: [String] { traits.hasBearers ? Self.namesWithBearer : Self.namesWithoutBearer }
    private static let namesWithoutBearer = names(InterfaceName.device)
    private static let namesWithBearer = names(InterfaceName.device) + [InterfaceName.bearer]
    private static let namesForService = names(InterfaceName.service)
    private static let namesForCharacteristic = names(InterfaceName.characteristic)
    private static let namesForDescriptor = names(InterfaceName.descriptor)

    /// The last elements of the paths just below.
    private func children(of path: String) -> [String] {
        switch path {
        case "/": ["org"]
        case "/org": ["bluez"]
        case Self.root.path: adapters.keys.sorted().map { "hci\($0)" }
        default:
            switch key(at: path) {
            case .adapter?:
                devices.values.filter { $0.adapterPath == path }.sorted { $0.sequence < $1.sequence }
                    .map { String($0.path.dropFirst(path.utf8.count + 1)) }
            case .device(let device)?: attributes(below: path, of: device)
            case .attribute(let attribute)?: attributes(below: path, of: attribute.device)
            case .advertising?, nil: []
            }
        }
    }

    private func attributes(below path: String, of device: DeviceKey) -> [String] {
        let handles: [UInt16] = tables[device]?.order ?? []
        let paths: [String] = handles.compactMap { self.path(of: AttributeKey(device: device, handle: $0)) }
        let below = paths.filter { $0.hasPrefix(path + "/") }.map { String($0.dropFirst(path.utf8.count + 1)) }
        return below.filter { !$0.contains("/") }
    }

    /// Writes some properties of a device with wrong types from now on, and says that they have changed.
    mutating func mistype(_ names: Set<String>, of address: VirtualAddress) {
        mistyped[address] = names.isEmpty ? nil : names
        for key in devices.keys.filter({ $0.address == address }).sorted() {
            let concerned = (devices[key]?.mistyped ?? []).union(names)
            devices[key]?.mistyped = names
            for property in DeviceProperty.allCases where concerned.contains(property.rawValue) {
                outbox.changed(.device(property), of: .device(key))
            }
        }
    }
}
