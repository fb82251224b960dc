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
        case .manufacturerData(let list):
            dictionary(key: "q", value: "v") { dictionary in
                for data in list {
                    dictionary.entry { entry in
                        entry.uint16(data.company)
                        entry.variant("ay") { $0.bytes(data.bytes) }
                    }
                }
            }
        case .options(let list): properties(list)
        case .advertisingData(let list):
            dictionary(key: "y", value: "v") { dictionary in
                for data in list {
                    dictionary.entry { entry in
                        entry.byte(data.type)
                        entry.variant("ay") { $0.bytes(data.bytes) }
                    }
                }
            }
        case .serviceData(let list):
            dictionary(key: "s", value: "v") { dictionary in
                for data in list {
                    dictionary.entry { entry in
                        entry.string(data.uuid)
                        entry.variant("ay") { $0.bytes(data.bytes) }
                    }
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
