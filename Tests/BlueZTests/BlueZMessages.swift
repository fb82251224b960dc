import BlueCapDBus

@testable import BlueCapBlueZ

/// A D-Bus value to put into a message of a test.
indirect enum TestValue {
    case string(String)
    case path(ObjectPath)
    case bool(Bool)
    case byte(UInt8)
    case int16(Int16)
    case uint16(UInt16)
    case uint32(UInt32)
    case bytes([UInt8])
    case strings([String])
    case paths([ObjectPath])
    case manufacturerData([(UInt16, [UInt8])])
    case serviceData([(String, [UInt8])])
    case advertisingData([(UInt8, [UInt8])])
    case properties([String: TestValue])

    var signature: String {
        switch self {
        case .string: "s"
        case .path: "o"
        case .bool: "b"
        case .byte: "y"
        case .int16: "n"
        case .uint16: "q"
        case .uint32: "u"
        case .bytes: "ay"
        case .strings: "as"
        case .paths: "ao"
        case .manufacturerData: "a{qv}"
        case .serviceData: "a{sv}"
        case .advertisingData: "a{yv}"
        case .properties: "a{sv}"
        }
    }

    func write(_ writer: inout MessageWriter) {
        switch self {
        case .string(let value): writer.string(value)
        case .path(let value): writer.objectPath(value)
        case .bool(let value): writer.bool(value)
        case .byte(let value): writer.byte(value)
        case .int16(let value): writer.int16(value)
        case .uint16(let value): writer.uint16(value)
        case .uint32(let value): writer.uint32(value)
        case .bytes(let value): writer.bytes(value)
        case .strings(let value): writer.strings(value)
        case .paths(let value): writer.objectPaths(value)
        case .properties(let properties): BlueZMessages.write(properties: properties.map { ($0, $1) }, &writer)
        case .manufacturerData(let entries): Self.write(entries, key: "q", &writer) { $0.uint16($1) }
        case .serviceData(let entries): Self.write(entries, key: "s", &writer) { $0.string($1) }
        case .advertisingData(let entries): Self.write(entries, key: "y", &writer) { $0.byte($1) }
        }
    }

    private static func write<Key>(
        _ entries: [(Key, [UInt8])], key: String, _ writer: inout MessageWriter,
        _ writeKey: (inout MessageWriter, Key) -> Void
    ) {
        writer.dictionary(key: key, value: "v") { dictionary in
            for (key, value) in entries {
                dictionary.entry { entry in
                    writeKey(&entry, key)
                    entry.variant("ay") { $0.bytes(value) }
                }
            }
        }
    }
}

extension ObjectKey {
    static let hci0 = ObjectKey("/org/bluez/hci0")

    /// The key of an adapter or a device.
    init(_ path: ObjectPath) {
        var text = path.rawValue
        guard let key = text.withUTF8({ ObjectKey(path: $0) }) else { preconditionFailure("\(path) has no key") }
        self = key
    }
}

typealias TestProperties = [(String, TestValue)]
typealias TestInterfaces = [(String, TestProperties)]

/// The messages of `bluetoothd`, written by hand.
enum BlueZMessages {
    static func propertiesChanged(
        _ path: ObjectPath, _ interface: String, _ properties: TestProperties, invalidated: [String] = []
    ) -> Message {
        .signal(path: path, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged") { writer in
            writer.string(interface)
            write(properties: properties, &writer)
            writer.strings(invalidated)
        }
    }

    static func interfacesAdded(_ path: ObjectPath, _ interfaces: TestInterfaces) -> Message {
        .signal(path: .root, interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesAdded") { writer in
            writer.objectPath(path)
            write(interfaces, &writer)
        }
    }

    static func interfacesRemoved(_ path: ObjectPath, _ interfaces: [String]) -> Message {
        .signal(path: .root, interface: "org.freedesktop.DBus.ObjectManager", member: "InterfacesRemoved") { writer in
            writer.objectPath(path)
            writer.strings(interfaces)
        }
    }

    /// The body of the answer to `GetManagedObjects`; a signal carries it as well as a reply would.
    static func managedObjects(_ objects: [(ObjectPath, TestInterfaces)]) -> Message {
        .signal(path: .root, interface: "org.example.Test", member: "Objects") { write(objects, &$0) }
    }

    static func write(_ objects: [(ObjectPath, TestInterfaces)], _ writer: inout MessageWriter) {
        writer.dictionary(key: "o", value: "a{sa{sv}}") { dictionary in
            for (path, interfaces) in objects {
                dictionary.entry { entry in
                    entry.objectPath(path)
                    write(interfaces, &entry)
                }
            }
        }
    }

    private static func write(_ interfaces: TestInterfaces, _ writer: inout MessageWriter) {
        writer.dictionary(key: "s", value: "a{sv}") { dictionary in
            for (name, properties) in interfaces {
                dictionary.entry { entry in
                    entry.string(name)
                    write(properties: properties, &entry)
                }
            }
        }
    }

    static func write(properties: TestProperties, _ writer: inout MessageWriter) {
        writer.dictionary(key: "s", value: "v") { dictionary in
            for (name, value) in properties {
                dictionary.entry { entry in
                    entry.string(name)
                    entry.variant(value.signature) { value.write(&$0) }
                }
            }
        }
    }

    // MARK: A small room

    static let adapterPath: ObjectPath = "/org/bluez/hci0"

    static func adapter(powered: Bool = true) -> TestInterfaces {
        [
            ("org.freedesktop.DBus.Introspectable", []),
            (
                "org.bluez.Adapter1",
                [
                    ("Address", .string("00:1A:7D:DA:71:13")), ("AddressType", .string("public")),
                    ("Name", .string("lab")), ("Alias", .string("lab")), ("Class", .uint32(0x1C_010C)),
                    ("Powered", .bool(powered)), ("Discoverable", .bool(false)), ("Discovering", .bool(false)),
                    ("UUIDs", .strings(["00001800-0000-1000-8000-00805f9b34fb"])),
                    ("Roles", .strings(["central", "peripheral"])),
                ]
            ),
            ("org.bluez.GattManager1", []),
            ("org.bluez.LEAdvertisingManager1", [("ActiveInstances", .byte(0))]),
        ]
    }

    /// An adapter as BlueZ 5.`minor` exports it: what its interfaces have at that version, as `src/adapter.c`,
    /// `src/advertising.c` and `src/adv_monitor.c` of its tag list it.
    /// - Parameter modalias: `nil`: as the version makes it.
    static func adapter(
        _ minor: Int, isExperimental: Bool = false, hasExtendedAdvertising: Bool = true, powered: Bool = true,
        modalias: String? = nil
    ) -> TestInterfaces {
        let digits = (minor < 16 ? "0" : "") + String(minor, radix: 16, uppercase: true)
        var properties: TestProperties = [
            ("Address", .string("00:1A:7D:DA:71:13")), ("AddressType", .string("public")),
            ("Name", .string("lab")), ("Alias", .string("lab")), ("Class", .uint32(0x1C_010C)),
            ("Powered", .bool(powered)), ("Discoverable", .bool(false)), ("Pairable", .bool(false)),
            ("Discovering", .bool(false)), ("UUIDs", .strings(["00001800-0000-1000-8000-00805f9b34fb"])),
            ("Modalias", .string(modalias ?? "usb:v1D6Bp0246d05\(digits)")),
            ("Roles", .strings(["central", "peripheral"])),
        ]
        if minor >= 71 { properties += [("Manufacturer", .uint16(2)), ("Version", .byte(11))] }
        if minor >= 73 || isExperimental { properties.append(("PowerState", .string(powered ? "on" : "off"))) }
        if minor >= 79 { properties.append(("Connectable", .bool(false))) }

        var advertising: TestProperties = [
            ("ActiveInstances", .byte(0)), ("SupportedInstances", .byte(5)),
            ("SupportedIncludes", .strings(["tx-power", "appearance", "local-name"])),
        ]
        if hasExtendedAdvertising {
            advertising.append(("SupportedSecondaryChannels", .strings(["1M", "2M", "Coded"])))
        }
        if minor >= 77 || isExperimental {
            let length: UInt8 = hasExtendedAdvertising ? 251 : 31
            advertising += [
                ("SupportedFeatures", .strings(hasExtendedAdvertising ? ["CanSetTxPower"] : [])),
                (
                    "SupportedCapabilities",
                    .properties([
                        "MaxAdvLen": .byte(length), "MaxScnRspLen": .byte(length), "MinTxPower": .int16(-34),
                        "MaxTxPower": .int16(7),
                    ])
                ),
            ]
        }
        var interfaces: TestInterfaces = [
            ("org.bluez.LEAdvertisingManager1", advertising), ("org.bluez.Adapter1", properties),
            ("org.bluez.GattManager1", []),
        ]
        if isExperimental {
            let monitors: TestProperties = [
                ("SupportedMonitorTypes", .strings(["or_patterns"])), ("SupportedFeatures", .strings([])),
            ]
            interfaces.append(("org.bluez.AdvertisementMonitorManager1", monitors))
        }
        return interfaces
    }

    /// The properties that the tree reads of a device that is discovered; the last two are experimental at 5.66.
    static let fullDevice: TestProperties = [
        ("Address", .string("C0:26:DF:12:34:56")), ("AddressType", .string("random")),
        ("Name", .string("Heart of Gold")), ("Alias", .string("Heart of Gold")),
        ("Appearance", .uint16(0x0341)), ("Paired", .bool(true)), ("Bonded", .bool(true)),
        ("Trusted", .bool(true)),
        ("RSSI", .int16(-61)), ("Connected", .bool(true)),
        (
            "UUIDs",
            .strings(["0000180d-0000-1000-8000-00805f9b34fb", "6e400001-b5a3-f393-e0a9-e50e24dcca9e"])
        ), ("Adapter", .path("/org/bluez/hci0")),
        ("ManufacturerData", .manufacturerData([(0x004C, [2, 21, 1]), (0x0499, [])])),
        ("ServiceData", .serviceData([("0000feaa-0000-1000-8000-00805f9b34fb", [0x10, 0xEE])])),
        ("TxPower", .int16(4)), ("ServicesResolved", .bool(true)), ("AdvertisingFlags", .bytes([6])),
        ("AdvertisingData", .advertisingData([(0x2A, [1, 2])])),
    ]
}
