/// The attributes that an adapter serves: BlueZ's own and those of the programs that registered some
/// (`src/shared/gatt-db.c`).
struct LocalDatabase: Hashable, Sendable {
    /// What a service is; its attributes are kept by their handles.
    struct Service: Hashable, Sendable {
        var handle: UInt16
        /// How many handles are its own, from the first on.
        var count: Int
        var uuid: String
        var isPrimary: Bool
        /// Handles of the services that it includes.
        var includes: [UInt16] = []
        var characteristics: [Characteristic] = []
        /// Nil for BlueZ's own.
        var application: ApplicationID?

        var range: ClosedRange<Int> { Int(handle)...(Int(handle) + count - 1) }
    }

    struct Characteristic: Hashable, Sendable {
        var handle: UInt16
        var uuid: String
        var properties: AttributeProperties
        var valueHandle: UInt16
        var descriptors: [Descriptor] = []
    }

    struct Descriptor: Hashable, Sendable {
        var handle: UInt16
        var uuid: String
    }

    /// An attribute that can be read or written.
    struct Attribute: Hashable, Sendable {
        enum Content: Hashable, Sendable {
            /// BlueZ knows it.
            case value([UInt8])
            /// A program is asked.
            case object(ObjectID)
            /// Who is subscribed to the characteristic with this value handle.
            case configuration(of: UInt16)
        }

        var permissions: AttributePermissions
        var content: Content
        /// The characteristic that it belongs to, by the handle of its value.
        var valueHandle: UInt16
    }

    private(set) var services: [Service] = []
    private(set) var attributes: [UInt16: Attribute] = [:]
    private var next = 1

    /// The services that BlueZ has on each adapter, in its order: generic access, generic attribute, device information.
    init(name: String, appearance: UInt16 = 0, traits: DaemonTraits, version: BlueZVersion) {
        func value(_ bytes: [UInt8]) -> Attribute.Content { .value(bytes) }
        let count = traits.hasAddressResolution ? 7 : 5
        var access = Service(handle: 0, count: count, uuid: AttributeTable.genericAccess, isPrimary: true)
        _ = insert(&access, at: 0)
        add("2a00", .read, value(Array(name.utf8)), to: &access)
        add("2a01", .read, value([UInt8(appearance & 0xFF), UInt8(appearance >> 8)]), to: &access)
        if traits.hasAddressResolution { add("2aa6", .read, value([1]), to: &access) }
        store(access)

        var attribute = Service(handle: 0, count: 10, uuid: AttributeTable.genericAttribute, isPrimary: true)
        _ = insert(&attribute, at: 0)
        add("2a05", .indicate, value([]), permissions: [], to: &attribute)
        addConfiguration(permissions: [.read, .write], to: &attribute)
        add("2b29", [.read, .write], value([0]), to: &attribute)
        add("2b2a", .read, value(Array(repeating: 0, count: 16)), to: &attribute)
        add("2b3a", .read, value([1]), to: &attribute)
        store(attribute)

        var information = Service(
            handle: 0, count: 3, uuid: "0000180a-0000-1000-8000-00805f9b34fb", isPrimary: true)
        _ = insert(&information, at: 0)
        // Source, vendor, product, version, as the adapter's `Modalias` has them.
        add(
            "2a50", .read, value([2, 0x6B, 0x1D, 0x46, 0x02, UInt8(version.release), UInt8(version.major)]),
            to: &information)
        store(information)
    }

    private mutating func add(
        _ uuid: String, _ properties: AttributeProperties, _ content: Attribute.Content,
        permissions: AttributePermissions? = nil, to service: inout Service
    ) {
        _ = insertCharacteristic(
            ServiceUUID.long(uuid) ?? uuid, at: 0, properties: properties,
            permissions: permissions ?? AttributePermissions(properties), content: content, in: &service)
    }

    // MARK: Inserting

    /// Finds room for a service, at a handle or, with 0, behind all that ever were. False where the handles are taken or
    /// have run out.
    mutating func insert(_ service: inout Service, at handle: UInt16) -> Bool {
        let start = handle == 0 ? next : Int(handle)
        let end = start + service.count - 1
        guard service.count >= 1, end <= Int(UInt16.max) else { return false }
        for other in services where other.range.contains(start) || other.range.contains(end) { return false }
        service.handle = UInt16(start)
        next = max(start + service.count, next)
        return true
    }

    /// The service is complete, and can be seen.
    mutating func store(_ service: Service) {
        let place = services.firstIndex { $0.handle > service.handle } ?? services.count
        services.insert(service, at: place)
    }

    /// Gives the handle of its value, or nil where it does not fit. A handle that is given is that of the value.
    mutating func insertCharacteristic(
        _ uuid: String, at handle: UInt16, properties: AttributeProperties, permissions: AttributePermissions,
        content: Attribute.Content, in service: inout Service
    ) -> UInt16? {
        guard handle == 0 || handle > service.handle, handle != .max, used(service) + 2 <= service.count else {
            return nil
        }
        let valueHandle = handle == 0 ? lastHandle(of: service) + 2 : handle
        service.characteristics.append(
            Characteristic(handle: valueHandle - 1, uuid: uuid, properties: properties, valueHandle: valueHandle))
        attributes[valueHandle] = Attribute(permissions: permissions, content: content, valueHandle: valueHandle)
        return valueHandle
    }

    /// Gives its handle, or nil where it does not fit. It belongs to the service's last characteristic.
    mutating func insertDescriptor(
        _ uuid: String, at handle: UInt16, permissions: AttributePermissions, content: Attribute.Content,
        in service: inout Service
    ) -> UInt16? {
        guard handle == 0 || handle > service.handle, used(service) + 1 <= service.count,
            let last = service.characteristics.indices.last
        else { return nil }
        let given = handle == 0 ? lastHandle(of: service) + 1 : handle
        service.characteristics[last].descriptors.append(Descriptor(handle: given, uuid: uuid))
        attributes[given] = Attribute(
            permissions: permissions, content: content, valueHandle: service.characteristics[last].valueHandle)
        return given
    }

    @discardableResult
    mutating func addConfiguration(permissions: AttributePermissions, to service: inout Service) -> UInt16? {
        guard let value = service.characteristics.last?.valueHandle else { return nil }
        return insertDescriptor(
            AttributeTable.configuration, at: 0, permissions: permissions, content: .configuration(of: value),
            in: &service)
    }

    /// How many attributes it has so far.
    private func used(_ service: Service) -> Int {
        1 + service.includes.count + service.characteristics.reduce(0) { $0 + 2 + $1.descriptors.count }
    }

    /// The handle of the attribute that was added last.
    private func lastHandle(of service: Service) -> UInt16 {
        guard let last = service.characteristics.last else {
            return service.handle + UInt16(service.includes.count)
        }
        return last.descriptors.last?.handle ?? last.valueHandle
    }

    // MARK: Removing

    /// The services of an application go; gives which they were. Their handles are not given to others.
    mutating func remove(_ application: ApplicationID) -> [Service] {
        let gone = services.filter { $0.application == application }
        services.removeAll { $0.application == application }
        for service in gone { forgetAttributes(of: service) }
        return gone
    }

    /// The service with this handle goes.
    mutating func remove(service handle: UInt16) -> Service? {
        guard let place = services.firstIndex(where: { $0.handle == handle }) else { return nil }
        let gone = services.remove(at: place)
        forgetAttributes(of: gone)
        return gone
    }

    /// What was begun of a service that cannot be completed.
    mutating func forgetAttributes(of service: Service) {
        for characteristic in service.characteristics {
            attributes[characteristic.valueHandle] = nil
            for descriptor in characteristic.descriptors { attributes[descriptor.handle] = nil }
        }
    }

    // MARK: Looking

    /// The descriptor that subscriptions to a characteristic are written to, by the handle of its value.
    func configurationHandle(of valueHandle: UInt16) -> UInt16? {
        characteristic(valueHandle)?.descriptors.first { descriptor in
            if case .configuration? = attributes[descriptor.handle]?.content { true } else { false }
        }?.handle
    }

    /// By the handle of the value.
    func characteristic(_ valueHandle: UInt16) -> Characteristic? {
        services.first { $0.range.contains(Int(valueHandle)) }?.characteristics.first { $0.valueHandle == valueHandle }
    }
}

/// Which application, in which order they came.
struct ApplicationID: Hashable, Sendable {
    let number: Int
}

/// An object of an application.
struct ObjectID: Hashable, Sendable {
    let application: ApplicationID
    let path: String
}

/// What is said of a characteristic in its declaration (core specification 5.3, volume 3, part G, 3.3.1.1).
struct AttributeProperties: OptionSet, Hashable, Sendable {
    let rawValue: UInt8
    static let broadcast = Self(rawValue: 0x01)
    static let read = Self(rawValue: 0x02)
    static let writeWithoutResponse = Self(rawValue: 0x04)
    static let write = Self(rawValue: 0x08)
    static let notify = Self(rawValue: 0x10)
    static let indicate = Self(rawValue: 0x20)
    static let signedWrite = Self(rawValue: 0x40)
    static let extended = Self(rawValue: 0x80)
}

/// Who may read or write an attribute. Encryption is asked for beside, and never there: nobody pairs here.
struct AttributePermissions: OptionSet, Hashable, Sendable {
    let rawValue: UInt16
    static let read = Self(rawValue: 0x01)
    static let write = Self(rawValue: 0x02)
    static let readEncrypted = Self(rawValue: 0x04)
    static let writeEncrypted = Self(rawValue: 0x08)
    static let readAuthenticated = Self(rawValue: 0x10)
    static let writeAuthenticated = Self(rawValue: 0x20)
    static let readSecure = Self(rawValue: 0x40)
    static let writeSecure = Self(rawValue: 0x80)

    init(rawValue: UInt16) { self.rawValue = rawValue }

    init(_ properties: AttributeProperties) {
        self = []
        if properties.contains(.read) { insert(.read) }
        if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) { insert(.write) }
    }

    /// The error code for reading over a link that is not encrypted; nil for what is allowed (`check_permissions`).
    func refusal(ofWriting: Bool) -> UInt8? {
        let (plain, encrypted, authenticated, secure): (Self, Self, Self, Self) =
            ofWriting
            ? (.write, .writeEncrypted, .writeAuthenticated, .writeSecure)
            : (.read, .readEncrypted, .readAuthenticated, .readSecure)
        guard !isEmpty else { return nil }
        guard contains(plain) else { return ofWriting ? ATTError.writeNotPermitted : ATTError.readNotPermitted }
        if !isDisjoint(with: [authenticated, secure]) { return ATTError.insufficientAuthentication }
        return contains(encrypted) ? ATTError.insufficientEncryption : nil
    }
}
