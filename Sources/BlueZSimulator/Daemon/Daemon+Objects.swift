/// The daemon's objects as they are to be read on the bus.
extension Daemon {
    /// All objects that `GetManagedObjects` lists, parents first.
    var objects: [ObjectState] {
        var objects = [Self.root]
        for index in adapters.keys.sorted() {
            if let state = state(of: .adapter(index)) { objects.append(state) }
        }
        for device in devices.values.sorted(by: { $0.sequence < $1.sequence }) {
            objects.append(state(of: device))
            for handle in tables[device.key]?.order ?? [] {
                if let state = state(of: AttributeKey(device: device.key, handle: handle)) { objects.append(state) }
            }
        }
        return objects
    }

    /// The object at a path, which is either the root of BlueZ, an adapter, or a device.
    func object(at path: String) -> ObjectState? {
        if path == Self.root.path { return Self.root }
        return key(at: path).flatMap(state(of:))
    }

    /// Which object a path names, whether it is there or not.
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
        // "service0028", "char002a", "desc002c": the last one names it, if the whole path is really its own.
        guard let handle = UInt16(parts[parts.count - 1].suffix(4), radix: 16) else { return nil }
        let attribute = AttributeKey(device: device, handle: handle)
        return self.path(of: attribute) == path ? .attribute(attribute) : nil
    }

    func state(of key: ObjectKey) -> ObjectState? {
        switch key {
        case .adapter(let index): adapters[index].map(state(of:))
        case .device(let key): devices[key].map(state(of:))
        case .attribute(let key): state(of: key)
        case .advertising: nil
        }
    }

    /// The signal that tells of an object's changed properties: those that exist with their values, those that do not
    /// exist any more by name, the last one first (gdbus collects them that way round).
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
        let path: String
        let interface: String
        switch entry.key {
        case .adapter(let index):
            guard let adapter = adapters[index] else { return nil }
            (path, interface) = (adapter.path, InterfaceName.adapter)
            for case .adapter(let property) in entry.properties where traits.adapterProperties.contains(property) {
                take(property.rawValue, adapter.value(of: property))
            }
        case .device(let key):
            guard let device = devices[key] else { return nil }
            (path, interface) = (device.path, InterfaceName.device)
            for case .device(let property) in entry.properties where traits.deviceProperties.contains(property) {
                take(property.rawValue, device.value(of: property))
            }
        case .attribute(let key):
            guard let characteristic = tables[key.device]?.characteristics[key.handle] else { return nil }
            (path, interface) = (characteristic.path, InterfaceName.characteristic)
            for case .characteristic(let property) in entry.properties
            where traits.characteristicProperties.contains(property) {
                take(property.rawValue, characteristic.value(of: property, mtu: links[key.device]?.mtu))
            }
        case .advertising(let index):
            guard let adapter = adapters[index] else { return nil }
            (path, interface) = (adapter.path, InterfaceName.advertisingManager)
            for case .advertising(let property) in entry.properties {
                take(property.rawValue, value(of: property, on: index))
            }
        }
        guard !changed.isEmpty || !invalidated.isEmpty else { return nil }
        return .propertiesChanged(path: path, interface: interface, changed: changed, invalidated: invalidated)
    }

    private func state(of adapter: Adapter) -> ObjectState {
        let properties = AdapterProperty.allCases.filter(traits.adapterProperties.contains).map {
            NamedValue(name: $0.rawValue, value: adapter.value(of: $0))
        }
        let advertising = AdvertisingProperty.allCases.filter(traits.advertisingProperties.contains)
        return ObjectState(
            path: adapter.path,
            interfaces: [
                .introspectable,
                InterfaceState(name: InterfaceName.adapter, properties: properties),
                .properties,
                InterfaceState(name: InterfaceName.gattManager),
                InterfaceState(
                    name: InterfaceName.advertisingManager,
                    properties: advertising.map { property in
                        NamedValue(
                            name: property.rawValue, value: value(of: property, on: adapter.hardware.index))
                    }),
            ] + (traits.hasBatteryProviders ? [InterfaceState(name: InterfaceName.batteryProviders)] : []))
    }

    private func state(of device: Device) -> ObjectState {
        var properties: [NamedValue] = []
        properties.reserveCapacity(DeviceProperty.allCases.count)
        for property in DeviceProperty.allCases where traits.deviceProperties.contains(property) {
            guard let value = device.value(of: property) else { continue }
            properties.append(NamedValue(name: property.rawValue, value: value))
        }
        var interfaces = [
            .introspectable, InterfaceState(name: InterfaceName.device, properties: properties), .properties,
        ]
        if traits.hasBearers { interfaces.append(InterfaceState(name: InterfaceName.bearer)) }
        if let level = device.batteryLevel {
            let percentage = NamedValue(name: "Percentage", value: .byte(level))
            interfaces.append(InterfaceState(name: InterfaceName.battery, properties: [percentage]))
        }
        return ObjectState(path: device.path, interfaces: interfaces)
    }

    static let root = ObjectState(
        path: "/org/bluez",
        interfaces: [
            .introspectable, InterfaceState(name: InterfaceName.agentManager),
            InterfaceState(name: InterfaceName.profileManager),
        ])

    /// The interfaces that an object loses when it goes, the latest first.
    var interfacesOfDevice: [String] {
        let names = ["org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable", InterfaceName.device]
        return traits.hasBearers ? names + [InterfaceName.bearer] : names
    }
    var interfacesOfAdapter: [String] {
        let names = [
            "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable", InterfaceName.adapter,
            InterfaceName.advertisingManager, InterfaceName.gattManager,
        ]
        return traits.hasBatteryProviders ? names + [InterfaceName.batteryProviders] : names
    }
}
