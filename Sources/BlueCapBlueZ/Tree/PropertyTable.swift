import BlueCapDBus

/// One D-Bus property of an interface: its name, its type, and how its value is stored.
package struct Property<Owner>: Sendable {
    package let name: StaticString
    /// Its bit in the interface's set of fields.
    package let field: UInt32
    /// The type according to BlueZ's documentation.
    package let signature: StaticString
    /// Whether BlueZ leaves it out when it has no value.
    package let isOptional: Bool
    /// Stores the value. Returns false and changes nothing if it has another type.
    let read: @Sendable (inout MessageReader, inout Owner) -> Bool
    /// Removes the value.
    let clear: @Sendable (inout Owner) -> Void
}

/// A value with properties in a ``PropertyTable``.
protocol PropertyOwner: Sendable {
    associatedtype Fields: OptionSet & Sendable where Fields.RawValue == UInt32
    /// The properties that have a value.
    var fields: Fields { get set }
    /// The Boolean properties that are true.
    var truths: Fields { get set }
}

extension PropertyOwner {
    /// Reads all properties of a new value: the reader is at an `a{sv}`.
    mutating func read(_ reader: inout MessageReader, _ table: PropertyTable<Self>) {
        fields = Fields(rawValue: table.read(&reader, into: &self))
    }

    /// Applies a `PropertiesChanged`: the reader is at its `a{sv}`, which the `as` of removed properties follows.
    /// - Returns: The properties that have a new value, and those with the removed ones.
    mutating func change(
        _ reader: inout MessageReader, _ table: PropertyTable<Self>
    ) -> (set: Fields, all: Fields) {
        let set = Fields(rawValue: table.read(&reader, into: &self))
        let cleared = Fields(rawValue: table.clear(&reader, in: &self))
        fields.formUnion(set)
        fields.subtract(cleared)
        return (set, set.union(cleared))
    }
}

extension Property where Owner: PropertyOwner {
    static func value(
        _ name: StaticString, _ field: Owner.Fields, _ signature: StaticString, isOptional: Bool = false,
        read: @escaping @Sendable (inout MessageReader, inout Owner) -> Bool,
        clear: @escaping @Sendable (inout Owner) -> Void = { _ in }
    ) -> Property {
        Property(
            name: name, field: field.rawValue, signature: signature, isOptional: isOptional, read: read, clear: clear)
    }

    /// A Boolean property, stored in the owner's `truths`.
    static func flag(_ name: StaticString, _ field: Owner.Fields, isOptional: Bool = false) -> Property {
        value(
            name, field, "b", isOptional: isOptional,
            read: {
                guard let isTrue = $0.bool() else { return false }
                if isTrue { $1.truths.formUnion(field) } else { $1.truths.subtract(field) }
                return true
            }, clear: { $0.truths.subtract(field) })
    }
}

/// The properties of one interface, each declared once, found by name without making a `String`.
package struct PropertyTable<Owner>: Sendable {
    package let interface: StaticString
    package let properties: [Property<Owner>]
    private let names: [StaticString]

    /// - Parameter properties: Those that change most often first, since they are found first.
    init(_ interface: StaticString, _ properties: [Property<Owner>]) {
        self.interface = interface
        self.properties = properties
        names = properties.map(\.name)
    }

    /// The property of this name; `nil` for one that this library does not use.
    package func index(of name: UnsafeBufferPointer<UInt8>) -> Int? { names.firstIndex { name.equals($0) } }

    /// Reads the values of an `a{sv}`. A property of an unexpected type is skipped.
    /// - Returns: The fields that were set.
    func read(_ reader: inout MessageReader, into owner: inout Owner) -> UInt32 {
        var fields: UInt32 = 0
        reader.dictionary { entry in
            guard let index = entry.withString({ index(of: $0) }) ?? nil else { return entry.skip() }
            let isRead = entry.variant { value in properties[index].read(&value, &owner) }
            if isRead == true { fields |= properties[index].field }
        }
        return fields
    }

    /// Clears the properties that an `as` lists.
    /// - Returns: Their fields.
    func clear(_ reader: inout MessageReader, in owner: inout Owner) -> UInt32 {
        var fields: UInt32 = 0
        _ = reader.array { element in
            guard let index = element.withString({ index(of: $0) }) ?? nil else { return }
            properties[index].clear(&owner)
            fields |= properties[index].field
        }
        return fields
    }
}
