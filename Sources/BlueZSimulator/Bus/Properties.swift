/// A property of an interface: its name, its type, and where its value comes from.
struct Property<Object>: Sendable {
    let name: String
    let signature: String
    let isWritable: Bool
    /// Returns the value; nil if the property does not exist at the moment.
    let value: @Sendable (Object) -> BusValue?

    init(
        _ name: String, _ signature: String, isWritable: Bool = false,
        _ value: @escaping @Sendable (Object) -> BusValue?
    ) {
        self.name = name
        self.signature = signature
        self.isWritable = isWritable
        self.value = value
    }

    /// The property as introspection describes it.
    var xml: String {
        "<property name=\"\(name)\" type=\"\(signature)\" access=\"\(isWritable ? "readwrite" : "read")\"/>"
    }
}

/// The properties of an interface that a version of BlueZ has without `--experimental`, in BlueZ's order.
struct PropertyTable<Object>: Sendable {
    let properties: [Property<Object>]
    private let places: [String: Int]

    init(_ interface: String, _ all: [Property<Object>], _ traits: DaemonTraits) {
        let prefix = interface.dropFirst("org.bluez.".count) + "."
        properties = all.filter { !traits.missingProperties.contains(prefix + $0.name) }
        places = Dictionary(uniqueKeysWithValues: properties.enumerated().map { ($1.name, $0) })
    }

    subscript(name: String) -> Property<Object>? { places[name].map { properties[$0] } }

    /// Returns the values of the properties that exist.
    func values(of object: Object) -> [NamedValue] {
        var values: [NamedValue] = []
        values.reserveCapacity(properties.count)
        for property in properties {
            if let value = property.value(object) { values.append(NamedValue(name: property.name, value: value)) }
        }
        return values
    }

    /// Returns those of the named properties that the version has; the value is nil if the property does not exist.
    func values(of object: Object?, named names: [String]) -> [(name: String, value: BusValue?)] {
        guard let object else { return [] }
        return names.compactMap { name in self[name].map { (name, $0.value(object)) } }
    }

    var xml: String { properties.map(\.xml).joined() }
}
