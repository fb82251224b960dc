import BlueCapDBus

/// A D-Bus value: an argument, a property, or an element of either.
///
/// Optional properties that are absent are nil, never a case of their own.
enum BusValue: Hashable, Sendable {
    case string(String)
    case objectPath(String)
    case bool(Bool)
    case byte(UInt8)
    case int16(Int16)
    case uint16(UInt16)
    case uint32(UInt32)
    case bytes([UInt8])
    case strings([String])
    case objectPaths([String])
    /// A dictionary in the order of the message, with the signature of its values. Variants are here without their `v`.
    case dictionary(key: String, value: String = "v", [Entry])
    indirect case variant(BusValue)
    /// A value of a type that no interface of BlueZ has. It can be read, and not written.
    case other(signature: String)

    struct Entry: Hashable, Sendable {
        var key: BusValue
        var value: BusValue
    }

    /// Returns an `a{sv}`.
    static func options(_ values: [NamedValue]) -> BusValue {
        .dictionary(key: "s", values.map { Entry(key: .string($0.name), value: $0.value) })
    }

    /// Returns the `a{sa{sv}}` of an object's interfaces.
    static func interfaces(_ interfaces: [InterfaceState]) -> BusValue {
        .dictionary(
            key: "s", value: "a{sv}",
            interfaces.map { Entry(key: .string($0.name), value: .options($0.properties)) })
    }

    /// Returns the `a{oa{sa{sv}}}` that `GetManagedObjects` returns.
    static func objects(_ objects: [ObjectState]) -> BusValue {
        .dictionary(
            key: "o", value: "a{sa{sv}}",
            objects.map { Entry(key: .objectPath($0.path), value: .interfaces($0.interfaces)) })
    }

    /// Returns the dictionary of a device's fields, such as the `a{qv}` of `ManufacturerData`; nil if there are none.
    static func fields<Key>(_ list: [AdvertisingField<Key>], _ key: (Key) -> BusValue) -> BusValue? {
        guard let first = list.first else { return nil }
        return .dictionary(
            key: key(first.key).signature, list.map { Entry(key: key($0.key), value: .bytes($0.bytes)) })
    }

    var signature: String {
        switch self {
        case .string: "s"
        case .objectPath: "o"
        case .bool: "b"
        case .byte: "y"
        case .int16: "n"
        case .uint16: "q"
        case .uint32: "u"
        case .bytes: "ay"
        case .strings: "as"
        case .objectPaths: "ao"
        case .dictionary(let key, let value, _): "a{" + key + value + "}"
        case .variant: "v"
        case .other(let signature): signature
        }
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var path: String? { if case .objectPath(let path) = self { path } else { nil } }
    var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    var number: UInt16? { if case .uint16(let number) = self { number } else { nil } }
    var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
    var strings: [String]? { if case .strings(let list) = self { list } else { nil } }

    /// Whether it is an array of any type; a dictionary is one too.
    var isArray: Bool { signature.hasPrefix("a") }

    /// The entries of an `a{sv}`; empty for any other value.
    var options: [NamedValue] {
        guard case .dictionary(_, _, let entries) = self else { return [] }
        return entries.compactMap { entry in entry.key.text.map { NamedValue(name: $0, value: entry.value) } }
    }

    /// The objects that `GetManagedObjects` returns; nil for any other value.
    var objects: [ObjectState]? {
        guard case .dictionary(_, _, let entries) = self else { return nil }
        return entries.compactMap { object in
            guard let path = object.key.path else { return nil }
            let interfaces = object.value.options.map { InterfaceState(name: $0.name, properties: $0.value.options) }
            return ObjectState(path: path, interfaces: interfaces)
        }
    }
}

/// A property or an option with its name.
struct NamedValue: Hashable, Sendable {
    var name: String
    var value: BusValue
}

extension [NamedValue] {
    /// The value with a name; the last one if a message repeats the name.
    subscript(name: String) -> BusValue? { last { $0.name == name }?.value }
}

extension MessageReader {
    /// Reads the next value, of whatever type.
    mutating func value() -> BusValue? {
        switch type {
        case .string: return string().map(BusValue.string)
        case .objectPath: return objectPath().map { .objectPath($0.rawValue) }
        case .bool: return bool().map(BusValue.bool)
        case .byte: return byte().map(BusValue.byte)
        case .int16: return int16().map(BusValue.int16)
        case .uint16: return uint16().map(BusValue.uint16)
        case .uint32: return uint32().map(BusValue.uint32)
        case .variant: return variant { $0.value() }.map(BusValue.variant)
        case .end: return nil
        default: break
        }
        if let list = bytes() { return .bytes(list) }
        if let list = strings() { return .strings(list) }
        if let list = objectPaths() { return .objectPaths(list.map(\.rawValue)) }
        let signature = signature
        if elementType == .dictionaryEntry {
            var entries: [BusValue.Entry] = []
            dictionary { entry in
                guard let key = entry.value(), var value = entry.value() else { return }
                if case .variant(let inner) = value { value = inner }
                entries.append(BusValue.Entry(key: key, value: value))
            }
            return .dictionary(
                key: String(signature.dropFirst(2).prefix(1)), value: String(signature.dropFirst(3).dropLast()), entries
            )
        }
        skip()
        return .other(signature: signature)
    }
}

extension MessageWriter {
    mutating func value(_ value: BusValue) {
        switch value {
        case .string(let text): string(text)
        case .objectPath(let text): objectPath(ObjectPath(validating: text) ?? .root)
        case .bool(let flag): bool(flag)
        case .byte(let number): byte(number)
        case .int16(let number): int16(number)
        case .uint16(let number): uint16(number)
        case .uint32(let number): uint32(number)
        case .bytes(let list): bytes(list)
        case .strings(let list): strings(list)
        case .objectPaths(let list): objectPaths(list.compactMap(ObjectPath.init(validating:)))
        case .variant(let inner): variant(inner.signature) { $0.value(inner) }
        case .dictionary(let key, let type, let entries):
            dictionary(key: key, value: type) { dictionary in
                for element in entries {
                    dictionary.entry { entry in
                        entry.value(element.key)
                        if type != "v" { return entry.value(element.value) }
                        entry.variant(element.value.signature) { $0.value(element.value) }
                    }
                }
            }
        case .other(let signature):
            preconditionFailure("BusValue.other(\"\(signature)\") only stands for what was read: give it a case.")
        }
    }

    mutating func values(_ values: [BusValue]) {
        for each in values { value(each) }
    }
}
