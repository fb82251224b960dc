/// What others see of an adapter's attributes.
extension LocalDatabase {
    /// The handle of a characteristic's value, or of a descriptor of it; nil where there is none.
    func handle(_ selector: AttributeSelector, descriptor: String?) -> UInt16? {
        let all = services.flatMap(\.characteristics)
        let found =
            switch selector {
            case .uuid(let text): all.first { $0.uuid == ServiceUUID.long(text) }
            case .handle(let handle): all.first { $0.handle == handle || $0.valueHandle == handle }
            }
        guard let descriptor else { return found?.valueHandle }
        return found?.descriptors.first { $0.uuid == ServiceUUID.long(descriptor) }?.handle
    }

    /// The table as another adapter's BlueZ discovers it.
    var discovered: [AttributeTable.Service] {
        services.map { service in
            AttributeTable.Service(
                handle: service.handle, uuid: service.uuid, isPrimary: service.isPrimary, includes: service.includes,
                characteristics: service.characteristics.map { characteristic in
                    AttributeTable.Characteristic(
                        handle: characteristic.handle, uuid: characteristic.uuid,
                        flags: characteristic.properties.flags.union(extendedFlags(of: characteristic)),
                        descriptors: characteristic.descriptors.map {
                            AttributeTable.Descriptor(handle: $0.handle, uuid: $0.uuid, flags: [.read])
                        })
                }, appearsAfter: 0, isAnnounced: true)
        }
    }

    /// What is said in the descriptor for extended properties.
    private func extendedFlags(of characteristic: Characteristic) -> Set<CharacteristicFlag> {
        for descriptor in characteristic.descriptors where descriptor.uuid == AttributeTable.extendedProperties {
            guard case .value(let bytes)? = attributes[descriptor.handle]?.content, let bits = bytes.first else {
                continue
            }
            var flags: Set<CharacteristicFlag> = []
            if bits & 1 != 0 { flags.insert(.reliableWrite) }
            if bits & 2 != 0 { flags.insert(.writableAuxiliaries) }
            return flags
        }
        return []
    }
}

extension AttributeProperties {
    /// The same by BlueZ's names.
    var flags: Set<CharacteristicFlag> {
        let names: [(Self, CharacteristicFlag)] = [
            (.broadcast, .broadcast), (.read, .read), (.writeWithoutResponse, .writeWithoutResponse), (.write, .write),
            (.notify, .notify), (.indicate, .indicate), (.signedWrite, .authenticatedSignedWrites),
            (.extended, .extendedProperties),
        ]
        return Set(names.filter { contains($0.0) }.map(\.1))
    }
}

extension ServedService {
    init(_ service: LocalDatabase.Service) {
        self.init(
            uuid: service.uuid, handle: service.handle, isPrimary: service.isPrimary, includes: service.includes,
            characteristics: service.characteristics.map { characteristic in
                ServedCharacteristic(
                    uuid: characteristic.uuid, handle: characteristic.handle, valueHandle: characteristic.valueHandle,
                    flags: characteristic.properties.flags,
                    descriptors: characteristic.descriptors.map { ServedDescriptor(uuid: $0.uuid, handle: $0.handle) })
            })
    }
}
