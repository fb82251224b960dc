public import Foundation

/// A GATT service of a virtual peripheral.
///
/// ```swift
/// let heartRate = VirtualService(
///     "180D",
///     characteristics: [
///         VirtualCharacteristic("2A37", [.notify], notifications: .cycle([[0, 72], [0, 74]], every: 1)),
///         VirtualCharacteristic("2A38", [.read], value: [1]),
///     ])
/// ```
///
/// Handles are given as a peripheral's own server does: in the order of the list, with a descriptor for subscriptions
/// (`2902`) after each characteristic that notifies or indicates. The attributes of one peripheral have 65,535 handles; to
/// add a peripheral that needs more to a simulator is a programming error.
public struct VirtualService: Hashable, Sendable {
    /// Short (`180D`) or long.
    public var uuid: String
    /// False for a service that exists only to be included by others.
    public var isPrimary: Bool
    /// The handle of its declaration; nil for the next free one.
    public var handle: UInt16?
    /// The characteristics, in the order of their handles.
    public var characteristics: [VirtualCharacteristic]
    /// The UUIDs of services of the same peripheral that it includes; unknown ones are ignored.
    public var includes: [String]
    /// Seconds after the services are resolved until BlueZ shows this one, 0 to 1e9: late objects, which some clients miss.
    public var appearsAfter: TimeInterval { didSet { appearsAfter = Limits.seconds.nearest(to: appearsAfter) } }
    /// Whether the UUID of one that appears late is among the device's from the beginning, or only when it appears.
    public var isAnnounced: Bool

    /// Creates a service with these properties.
    public init(
        _ uuid: String, isPrimary: Bool = true, characteristics: [VirtualCharacteristic] = [],
        includes: [String] = [], handle: UInt16? = nil, appearsAfter: TimeInterval = 0,
        isAnnounced: Bool = true
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.characteristics = characteristics
        self.includes = includes
        self.handle = handle
        self.appearsAfter = Limits.seconds.nearest(to: appearsAfter)
        self.isAnnounced = isAnnounced
    }
}

/// A characteristic of a virtual peripheral.
public struct VirtualCharacteristic: Hashable, Sendable {
    /// Short (`2A37`) or long.
    public var uuid: String
    /// What it supports; a request for anything else is refused, as by a peripheral's server.
    public var flags: Set<CharacteristicFlag>
    /// What a read returns, until it is written or notified.
    public var value: [UInt8]
    /// The descriptors, in the order of their handles.
    public var descriptors: [VirtualDescriptor]
    /// What it notifies or indicates unasked while a central is subscribed; nil for nothing.
    public var notifications: NotificationSource?
    /// The UUID of a characteristic of the same peripheral that notifies whatever is written here; nil for none.
    public var echo: String?
    /// The security that its link must have.
    public var security: AttributeSecurity

    /// Creates a characteristic with these properties.
    public init(
        _ uuid: String, _ flags: Set<CharacteristicFlag> = [.read], value: [UInt8] = [],
        descriptors: [VirtualDescriptor] = [], notifications: NotificationSource? = nil, echo: String? = nil,
        security: AttributeSecurity = .none
    ) {
        self.uuid = uuid
        self.flags = flags
        self.value = value
        self.descriptors = descriptors
        self.notifications = notifications
        self.echo = echo
        self.security = security
    }
}

/// A descriptor of a virtual peripheral. Those for subscriptions, `2902`, and for extended properties, `2900`, need not be
/// given.
public struct VirtualDescriptor: Hashable, Sendable {
    /// Short (`2901`) or long.
    public var uuid: String
    /// What a read returns, until it is written.
    public var value: [UInt8]
    /// Whether it can be written, read or both; BlueZ does not report this.
    public var flags: Set<CharacteristicFlag>
    /// The security that its link must have for reading and writing.
    public var security: AttributeSecurity

    /// Creates a descriptor with these properties.
    public init(
        _ uuid: String, value: [UInt8] = [], flags: Set<CharacteristicFlag> = [.read],
        security: AttributeSecurity = .none
    ) {
        self.uuid = uuid
        self.value = value
        self.flags = flags
        self.security = security
    }

    /// A user description (`2901`).
    public static func description(_ text: String) -> VirtualDescriptor {
        VirtualDescriptor("2901", value: Array(text.utf8))
    }
}

/// What a characteristic supports, by BlueZ's names; in the order in which BlueZ lists them.
public enum CharacteristicFlag: String, Hashable, Sendable, Codable, CaseIterable {
    /// The value can be part of advertisements.
    case broadcast
    /// The value can be read.
    case read
    /// The value can be written without response.
    case writeWithoutResponse = "write-without-response"
    /// The value can be written with a response.
    case write
    /// The server sends changes as notifications, which are not confirmed.
    case notify
    /// The server sends changes as indications, which are confirmed.
    case indicate
    /// The value can be written with a signature.
    case authenticatedSignedWrites = "authenticated-signed-writes"
    /// A descriptor has further properties.
    case extendedProperties = "extended-properties"
    /// The value can be written with a queue of prepared writes.
    case reliableWrite = "reliable-write"
    /// The description of the characteristic can be written.
    case writableAuxiliaries = "writable-auxiliaries"

    public init(from decoder: any Decoder) throws { self = try decoder.choice(of: Self.self, by: \.rawValue) }
}

/// What a characteristic sends unasked while a central is subscribed to it.
public enum NotificationSource: Hashable, Sendable {
    /// One value after another, and again from the first, every so many seconds: 0.001 to 1e9, or else the nearest bound.
    case cycle([[UInt8]], every: TimeInterval)
    /// A number that counts from 0 for each subscription, little-endian in `size` bytes (1 to 512, or else the nearest
    /// bound), every so many seconds.
    case counter(size: Int, every: TimeInterval)

    /// Seconds between two values.
    package var interval: TimeInterval {
        switch self {
        case .cycle(_, let interval), .counter(_, let interval):
            Limits.notificationInterval.nearest(to: interval)
        }
    }

    package func value(at index: Int) -> [UInt8] {
        switch self {
        case .cycle(let values, _): values.isEmpty ? [] : values[index % values.count]
        case .counter(let size, _): Self.number(index, size: size)
        }
    }

    /// Returns a number, little-endian, with zeros up to `size` bytes.
    static func number(_ number: Int, size: Int) -> [UInt8] {
        (0..<Limits.counterSize.nearest(to: size)).map { UInt8(truncatingIfNeeded: UInt64(number) >> (8 * $0)) }
    }
}

// MARK: - JSON

/// In JSON only `uuid` is required: `{"uuid": "180d", "isPrimary": true, "handle": 16, "includes": ["180f"],`
/// `"appearsAfter": 0, "characteristics": […]}`.
extension VirtualService: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case uuid, isPrimary, handle, characteristics, includes, appearsAfter, isAnnounced
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            try container.uuid(forKey: .uuid),
            isPrimary: try container.decodeIfPresent(Bool.self, forKey: .isPrimary) ?? true,
            characteristics: try container.decodeIfPresent([VirtualCharacteristic].self, forKey: .characteristics)
                ?? [],
            includes: try container.uuids(forKey: .includes),
            handle: try container.number(Limits.handles, forKey: .handle).map { UInt16($0) },
            appearsAfter: try container.number(Limits.seconds, forKey: .appearsAfter) ?? 0,
            isAnnounced: try container.decodeIfPresent(Bool.self, forKey: .isAnnounced) ?? true)
    }
}

/// In JSON only `uuid` is required: `{"uuid": "2a37", "flags": ["notify"], "value": "0048", "descriptors": […],`
/// `"notifications": {"cycle": ["0048", "004a"], "every": 1}, "echo": "2a38"}`. Values are hexadecimal in `value`, or
/// text in `text`; notifications may count instead, `{"counter": 2, "every": 0.1}`. `"security": {"read": "encrypted"}` is the
/// security that the link must have.
extension VirtualCharacteristic: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case uuid, flags, value, text, descriptors, notifications, echo, security
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init(
            try container.uuid(forKey: .uuid),
            try container.decodeIfPresent(Set<CharacteristicFlag>.self, forKey: .flags) ?? [.read],
            value: try container.text(Limits.valueLength, forKey: .text).map { Array($0.utf8) }
                ?? container.bytes(
                    container.decodeIfPresent(String.self, forKey: .value) ?? "", limit: Limits.valueLength, .value),
            descriptors: try container.decodeIfPresent([VirtualDescriptor].self, forKey: .descriptors) ?? [],
            notifications: try container.decodeIfPresent(NotificationSource.self, forKey: .notifications),
            echo: try container.decodeIfPresent(String.self, forKey: .echo).map { try container.uuid($0, .echo) },
            security: try container.decodeIfPresent(AttributeSecurity.self, forKey: .security) ?? AttributeSecurity())
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(uuid, forKey: .uuid)
        try container.encode(CharacteristicFlag.allCases.filter(flags.contains), forKey: .flags)
        if !value.isEmpty { try container.encode(Hexadecimal.text(value), forKey: .value) }
        if !descriptors.isEmpty { try container.encode(descriptors, forKey: .descriptors) }
        try container.encodeIfPresent(notifications, forKey: .notifications)
        try container.encodeIfPresent(echo, forKey: .echo)
        if security != AttributeSecurity() { try container.encode(security, forKey: .security) }
    }
}

/// In JSON: `{"uuid": "2901", "text": "Control"}`, or `"value"` with hexadecimal bytes: as of a characteristic.
extension VirtualDescriptor: Codable {
    private enum Key: String, CodingKey, CaseIterable { case uuid, flags, value, text, security }

    public init(from decoder: any Decoder) throws {
        _ = try decoder.strictContainer(keyedBy: Key.self)
        let attribute = try VirtualCharacteristic(from: decoder)
        self.init(attribute.uuid, value: attribute.value, flags: attribute.flags, security: attribute.security)
    }

    public func encode(to encoder: any Encoder) throws {
        try VirtualCharacteristic(uuid, flags, value: value, security: security).encode(to: encoder)
    }
}

extension NotificationSource: Codable {
    private enum Key: String, CodingKey, CaseIterable { case cycle, counter, every }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        let interval = try container.required(Limits.notificationInterval, forKey: .every)
        if let size = try container.number(Limits.counterSize, forKey: .counter) {
            self = .counter(size: size, every: interval)
            return
        }
        let texts = try container.decode([String].self, forKey: .cycle)
        guard !texts.isEmpty else { throw container.failure(.cycle, "the list has no value") }
        let values = try texts.enumerated().map { index, text in
            try container.bytes(text, limit: Limits.valueLength, .cycle, [FileKey(intValue: index)])
        }
        self = .cycle(values, every: interval)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(interval, forKey: .every)
        switch self {
        case .cycle(let values, _): try container.encode(values.map(Hexadecimal.text), forKey: .cycle)
        case .counter(let size, _): try container.encode(size, forKey: .counter)
        }
    }
}

extension KeyedDecodingContainer {
    /// Returns the services of a peripheral, for which there must be enough handles; none if the key is not there.
    package func services(forKey key: Key) throws -> [VirtualService] {
        let services = try decodeIfPresent([VirtualService].self, forKey: key) ?? []
        do throws(AttributeDatabase.Overflow) {
            _ = try AttributeDatabase(placing: services)
            return services
        } catch {
            var path: [any CodingKey] = [FileKey(intValue: error.service)]
            if let characteristic = error.characteristic {
                path += [FileKey(stringValue: "characteristics"), FileKey(intValue: characteristic)]
            }
            let text = "no handle is left for it; the attributes of a peripheral have the handles from 1 to 65535"
            throw failure(key, text, at: path)
        }
    }
}
