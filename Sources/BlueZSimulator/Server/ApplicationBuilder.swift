/// Makes attributes of an application's objects.
struct ApplicationBuilder {
    /// An object with one of its interfaces.
    private struct Item {
        var path: String
        var interface: String
        var properties: [NamedValue]
        /// The path of its service or characteristic.
        var parent = ""
        var flags = CharacteristicFlags()
        /// Of a service, in the order of the message.
        var characteristics: [Item] = []
        var descriptors: [Item] = []

        /// Nil for generic access and generic attribute, which are BlueZ's own.
        var uuid: String? {
            let uuid = properties["UUID"]?.text.flatMap(ServiceUUID.long)
            return uuid == AttributeDatabase.genericAccess || uuid == AttributeDatabase.genericAttribute ? nil : uuid
        }
        /// 0 if the object leaves it to BlueZ; nil if it is of another type.
        var givenHandle: UInt16? { (properties["Handle"] ?? .uint16(0)).number }
    }

    var database: AttributeDatabase
    var application: LocalApplication
    let traits: DaemonTraits
    /// The handles that BlueZ has given, to be written to the objects' properties.
    private(set) var handles: [(path: String, interface: String, handle: UInt16)] = []
    private(set) var added: [AttributeDatabase.Service] = []

    /// Adds the objects, in the order of the message, which ends the registration. The order of handles is that of the
    /// services, and in each that of its characteristics. Returns why BlueZ refuses them.
    mutating func build(_ objects: [ObjectState]) -> DaemonError? {
        let items = objects.flatMap { object in
            object.interfaces.filter { ![InterfaceName.introspectable, InterfaceName.properties].contains($0.name) }
                .map { Item(path: object.path, interface: $0.name, properties: $0.properties) }
        }
        guard !items.isEmpty else { return .failed("No object received") }
        var services = items.filter { $0.interface == InterfaceName.service }
        let characteristics = items.filter { $0.interface == InterfaceName.characteristic }
        let descriptors = items.filter { $0.interface == InterfaceName.descriptor }
        guard (characteristics + descriptors).allSatisfy({ take($0, &services) }),
            !services.isEmpty || items.contains(where: { $0.interface == "org.bluez.GattProfile1" })
        else { return .failed("No valid service object found") }
        guard services.allSatisfy({ add($0) }) else { return .failed("Failed to create entry in database") }
        application.registration = nil
        return nil
    }

    /// Assigns a characteristic or a descriptor to its service. Returns false if it has none, or no valid flags.
    private func take(_ item: Item, _ services: inout [Item]) -> Bool {
        let isCharacteristic = item.interface == InterfaceName.characteristic
        guard let parent = item.properties[isCharacteristic ? "Service" : "Characteristic"]?.path,
            let place = services.firstIndex(where: { service in
                isCharacteristic
                    ? service.path == parent : service.characteristics.contains { $0.path == parent }
            }),
            let flags = item.properties["Flags"].flatMap(CharacteristicFlags.init),
            isCharacteristic
                ? traits.hasSecuredSubscriptions || flags.subscribing == .none
                : flags.flags.isSubset(of: [.read, .write])
        else { return false }
        var item = item
        item.parent = parent
        item.flags = flags
        services[place][keyPath: isCharacteristic ? \Item.characteristics : \.descriptors].append(item)
        return true
    }

    private mutating func add(_ item: Item) -> Bool {
        guard let uuid = item.uuid, let isPrimary = item.properties["Primary"]?.flag, let handle = item.givenHandle,
            case .objectPaths(let includes) = item.properties["Includes"] ?? .objectPaths([])
        else { return false }
        let entries = item.characteristics.compactMap { characteristicEntry($0, item) }
        guard entries.count == item.characteristics.count else { return false }
        var service = AttributeDatabase.Service(
            count: 1 + includes.count, uuid: uuid, isPrimary: isPrimary,
            includes: includes.compactMap { application.services[$0] }, application: application.id)
        let isComplete = database.insert(&service, at: handle, entries)
        give(service.handle, item)
        for given in service.characteristics {
            for handle in [given.valueHandle] + given.descriptors.map(\.handle) {
                guard case .object(let object)? = database.attributes[handle]?.content,
                    let served = (item.characteristics + item.descriptors).first(where: { $0.path == object.path })
                else { continue }
                give(handle, served)
                application.objects[served.path] = ServedObject(
                    interface: served.interface, handle: handle, flags: served.flags.flags,
                    offersNotifySocket: served.properties["NotifyAcquired"] != nil,
                    offersWriteSocket: served.properties["WriteAcquired"] != nil,
                    wantsAuthorization: served.flags.wantsAuthorization)
            }
        }
        guard isComplete else {
            database.removeAttributes(of: service)
            return false
        }
        application.services[item.path] = service.handle
        added.append(service)
        return true
    }

    /// A characteristic of a service, with the descriptors that follow from its flags and then its own.
    private func characteristicEntry(_ item: Item, _ service: Item) -> AttributeDatabase.Entry? {
        guard var entry = entry(item), entry.handle != 0 || !traits.needsHandles else { return nil }
        if !entry.flags.isDisjoint(with: [.notify, .indicate]) {
            entry.descriptors.append(AttributeDatabase.subscribing(over: item.flags.subscribing))
        }
        let extended = entry.flags.extendedPropertyBits
        if extended != 0 {
            entry.descriptors.append(
                AttributeDatabase.Entry(
                    uuid: AttributeDatabase.extendedProperties, permissions: .reading, content: .value([extended, 0])))
        }
        for descriptor in service.descriptors where descriptor.parent == item.path {
            guard let own = self.entry(descriptor) else { return nil }
            entry.descriptors.append(own)
        }
        return entry
    }

    private func entry(_ item: Item) -> AttributeDatabase.Entry? {
        guard let handle = item.givenHandle, let uuid = item.uuid else { return nil }
        return AttributeDatabase.Entry(
            uuid: uuid, handle: handle, flags: item.flags.flags, permissions: item.flags.permissions,
            content: .object(ObjectID(application: application.id, path: item.path)))
    }

    /// An object that has left its handle to BlueZ gets it, if it has the property.
    private mutating func give(_ handle: UInt16, _ item: Item) {
        guard item.properties["Handle"] == .uint16(0), handle != 0 else { return }
        handles.append((item.path, item.interface, handle))
    }
}

/// The meaning of the `Flags` of an object.
struct CharacteristicFlags: Hashable, Sendable {
    /// Those that a central discovers.
    var flags: Set<CharacteristicFlag> = []
    var permissions = AttributePermissions()
    /// The security that subscriptions need.
    var subscribing = LinkSecurity.none
    var wantsAuthorization = false

    private mutating func add(_ text: String) -> Bool {
        if text == "authorize" {
            wantsAuthorization = true
            return true
        }
        let secured = Self.prefixes.first { text.hasPrefix($0.key) }
        let security = secured?.value ?? .none
        guard let flag = CharacteristicFlag(rawValue: String(text.dropFirst(secured?.key.count ?? 0))) else {
            return false
        }
        switch flag {
        case .read: permissions.read = max(permissions.read ?? LinkSecurity.none, security)
        case .write: permissions.write = max(permissions.write ?? LinkSecurity.none, security)
        case .notify, .indicate: subscribing = max(subscribing, security)
        case _ where secured != nil: return false
        case .writeWithoutResponse, .authenticatedSignedWrites, .reliableWrite:
            permissions.write = permissions.write ?? LinkSecurity.none
        case .broadcast, .extendedProperties, .writableAuxiliaries: break
        }
        flags.insert(flag)
        return true
    }

    /// The prefixes of flags that demand a security of the link.
    private static let prefixes: KeyValuePairs<String, LinkSecurity> = [
        "encrypt-authenticated-": .authenticated, "encrypt-": .encrypted, "secure-": .secure,
    ]
}

extension CharacteristicFlags {
    /// Nil if the value is no list of flags, if one of them is unknown, or if the list is empty, as with BlueZ.
    init?(_ value: BusValue) {
        guard let texts = value.strings, !texts.isEmpty, texts.allSatisfy({ add($0) }) else { return nil }
        if flags.extendedPropertyBits != 0 { flags.insert(.extendedProperties) }
    }
}
