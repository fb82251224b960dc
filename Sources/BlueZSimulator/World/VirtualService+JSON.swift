import Foundation

/// In JSON only `uuid` is required: `{"uuid": "180d", "isPrimary": true, "handle": 16, "includes": ["180f"],`
/// `"appearsAfter": 0, "characteristics": […]}`.
extension VirtualService: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case uuid, isPrimary, handle, characteristics, includes, appearsAfter, isAnnounced
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
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

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(uuid, forKey: .uuid)
        if !isPrimary { try container.encode(isPrimary, forKey: .isPrimary) }
        try container.encodeIfPresent(handle, forKey: .handle)
        if !characteristics.isEmpty { try container.encode(characteristics, forKey: .characteristics) }
        if !includes.isEmpty { try container.encode(includes, forKey: .includes) }
        if appearsAfter != 0 { try container.encode(appearsAfter, forKey: .appearsAfter) }
        if !isAnnounced { try container.encode(isAnnounced, forKey: .isAnnounced) }
    }
}

/// In JSON only `uuid` is required: `{"uuid": "2a37", "flags": ["notify"], "value": "0048", "descriptors": […],`
/// `"notifications": {"cycle": ["0048", "004a"], "every": 1}, "echo": "2a38"}`. Values are hexadecimal in `value`, or
/// text in `text`; notifications may count instead, `{"counter": 2, "every": 0.1}`.
extension VirtualCharacteristic: Codable {
    private enum Key: String, CodingKey, CaseIterable {
        case uuid, flags, value, text, descriptors, notifications, echo
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init(
            try container.uuid(forKey: .uuid),
            try container.decodeIfPresent(Set<CharacteristicFlag>.self, forKey: .flags) ?? [.read],
            value: try container.decodeBytes(forKey: .value, orText: .text),
            descriptors: try container.decodeIfPresent([VirtualDescriptor].self, forKey: .descriptors) ?? [],
            notifications: try container.decodeIfPresent(NotificationSource.self, forKey: .notifications),
            echo: try container.uuidIfPresent(forKey: .echo))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(uuid, forKey: .uuid)
        try container.encode(CharacteristicFlag.allCases.filter(flags.contains), forKey: .flags)
        if !value.isEmpty { try container.encode(Hexadecimal.text(value), forKey: .value) }
        if !descriptors.isEmpty { try container.encode(descriptors, forKey: .descriptors) }
        try container.encodeIfPresent(notifications, forKey: .notifications)
        try container.encodeIfPresent(echo, forKey: .echo)
    }
}

/// In JSON: `{"uuid": "2901", "text": "Control"}`, or `"value"` with hexadecimal bytes.
extension VirtualDescriptor: Codable {
    private enum Key: String, CodingKey, CaseIterable { case uuid, flags, value, text }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init(
            try container.uuid(forKey: .uuid),
            value: try container.decodeBytes(forKey: .value, orText: .text),
            flags: try container.decodeIfPresent(Set<CharacteristicFlag>.self, forKey: .flags) ?? [.read])
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(uuid, forKey: .uuid)
        if !value.isEmpty { try container.encode(Hexadecimal.text(value), forKey: .value) }
        if flags != [.read] {
            try container.encode(CharacteristicFlag.allCases.filter(flags.contains), forKey: .flags)
        }
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
        switch self {
        case .cycle(let values, let interval):
            try container.encode(values.map(Hexadecimal.text), forKey: .cycle)
            try container.encode(interval, forKey: .every)
        case .counter(let size, let interval):
            try container.encode(size, forKey: .counter)
            try container.encode(interval, forKey: .every)
        }
    }
}

extension CharacteristicFlag {
    public init(from decoder: any Decoder) throws { self = try decoder.choice(of: Self.self) }
}

extension KeyedDecodingContainer {
    /// Returns the services of a peripheral, for which there must be enough handles; none if the key is not there.
    package func services(forKey key: Key) throws -> [VirtualService] {
        let services = try decodeIfPresent([VirtualService].self, forKey: key) ?? []
        guard let place = AttributeDatabase.overflow(of: services) else { return services }
        var path: [any CodingKey] = [FileKey(intValue: place.service)]
        if let characteristic = place.characteristic {
            path += [FileKey(stringValue: "characteristics"), FileKey(intValue: characteristic)]
        }
        throw failure(
            key, "no handle is left for it; the attributes of a peripheral have the handles from 1 to 65535", at: path)
    }

    /// Returns a value's bytes, from hexadecimal digits or from a text.
    fileprivate func decodeBytes(forKey key: Key, orText textKey: Key) throws -> [UInt8] {
        if let text = try text(Limits.valueLength, forKey: textKey) { return Array(text.utf8) }
        return try bytes(try decodeIfPresent(String.self, forKey: key) ?? "", limit: Limits.valueLength, key)
    }
}
