import Foundation

/// A peripheral's attributes with their handles: what a client's discovery finds.
struct AttributeTable: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        var handle: UInt16
        /// Long form.
        var uuid: String
        var isPrimary: Bool
        /// Handles of services.
        var includes: [UInt16]
        var characteristics: [Characteristic]
        var appearsAfter: TimeInterval
        var isAnnounced: Bool
    }

    struct Characteristic: Hashable, Sendable {
        /// Of the declaration; the value's is the next.
        var handle: UInt16
        var uuid: String
        var flags: Set<CharacteristicFlag>
        var descriptors: [Descriptor]
        var notifications: NotificationSource?
        /// The declaration's handle of the characteristic that repeats what is written here.
        var echo: UInt16?

        var valueHandle: UInt16 { handle + 1 }
    }

    struct Descriptor: Hashable, Sendable {
        var handle: UInt16
        var uuid: String
        var flags: Set<CharacteristicFlag>
    }

    /// In the order of their handles.
    private(set) var services: [Service] = []
    /// What the values are at first, by the handle of the value or the descriptor.
    private(set) var initialValues: [UInt16: [UInt8]] = [:]
    /// What a request's handle names.
    private(set) var targets: [UInt16: Target] = [:]

    /// What a handle that can be read or written belongs to.
    struct Target: Hashable, Sendable {
        var service: String
        var characteristic: Characteristic
        /// Nil for the characteristic's own value.
        var descriptor: Descriptor?
    }

    /// Lays out a table. The services that every peripheral has come first unless they are given: generic access
    /// (`1800`) with the name and appearance, generic attribute (`1801`) with "service changed".
    init(_ given: [VirtualService], name: String?, appearance: UInt16?) {
        guard given.isEmpty else {
            self.init(Self.implied(beside: given, name: name, appearance: appearance) + given)
            return
        }
        // As most of a crowd are: the same table but for two values, which is not laid out again.
        self = Self.bare
        initialValues[Self.bareHandles.name] = Self.value(ofName: name)
        initialValues[Self.bareHandles.appearance] = Self.value(ofAppearance: appearance)
    }

    /// The table of a peripheral without services of its own.
    private static let bare = AttributeTable(implied(beside: [], name: nil, appearance: nil))

    private static let bareHandles = (
        name: bare.characteristic(.uuid(deviceName))?.valueHandle ?? 0,
        appearance: bare.characteristic(.uuid("2a01"))?.valueHandle ?? 0
    )

    private init(_ all: [VirtualService]) {
        var next = 1
        for service in all {
            guard let uuid = ServiceUUID.long(service.uuid) else { continue }
            next = max(next, Int(service.handle ?? 0))
            var laid = Service(
                handle: Self.handle(next), uuid: uuid, isPrimary: service.isPrimary, includes: [], characteristics: [],
                appearsAfter: service.appearsAfter,
                isAnnounced: service.appearsAfter == 0 || service.isAnnounced)
            // One attribute for each include declaration.
            next += 1 + service.includes.count
            laid.characteristics = service.characteristics.compactMap { place($0, of: uuid, at: &next) }
            services.append(laid)
        }
        resolve(all)
    }

    /// The services that every peripheral has and that are not given.
    private static func implied(
        beside given: [VirtualService], name: String?, appearance: UInt16?
    ) -> [VirtualService] {
        let uuids = Set(given.compactMap { ServiceUUID.long($0.uuid) })
        var implied: [VirtualService] = []
        if !uuids.contains(genericAccess) { implied.append(access(name: name, appearance: appearance)) }
        if !uuids.contains(genericAttribute) { implied.append(attribute) }
        return implied
    }

    /// The first of these services, and of its characteristics, for which no handle is left; nil if there is none.
    static func overflow(of given: [VirtualService]) -> (service: Int, characteristic: Int?)? {
        let implied = implied(beside: given, name: nil, appearance: nil)
        var next = 1 + implied.reduce(0) { $0 + 1 + $1.characteristics.reduce(0) { $0 + handleCount(of: $1) } }
        for (place, service) in given.enumerated() {
            next = max(next, Int(service.handle ?? 0)) + 1 + service.includes.count
            guard next - 1 <= Limits.handles.upperBound else { return (place, nil) }
            for (index, characteristic) in service.characteristics.enumerated() {
                next += handleCount(of: characteristic)
                guard next - 1 <= Limits.handles.upperBound else { return (place, index) }
            }
        }
        return nil
    }

    /// Declaration, value and descriptors.
    private static func handleCount(of given: VirtualCharacteristic) -> Int {
        2 + implied(flags(of: given), beside: given.descriptors).count + given.descriptors.count
    }

    private static func handle(_ number: Int) -> UInt16 {
        guard let handle = UInt16(exactly: number) else {
            preconditionFailure(
                "The services of a virtual peripheral need more than 65,535 handles: give it fewer characteristics.")
        }
        return handle
    }

    /// Once every handle is known: who includes and who echoes whom.
    private mutating func resolve(_ given: [VirtualService]) {
        let known = given.filter { ServiceUUID.long($0.uuid) != nil }
        let declared = services.flatMap(\.characteristics)
        for (index, service) in known.enumerated() {
            services[index].includes = service.includes.compactMap { uuid in
                let long = ServiceUUID.long(uuid)
                return services.first { $0.uuid == long }?.handle
            }
            let echoes = service.characteristics.filter { ServiceUUID.long($0.uuid) != nil }.map(\.echo)
            for (place, echo) in echoes.enumerated() {
                guard let echo, let long = ServiceUUID.long(echo) else { continue }
                services[index].characteristics[place].echo = declared.first { $0.uuid == long }?.handle
            }
            for characteristic in services[index].characteristics {
                targets[characteristic.valueHandle]?.characteristic = characteristic
            }
        }
    }

    private mutating func place(
        _ given: VirtualCharacteristic, of service: String, at next: inout Int
    ) -> Characteristic? {
        guard let uuid = ServiceUUID.long(given.uuid) else { return nil }
        var laid = Characteristic(
            handle: Self.handle(next), uuid: uuid, flags: Self.flags(of: given), descriptors: [],
            notifications: given.notifications)
        initialValues[Self.handle(next + 1)] = given.value
        next += 2
        for descriptor in Self.implied(laid.flags, beside: given.descriptors) + given.descriptors {
            guard let uuid = ServiceUUID.long(descriptor.uuid) else { continue }
            let handle = Self.handle(next)
            laid.descriptors.append(Descriptor(handle: handle, uuid: uuid, flags: descriptor.flags))
            initialValues[handle] = descriptor.value
            next += 1
        }
        targets[laid.valueHandle] = Target(service: service, characteristic: laid)
        for descriptor in laid.descriptors {
            targets[descriptor.handle] = Target(service: service, characteristic: laid, descriptor: descriptor)
        }
        return laid
    }

    /// The flags, with the one that follows from others.
    private static func flags(of given: VirtualCharacteristic) -> Set<CharacteristicFlag> {
        given.flags.isDisjoint(with: [.reliableWrite, .writableAuxiliaries])
            ? given.flags : given.flags.union([.extendedProperties])
    }

    /// The descriptors that follow from the flags and were not given.
    private static func implied(
        _ flags: Set<CharacteristicFlag>, beside given: [VirtualDescriptor]
    ) -> [VirtualDescriptor] {
        let uuids = Set(given.compactMap { ServiceUUID.long($0.uuid) })
        var implied: [VirtualDescriptor] = []
        if flags.contains(.extendedProperties), !uuids.contains(extendedProperties) {
            let reliable: UInt8 = flags.contains(.reliableWrite) ? 1 : 0
            let auxiliaries: UInt8 = flags.contains(.writableAuxiliaries) ? 2 : 0
            implied.append(VirtualDescriptor(extendedProperties, value: [reliable | auxiliaries, 0]))
        }
        if !flags.isDisjoint(with: [.notify, .indicate]), !uuids.contains(configuration) {
            implied.append(VirtualDescriptor(configuration, value: [0, 0], flags: [.read, .write]))
        }
        return implied
    }

    // MARK: Looking up

    /// The first characteristic with this UUID, or the one with this handle, be it of its declaration or of its value.
    func characteristic(_ selector: AttributeSelector) -> Characteristic? {
        switch selector {
        case .uuid(let text):
            let long = ServiceUUID.long(text)
            return services.lazy.flatMap(\.characteristics).first { $0.uuid == long }
        case .handle(let handle):
            return services.lazy.flatMap(\.characteristics).first { $0.handle == handle || $0.valueHandle == handle }
        }
    }

    private static func access(name: String?, appearance: UInt16?) -> VirtualService {
        VirtualService(
            genericAccess,
            characteristics: [
                VirtualCharacteristic("2a00", [.read], value: value(ofName: name)),
                VirtualCharacteristic("2a01", [.read], value: value(ofAppearance: appearance)),
            ])
    }

    private static func value(ofName name: String?) -> [UInt8] { Array((name ?? "").utf8) }

    private static func value(ofAppearance appearance: UInt16?) -> [UInt8] {
        let look = appearance ?? 0
        return [UInt8(look & 0xFF), UInt8(look >> 8)]
    }

    private static let attribute = VirtualService(
        genericAttribute, characteristics: [VirtualCharacteristic("2a05", [.indicate], value: [1, 0, 0xFF, 0xFF])])

    static let genericAccess = short("1800")
    static let genericAttribute = short("1801")
    static let configuration = short("2902")
    static let extendedProperties = short("2900")
    static let deviceName = short("2a00")

    private static func short(_ digits: String) -> String { "0000\(digits)-0000-1000-8000-00805f9b34fb" }
}

extension AttributeTable.Characteristic {
    /// Whether one can subscribe to it.
    var canNotify: Bool { flags.contains(.notify) || flags.contains(.indicate) }

    /// The handle of the descriptor that subscriptions are written to.
    var configurationHandle: UInt16? {
        descriptors.first { $0.uuid == AttributeTable.configuration }?.handle
    }
}

/// Names a characteristic of a peripheral: by its UUID, short or long, or by its handle where a UUID is there twice.
public enum AttributeSelector: Hashable, Sendable {
    case uuid(String)
    /// The handle of the declaration, the number in `…/char002a`, or of the value.
    case handle(UInt16)
}

extension AttributeSelector: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    public init(stringLiteral uuid: String) { self = .uuid(uuid) }
    public init(integerLiteral handle: UInt16) { self = .handle(handle) }
}
