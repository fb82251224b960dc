/// How an application's objects become attributes.
struct ApplicationBuilder {
    struct Failure: Error, Hashable {
        let message: String
    }

    /// A handle that BlueZ has given, to be written to the object's property.
    struct GivenHandle: Hashable {
        var path: String
        var interface: String
        var handle: UInt16
    }

    private struct Item {
        var path: String
        var properties: [NamedValue]
    }

    private struct CharacteristicItem {
        var path: String
        var properties: [NamedValue]
        var flags: CharacteristicFlags
    }

    private struct DescriptorItem {
        var path: String
        var characteristic: String
        var properties: [NamedValue]
        var flags: CharacteristicFlags
        var isHandled = false
    }

    private struct ServiceItem {
        var path: String
        var properties: [NamedValue]
        var count = 1
        var characteristics: [CharacteristicItem] = []
        var descriptors: [DescriptorItem] = []
    }

    var database: AttributeDatabase
    var application: LocalApplication
    private let traits: DaemonTraits
    private(set) var handles: [GivenHandle] = []
    private(set) var added: [AttributeDatabase.Service] = []

    init(_ application: LocalApplication, in database: AttributeDatabase, traits: DaemonTraits) {
        self.application = application
        self.database = database
        self.traits = traits
    }

    /// Takes the objects, in the order sent; the order of handles is that of the services, and in each that of its
    /// characteristics.
    mutating func build(_ objects: [ObjectState]) throws(Failure) {
        let items = objects.flatMap { object in
            object.interfaces.filter { !Self.standard.contains($0.name) }
                .map { (interface: $0.name, item: Item(path: object.path, properties: $0.properties)) }
        }
        guard !items.isEmpty else { throw Failure(message: "No object received") }
        var services: [ServiceItem] = []
        for (interface, item) in items where interface == InterfaceName.service {
            services.append(ServiceItem(path: item.path, properties: item.properties))
        }
        let isComplete =
            items.allSatisfy { entry in
                entry.interface != InterfaceName.characteristic
                    || Self.take(characteristic: entry.item, &services, traits: traits)
            }
            && items.allSatisfy { entry in
                entry.interface != InterfaceName.descriptor || Self.take(descriptor: entry.item, &services)
            }
        let hasProfile = items.contains { $0.interface == "org.bluez.GattProfile1" }
        guard isComplete, !services.isEmpty || hasProfile else {
            throw Failure(message: "No valid service object found")
        }
        for service in services {
            guard add(service) else { throw Failure(message: "Failed to create entry in database") }
        }
    }

    private static let standard: Set<String> = [
        "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties",
    ]

    // MARK: First pass: what is there, and how many handles it takes

    private static func take(
        characteristic item: Item, _ services: inout [ServiceItem], traits: DaemonTraits
    ) -> Bool {
        guard let path = item.properties["Service"]?.path, let place = services.firstIndex(where: { $0.path == path }),
            let flags = item.properties["Flags"].flatMap({
                CharacteristicFlags.ofCharacteristic($0, hasSecuredSubscriptions: traits.hasSecuredSubscriptions)
            })
        else { return false }
        services[place].count += 2
        if !flags.flags.isDisjoint(with: [.notify, .indicate]) { services[place].count += 1 }
        if flags.flags.extendedPropertyBits != 0 { services[place].count += 1 }
        services[place].characteristics.append(
            CharacteristicItem(path: item.path, properties: item.properties, flags: flags))
        return true
    }

    private static func take(descriptor item: Item, _ services: inout [ServiceItem]) -> Bool {
        guard let path = item.properties["Characteristic"]?.path,
            let place = services.firstIndex(where: { $0.characteristics.contains { $0.path == path } }),
            let flags = item.properties["Flags"].flatMap(CharacteristicFlags.ofDescriptor)
        else { return false }
        services[place].count += 1
        services[place].descriptors.append(
            DescriptorItem(path: item.path, characteristic: path, properties: item.properties, flags: flags))
        return true
    }

    // MARK: Second pass: into the database

    private mutating func add(_ item: ServiceItem) -> Bool {
        guard let uuid = Self.uuid(item.properties), let isPrimary = item.properties["Primary"]?.flag,
            let includes = Self.includes(item.properties), let handle = Self.handle(item.properties)
        else { return false }
        var service = AttributeDatabase.Service(
            count: item.count + includes.count, uuid: uuid, isPrimary: isPrimary,
            application: application.id)
        guard database.insert(&service, at: handle) else { return false }
        if handle == 0 { give(service.handle, item.path, InterfaceName.service, item.properties) }
        service.includes = includes.compactMap { application.services[$0] }
        var item = item
        for characteristic in item.characteristics {
            guard add(characteristic, of: &item, to: &service) else {
                database.removeAttributes(of: service)
                return false
            }
        }
        application.services[item.path] = service.handle
        database.store(service)
        added.append(service)
        return true
    }

    private mutating func add(
        _ item: CharacteristicItem, of parent: inout ServiceItem, to service: inout AttributeDatabase.Service
    ) -> Bool {
        let object = ObjectID(application: application.id, path: item.path)
        guard let handle = Self.handle(item.properties), handle != 0 || !traits.needsHandles,
            let uuid = Self.uuid(item.properties),
            database.insert(
                uuid, at: handle, flags: item.flags.flags, permissions: item.flags.permissions,
                content: .object(object), in: &service),
            let characteristic = service.characteristics.last
        else { return false }
        if characteristic.canNotify {
            let permissions = item.flags.subscribing.union([.read, .write])
            guard database.insertConfiguration(permissions: permissions, in: &service) else { return false }
        }
        let extended = characteristic.flags.extendedPropertyBits
        if extended != 0 {
            guard
                database.insert(
                    descriptor: AttributeDatabase.extendedProperties, permissions: .read,
                    content: .value([extended, 0]), in: &service)
            else { return false }
        }
        let value = characteristic.valueHandle
        if handle == 0 { give(value, item.path, InterfaceName.characteristic, item.properties) }
        application.characteristics[item.path] = ServedCharacteristicObject(
            valueHandle: value, properties: item.flags.flags,
            offersNotifySocket: item.properties["NotifyAcquired"] != nil,
            offersWriteSocket: item.properties["WriteAcquired"] != nil,
            wantsAuthorization: item.flags.wantsAuthorization)
        for place in parent.descriptors.indices
        where !parent.descriptors[place].isHandled && parent.descriptors[place].characteristic == item.path {
            guard add(parent.descriptors[place], to: &service) else { return false }
            parent.descriptors[place].isHandled = true
        }
        return true
    }

    private mutating func add(_ item: DescriptorItem, to service: inout AttributeDatabase.Service) -> Bool {
        let object = ObjectID(application: application.id, path: item.path)
        guard let handle = Self.handle(item.properties), let uuid = Self.uuid(item.properties),
            database.insert(
                descriptor: uuid, at: handle, permissions: item.flags.permissions, content: .object(object),
                in: &service),
            let given = service.characteristics.last?.descriptors.last?.handle
        else { return false }
        if handle == 0 { give(given, item.path, InterfaceName.descriptor, item.properties) }
        application.descriptors[item.path] = ServedDescriptorObject(
            handle: given, wantsAuthorization: item.flags.wantsAuthorization)
        return true
    }

    /// Only an object that has the property is told.
    private mutating func give(
        _ handle: UInt16, _ path: String, _ interface: String, _ properties: [NamedValue]
    ) {
        guard properties["Handle"] != nil else { return }
        handles.append(GivenHandle(path: path, interface: interface, handle: handle))
    }

    // MARK: Properties

    /// Generic access and generic attribute are BlueZ's own.
    private static func uuid(_ properties: [NamedValue]) -> String? {
        guard let long = properties["UUID"]?.text.flatMap(ServiceUUID.long),
            long != AttributeDatabase.genericAccess, long != AttributeDatabase.genericAttribute
        else { return nil }
        return long
    }

    /// 0 where the object leaves it to BlueZ; nil where it is of another type.
    private static func handle(_ properties: [NamedValue]) -> UInt16? {
        guard let value = properties["Handle"] else { return 0 }
        return value.number
    }

    private static func includes(_ properties: [NamedValue]) -> [String]? {
        guard let value = properties["Includes"] else { return [] }
        guard case .objectPaths(let paths) = value else { return nil }
        return paths
    }
}
