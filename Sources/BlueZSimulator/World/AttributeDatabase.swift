import Foundation

/// The attributes of a server with their handles, as `src/shared/gatt-db.c` keeps them: those of a virtual peripheral, or
/// those that an adapter serves for BlueZ and for programs. UUIDs are in their long form.
struct AttributeDatabase: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        /// The handle of its declaration.
        var handle: UInt16 = 0
        /// The number of handles that it has, from the first on.
        var count: Int
        var uuid: String
        var isPrimary: Bool
        /// The handles of the services that it includes; zeros while these are not known.
        var includes: [UInt16] = []
        var characteristics: [Characteristic] = []
        /// The application of a program; nil for services of a peripheral and for BlueZ's own.
        var application: ApplicationID?
        /// Seconds after the discovery until BlueZ exports its objects.
        var appearsAfter: TimeInterval = 0
        /// Whether its UUID is among the device's before its objects are exported.
        var isAnnounced = true
        /// The number of attributes so far, apart from its declaration and its includes.
        fileprivate(set) var used = 0

        var range: ClosedRange<Int> { Int(handle)...(Int(handle) + count - 1) }
    }

    struct Characteristic: Hashable, Sendable {
        /// The handle of its declaration; the value's is the next.
        var handle: UInt16
        var uuid: String
        /// Those of its declaration, and those of its descriptor for extended properties.
        var flags: Set<CharacteristicFlag>
        var descriptors: [Descriptor] = []
        /// The values that a virtual peripheral sends unasked.
        var notifications: NotificationSource?
        /// The UUID of the characteristic that notifies what is written to this one.
        var echo: String?

        var valueHandle: UInt16 { handle + 1 }

        /// Whether a central can subscribe to it.
        var canNotify: Bool { !flags.isDisjoint(with: [.notify, .indicate]) }

        /// The handle of the descriptor that subscriptions are written to.
        var configurationHandle: UInt16? { descriptors.first { $0.uuid == AttributeDatabase.configuration }?.handle }
    }

    struct Descriptor: Hashable, Sendable {
        var handle: UInt16
        var uuid: String
        /// Read, write or both.
        var flags: Set<CharacteristicFlag> = []
    }

    /// The value of a characteristic, or a descriptor.
    struct Attribute: Hashable, Sendable {
        enum Content: Hashable, Sendable {
            case value([UInt8])
            /// An object of a program, which is called.
            case object(ObjectID)
            /// The subscriptions to the characteristic, of which each link has its own.
            case configuration
        }

        var permissions: AttributePermissions
        var content: Content
    }

    /// A characteristic or a descriptor that is to be inserted.
    struct Entry {
        var uuid: String
        /// The handle of the value or the descriptor; 0 for the next.
        var handle: UInt16 = 0
        var flags: Set<CharacteristicFlag> = []
        var permissions: AttributePermissions
        var content: Attribute.Content
        var notifications: NotificationSource?
        var echo: String?
        var descriptors: [Entry] = []

        /// The number of handles that a characteristic takes.
        var count: Int { 2 + descriptors.count }
    }

    /// In the order of their handles.
    private(set) var services: [Service] = []
    private(set) var attributes: [UInt16: Attribute] = [:]
    private var next = 1

    // MARK: Inserting

    /// Inserts a service with its characteristics, at a handle or, with 0, behind all that were ever given. Returns false if
    /// these are taken or have run out; then `service` has what was inserted, without being in the list.
    mutating func insert(_ service: inout Service, at handle: UInt16 = 0, _ characteristics: [Entry]) -> Bool {
        service.count = characteristics.reduce(service.count) { $0 + $1.count }
        let start = handle == 0 ? next : Int(handle)
        let end = start + service.count - 1
        guard end <= Limits.handles.upperBound else { return false }
        for other in services where other.range.contains(start) || other.range.contains(end) { return false }
        service.handle = UInt16(start)
        next = max(end + 1, next)
        for entry in characteristics {
            guard let given = reserve(2, at: entry.handle, in: &service) else { return false }
            attributes[given] = Attribute(permissions: entry.permissions, content: entry.content)
            service.characteristics.append(
                Characteristic(
                    handle: given - 1, uuid: entry.uuid, flags: entry.flags, notifications: entry.notifications,
                    echo: entry.echo))
            for entry in entry.descriptors {
                guard let given = reserve(1, at: entry.handle, in: &service) else { return false }
                attributes[given] = Attribute(permissions: entry.permissions, content: entry.content)
                service.characteristics[service.characteristics.count - 1].descriptors.append(
                    Descriptor(handle: given, uuid: entry.uuid, flags: entry.flags))
            }
        }
        services.insert(service, at: services.firstIndex { $0.handle > service.handle } ?? services.count)
        return true
    }

    /// Takes that many handles of a service, and returns the last of them.
    private func reserve(_ count: Int, at handle: UInt16, in service: inout Service) -> UInt16? {
        guard handle == 0 || handle > service.handle, handle != .max || count == 1,
            1 + service.includes.count + service.used + count <= service.count
        else { return nil }
        service.used += count
        guard handle == 0 else { return handle }
        let last = service.characteristics.last
        let before = last?.descriptors.last?.handle ?? last?.valueHandle
        return (before ?? service.handle + UInt16(service.includes.count)) + UInt16(count)
    }

    // MARK: Changing

    /// Removes services and returns them. Their handles are not given again.
    mutating func remove(where isRemoved: (Service) -> Bool) -> [Service] {
        let removed = services.filter(isRemoved)
        services.removeAll(where: isRemoved)
        for service in removed { removeAttributes(of: service) }
        return removed
    }

    /// Removes the attributes of a service, also of one that cannot be completed.
    mutating func removeAttributes(of service: Service) {
        for characteristic in service.characteristics {
            attributes[characteristic.valueHandle] = nil
            for descriptor in characteristic.descriptors { attributes[descriptor.handle] = nil }
        }
    }

    mutating func setValue(_ bytes: [UInt8], of handle: UInt16) { attributes[handle]?.content = .value(bytes) }

    // MARK: Looking up

    func value(of handle: UInt16) -> [UInt8]? {
        guard case .value(let bytes)? = attributes[handle]?.content else { return nil }
        return bytes
    }

    /// The service and the characteristic to which the attribute with this handle belongs; the descriptor is nil for a
    /// characteristic's value.
    func place(of handle: UInt16) -> (service: Service, characteristic: Characteristic, descriptor: Descriptor?)? {
        guard let service = services.first(where: { $0.range.contains(Int(handle)) }) else { return nil }
        for characteristic in service.characteristics {
            if characteristic.valueHandle == handle { return (service, characteristic, nil) }
            guard let descriptor = characteristic.descriptors.first(where: { $0.handle == handle }) else { continue }
            return (service, characteristic, descriptor)
        }
        return nil
    }

    /// The characteristic with a value of this handle.
    func characteristic(withValue valueHandle: UInt16) -> Characteristic? {
        services.first { $0.range.contains(Int(valueHandle)) }?.characteristics.first { $0.valueHandle == valueHandle }
    }

    /// The first characteristic with this UUID, or the one with a declaration or a value of this handle.
    func characteristic(_ selector: AttributeSelector) -> Characteristic? {
        let all = services.lazy.flatMap(\.characteristics)
        switch selector {
        case .uuid(let text):
            let long = ServiceUUID.long(text)
            return all.first { $0.uuid == long }
        case .handle(let handle): return all.first { $0.handle == handle || $0.valueHandle == handle }
        }
    }

    /// The characteristic with this UUID that notifies, or else the first one with it.
    func target(ofEcho uuid: String) -> Characteristic? {
        let targets = services.flatMap(\.characteristics).filter { $0.uuid == uuid }
        return targets.first(where: \.canNotify) ?? targets.first
    }

    /// The handle of a characteristic's value, or of a descriptor of it; nil if there is none.
    func handle(_ selector: AttributeSelector, descriptor: String?) -> UInt16? {
        let characteristic = characteristic(selector)
        guard let descriptor else { return characteristic?.valueHandle }
        let long = ServiceUUID.long(descriptor)
        return characteristic?.descriptors.first { $0.uuid == long }?.handle
    }

    var discovered: [Service] {
        services.map { service in
            var service = service
            service.application = nil
            return service
        }
    }

    static let genericAccess = short("1800")
    static let genericAttribute = short("1801")
    static let configuration = short("2902")
    static let extendedProperties = short("2900")
    static let deviceName = short("2a00")
    static let deviceInformation = short("180a")

    private static func short(_ digits: String) -> String { "0000\(digits)-0000-1000-8000-00805f9b34fb" }
}

/// The attributes of a virtual peripheral.
extension AttributeDatabase {
    /// The first service, and its first characteristic, for which no handle is left; the characteristic is nil if that is
    /// the service's declaration.
    struct Overflow: Error {
        var service: Int
        var characteristic: Int?
    }

    /// Gives handles to services. Those that every peripheral has come first unless they are given: generic access (`1800`)
    /// with the name and the appearance, generic attribute (`1801`) with "service changed".
    init(_ given: [VirtualService], name: String?, appearance: UInt16?) {
        do throws(Overflow) {
            // Most peripherals of a crowd have the same attributes but for two values.
            self = given.isEmpty ? Self.bare : try Self(placing: given)
        } catch {
            preconditionFailure(
                "The services of a virtual peripheral need more than 65,535 handles: give it fewer characteristics.")
        }
        guard !given.contains(where: { ServiceUUID.long($0.uuid) == Self.genericAccess }) else { return }
        let access = services[0].characteristics
        setValue(Array((name ?? "").utf8), of: access[0].valueHandle)
        setValue((appearance ?? 0).bytes, of: access[1].valueHandle)
    }

    /// The attributes of a peripheral without services of its own.
    private static let bare = (try? AttributeDatabase(placing: [])) ?? AttributeDatabase()

    init(placing given: [VirtualService]) throws(Overflow) {
        let uuids = Set(given.compactMap { ServiceUUID.long($0.uuid) })
        let implied = Self.impliedServices.filter { !uuids.contains($0.uuid) }
        for (index, service) in (implied + given).enumerated() { try place(service, index - implied.count) }
        let known = (implied + given).filter { ServiceUUID.long($0.uuid) != nil }
        for (index, service) in known.enumerated() {
            services[index].includes = service.includes.compactMap { uuid in
                services.first { $0.uuid == ServiceUUID.long(uuid) }?.handle
            }
        }
    }

    private mutating func place(_ given: VirtualService, _ index: Int) throws(Overflow) {
        guard let uuid = ServiceUUID.long(given.uuid) else { return }
        let entries = given.characteristics.compactMap(Self.entry)
        let start = max(next, Int(given.handle ?? 0))
        var end = start + given.includes.count
        guard end <= Limits.handles.upperBound else { throw Overflow(service: index, characteristic: nil) }
        for (place, entry) in entries.enumerated() {
            end += entry.count
            guard end <= Limits.handles.upperBound else { throw Overflow(service: index, characteristic: place) }
        }
        var service = Service(
            count: 1 + given.includes.count, uuid: uuid, isPrimary: given.isPrimary,
            includes: [UInt16](repeating: 0, count: given.includes.count), appearsAfter: given.appearsAfter,
            isAnnounced: given.appearsAfter == 0 || given.isAnnounced)
        _ = insert(&service, at: UInt16(start), entries)
    }

    private static func entry(_ given: VirtualCharacteristic) -> Entry? {
        guard let uuid = ServiceUUID.long(given.uuid) else { return nil }
        var entry = Entry(
            uuid: uuid, flags: given.flags, permissions: AttributePermissions(given.flags, given.security),
            content: .value(given.value), notifications: given.notifications,
            echo: given.echo.flatMap(ServiceUUID.long))
        if entry.flags.extendedPropertyBits != 0 { entry.flags.insert(.extendedProperties) }
        // Before the descriptors that are given, those that follow from the flags.
        let uuids = Set(given.descriptors.compactMap { ServiceUUID.long($0.uuid) })
        var descriptors: [VirtualDescriptor] = []
        if entry.flags.contains(.extendedProperties), !uuids.contains(extendedProperties) {
            descriptors.append(VirtualDescriptor(extendedProperties, value: [entry.flags.extendedPropertyBits, 0]))
        }
        if !entry.flags.isDisjoint(with: [.notify, .indicate]), !uuids.contains(configuration) {
            descriptors.append(VirtualDescriptor(configuration))
        }
        entry.descriptors = (descriptors + given.descriptors).compactMap { descriptor in
            guard let uuid = ServiceUUID.long(descriptor.uuid) else { return nil }
            guard uuid != configuration else { return subscribing(over: given.security.subscribe) }
            return Entry(
                uuid: uuid, flags: descriptor.flags,
                permissions: AttributePermissions(descriptor.flags, descriptor.security),
                content: .value(descriptor.value))
        }
        return entry
    }

    /// The descriptor for subscriptions, which need this security.
    static func subscribing(over security: LinkSecurity) -> Entry {
        Entry(
            uuid: configuration, flags: [.read, .write],
            permissions: AttributePermissions(read: LinkSecurity.none, write: security), content: .configuration)
    }

    private static let impliedServices = [
        VirtualService(
            genericAccess,
            characteristics: [VirtualCharacteristic("2a00", [.read]), VirtualCharacteristic("2a01", [.read])]),
        VirtualService(
            genericAttribute, characteristics: [VirtualCharacteristic("2a05", [.indicate], value: [1, 0, 0xFF, 0xFF])]),
    ]
}

extension Set<CharacteristicFlag> {
    /// The bits of the descriptor for extended properties (core specification 5.3, volume 3, part G, 3.3.3.1).
    var extendedPropertyBits: UInt8 { (contains(.reliableWrite) ? 1 : 0) | (contains(.writableAuxiliaries) ? 2 : 0) }
}

/// An application of a program; the numbers are in the order of registration.
struct ApplicationID: Hashable, Sendable {
    let number: UInt64
}

struct ObjectID: Hashable, Sendable {
    let application: ApplicationID
    let path: String
}

/// The security that a link needs for reading and writing an attribute; nil for what the attribute does not allow.
struct AttributePermissions: Hashable, Sendable {
    var read: LinkSecurity?
    var write: LinkSecurity?

    static let reading = Self(read: LinkSecurity.none)

    /// The error code for reading or writing over a link; nil if that is allowed, as it is if neither has a permission
    /// (`check_permissions`).
    func refusal(ofWriting: Bool, over security: LinkSecurity) -> UInt8? {
        guard self != Self() else { return nil }
        guard let needed = ofWriting ? write : read else {
            return ofWriting ? ATTError.writeNotPermitted : ATTError.readNotPermitted
        }
        return needed.refusal(over: security)
    }
}

extension AttributePermissions {
    init(_ flags: Set<CharacteristicFlag>, _ security: AttributeSecurity) {
        read = flags.contains(.read) || security.read > .none ? security.read : nil
        write = flags.contains(.write) || security.write > .none ? security.write : nil
    }
}

/// Error codes of the attribute protocol (core specification 5.3, volume 3, part F, 3.4.1.1).
enum ATTError {
    static let invalidHandle: UInt8 = 0x01
    static let readNotPermitted: UInt8 = 0x02
    static let writeNotPermitted: UInt8 = 0x03
    static let insufficientAuthentication: UInt8 = 0x05
    static let requestNotSupported: UInt8 = 0x06
    static let invalidOffset: UInt8 = 0x07
    static let insufficientAuthorization: UInt8 = 0x08
    static let insufficientKeySize: UInt8 = 0x0C
    static let invalidLength: UInt8 = 0x0D
    /// Also the error of a request after the end of its link.
    static let unlikely: UInt8 = 0x0E
    static let insufficientEncryption: UInt8 = 0x0F
}

/// Names a characteristic of a peripheral: by its UUID, short or long, or by its handle if several have that UUID.
public enum AttributeSelector: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    /// The only characteristic with this UUID, short (`2A19`) or long.
    case uuid(String)
    /// The handle of the declaration, the number in `…/char002a`, or of the value.
    case handle(UInt16)

    public init(stringLiteral uuid: String) { self = .uuid(uuid) }
    public init(integerLiteral handle: UInt16) { self = .handle(handle) }
}
