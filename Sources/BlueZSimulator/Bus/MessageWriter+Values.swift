import DBus

extension MessageWriter {
    /// A property's value or an argument.
    mutating func value(_ value: PropertyValue) {
        switch value {
        case .string(let text): string(text)
        case .objectPath(let text): objectPath(ObjectPath(validating: text) ?? .root)
        case .bool(let flag): bool(flag)
        case .byte(let number): byte(number)
        case .int16(let number): int16(number)
        case .uint16(let number): uint16(number)
        case .uint32(let number): uint32(number)
        case .strings(let list): strings(list)
        case .objectPaths(let list): objectPaths(list.compactMap(ObjectPath.init(validating:)))
        case .bytes(let list): bytes(list)
        case .manufacturerData(let list): byteArrays(key: "q", list, bytes: \.bytes) { $0.uint16($1.company) }
        case .options(let list): properties(list)
        case .advertisingData(let list): byteArrays(key: "y", list, bytes: \.bytes) { $0.byte($1.type) }
        case .serviceData(let list): byteArrays(key: "s", list, bytes: \.bytes) { $0.string($1.uuid) }
        }
    }

    /// A dictionary of variants with `ay` inside.
    private mutating func byteArrays<Element>(
        key: String, _ list: [Element], bytes: (Element) -> [UInt8], writeKey: (inout MessageWriter, Element) -> Void
    ) {
        dictionary(key: key, value: "v") { dictionary in
            for element in list {
                dictionary.entry { entry in
                    writeKey(&entry, element)
                    entry.variant("ay") { $0.bytes(bytes(element)) }
                }
            }
        }
    }

    /// `a{sv}`.
    mutating func properties(_ properties: [NamedValue]) {
        dictionary(key: "s", value: "v") { dictionary in
            for property in properties {
                dictionary.entry { entry in
                    entry.string(property.name)
                    entry.variant(property.value.signature) { $0.value(property.value) }
                }
            }
        }
    }

    /// `a{sa{sv}}`.
    mutating func interfaces(_ interfaces: [InterfaceState]) {
        dictionary(key: "s", value: "a{sv}") { dictionary in
            for interface in interfaces {
                dictionary.entry { entry in
                    entry.string(interface.name)
                    entry.properties(interface.properties)
                }
            }
        }
    }

    /// `a{oa{sa{sv}}}`.
    mutating func objects(_ objects: [Daemon.ObjectState]) {
        dictionary(key: "o", value: "a{sa{sv}}") { dictionary in
            for object in objects {
                dictionary.entry { entry in
                    entry.objectPath(ObjectPath(validating: object.path) ?? .root)
                    entry.interfaces(object.interfaces)
                }
            }
        }
    }
}
