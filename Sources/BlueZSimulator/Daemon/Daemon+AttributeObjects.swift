/// Attributes as they are to be read on the bus.
extension Daemon {
    func state(of key: AttributeKey) -> ObjectState? {
        guard let table = tables[key.device], let device = devices[key.device] else { return nil }
        switch table.kind(of: key.handle) {
        case .service:
            guard let service = table.service(key.handle), let path = path(of: key) else { return nil }
            return Self.object(
                path, InterfaceName.service,
                ServiceProperty.allCases.filter(traits.serviceProperties.contains).map { property in
                    NamedValue(name: property.rawValue, value: service.value(of: property, devicePath: device.path))
                })
        case .characteristic:
            guard let characteristic = table.characteristics[key.handle] else { return nil }
            let mtu = links[key.device]?.mtu
            return Self.object(
                characteristic.path, InterfaceName.characteristic,
                CharacteristicProperty.allCases.filter(traits.characteristicProperties.contains).compactMap {
                    property in
                    characteristic.value(of: property, mtu: mtu).map { NamedValue(name: property.rawValue, value: $0) }
                })
        case .descriptor:
            guard let descriptor = table.descriptors[key.handle] else { return nil }
            return Self.object(
                descriptor.path, InterfaceName.descriptor,
                DescriptorProperty.allCases.filter(traits.descriptorProperties.contains).map { property in
                    NamedValue(name: property.rawValue, value: descriptor.value(of: property))
                })
        case nil:
            return nil
        }
    }

    private static func object(_ path: String, _ interface: String, _ properties: [NamedValue]) -> ObjectState {
        ObjectState(
            path: path,
            interfaces: [.introspectable, InterfaceState(name: interface, properties: properties), .properties])
    }
}

extension AttributeDatabase.Service {
    func value(of property: ServiceProperty, devicePath: String) -> BusValue {
        switch property {
        case .handle: .uint16(handle)
        case .uuid: .string(uuid)
        case .device: .objectPath(devicePath)
        case .primary: .bool(isPrimary)
        case .includes: .objectPaths(includes.map { devicePath + "/service" + Daemon.digits($0) })
        }
    }
}

extension RemoteCharacteristic {
    /// The value of a property; nil when it is absent.
    func value(of property: CharacteristicProperty, mtu: Int?) -> BusValue? {
        switch property {
        case .handle: .uint16(laid.handle)
        case .uuid: .string(laid.uuid)
        case .service: .objectPath(servicePath)
        case .value: .bytes(value)
        case .notifying: laid.canNotify ? .bool(isNotifying) : nil
        case .flags: .strings(CharacteristicFlag.allCases.filter(laid.flags.contains).map(\.rawValue))
        case .writeAcquired: laid.flags.contains(.writeWithoutResponse) ? .bool(writeSocket?.id != nil) : nil
        case .notifyAcquired: laid.flags.contains(.notify) ? .bool(notifySocket?.id != nil) : nil
        case .mtu: mtu.map { .uint16(UInt16($0)) }
        }
    }
}

extension RemoteDescriptor {
    func value(of property: DescriptorProperty) -> BusValue {
        switch property {
        case .handle: .uint16(laid.handle)
        case .uuid: .string(laid.uuid)
        case .characteristic: .objectPath(characteristicPath)
        case .value: .bytes(value)
        }
    }
}
