/// An interface as it is described to those who ask: methods with their arguments, properties with their types.
struct InterfaceTable: Sendable {
    struct Method: Sendable {
        var name: String
        /// Name and signature of each argument.
        var takes: [(name: String, signature: String)] = []
        var gives: [(name: String, signature: String)] = []

        /// What a call's signature must be.
        var signature: String { takes.map(\.signature).joined() }
    }

    struct Property: Sendable {
        var name: String
        var signature: String
        var isWritable = false
    }

    struct Signal: Sendable {
        var name: String
        var carries: [(name: String, signature: String)]
    }

    var name: String
    var methods: [Method] = []
    var properties: [Property] = []
    var signals: [Signal] = []

    /// The method of that name.
    func method(_ name: String) -> Method? { methods.first { $0.name == name } }
}

extension InterfaceTable {
    /// Those of BlueZ's interfaces that the simulator has, and the standard ones beside them, as a version describes them.
    static func all(_ traits: DaemonTraits) -> [String: InterfaceTable] {
        let tables = [
            agentManager, profileManager, adapter(traits), device(traits), bearer, battery, batteryProviders,
            service(traits), characteristic(traits), descriptor(traits), gattManager, advertisingManager(traits),
            properties, introspectable, objectManager,
        ]
        return Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0) })
    }

    private static let agentManager = InterfaceTable(
        name: Daemon.agentManagerInterface,
        methods: [
            Method(name: "RegisterAgent", takes: [("agent", "o"), ("capability", "s")]),
            Method(name: "UnregisterAgent", takes: [("agent", "o")]),
            Method(name: "RequestDefaultAgent", takes: [("agent", "o")]),
        ])

    private static let profileManager = InterfaceTable(
        name: Daemon.profileManagerInterface,
        methods: [
            Method(name: "RegisterProfile", takes: [("profile", "o"), ("UUID", "s"), ("options", "a{sv}")]),
            Method(name: "UnregisterProfile", takes: [("profile", "o")]),
        ])

    private static func adapter(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.adapterInterface,
            methods: [
                Method(name: "StartDiscovery"),
                Method(name: "SetDiscoveryFilter", takes: [("properties", "a{sv}")]),
                Method(name: "StopDiscovery"),
                Method(name: "RemoveDevice", takes: [("device", "o")]),
                Method(name: "GetDiscoveryFilters", gives: [("filters", "as")]),
            ],
            properties: AdapterProperty.allCases.filter(traits.adapterProperties.contains).map { property in
                let value = Adapter(VirtualAdapter(), version: .default).value(of: property)
                return Property(name: property.rawValue, signature: value.signature, isWritable: property.isWritable)
            })
    }

    private static func device(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.deviceInterface,
            methods: [
                Method(name: "Disconnect"), Method(name: "Connect"),
                Method(name: "ConnectProfile", takes: [("UUID", "s")]),
                Method(name: "DisconnectProfile", takes: [("UUID", "s")]),
                Method(name: "Pair"), Method(name: "CancelPairing"),
            ],
            properties: DeviceProperty.allCases.filter(traits.deviceProperties.contains).map { property in
                Property(name: property.rawValue, signature: property.signature, isWritable: property.isWritable)
            },
            signals: traits.signalsDisconnections ? [disconnected] : [])
    }

    private static let bearer = InterfaceTable(name: Daemon.bearerInterface, signals: [disconnected])

    private static let disconnected = Signal(name: "Disconnected", carries: [("name", "s"), ("message", "s")])

    private static let batteryProviders = InterfaceTable(
        name: Daemon.batteryProvidersInterface,
        methods: [
            Method(name: "RegisterBatteryProvider", takes: [("provider", "o")]),
            Method(name: "UnregisterBatteryProvider", takes: [("provider", "o")]),
        ])

    private static let gattManager = InterfaceTable(
        name: Daemon.gattManagerInterface,
        methods: [
            Method(name: "RegisterApplication", takes: [("application", "o"), ("options", "a{sv}")]),
            Method(name: "UnregisterApplication", takes: [("application", "o")]),
        ])

    private static func advertisingManager(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.advertisingManagerInterface,
            methods: [
                Method(name: "RegisterAdvertisement", takes: [("advertisement", "o"), ("options", "a{sv}")]),
                Method(name: "UnregisterAdvertisement", takes: [("service", "o")]),
            ],
            properties: AdvertisingProperty.allCases.filter(traits.advertisingProperties.contains).map {
                Property(name: $0.rawValue, signature: $0.signature)
            })
    }

    private static let properties = InterfaceTable(
        name: "org.freedesktop.DBus.Properties",
        methods: [
            Method(name: "Get", takes: [("interface", "s"), ("name", "s")], gives: [("value", "v")]),
            Method(name: "Set", takes: [("interface", "s"), ("name", "s"), ("value", "v")]),
            Method(name: "GetAll", takes: [("interface", "s")], gives: [("properties", "a{sv}")]),
        ],
        signals: [
            Signal(
                name: "PropertiesChanged",
                carries: [
                    ("interface", "s"), ("changed_properties", "a{sv}"), ("invalidated_properties", "as"),
                ])
        ])

    private static let introspectable = InterfaceTable(
        name: "org.freedesktop.DBus.Introspectable",
        methods: [Method(name: "Introspect", gives: [("xml", "s")])])

    private static let objectManager = InterfaceTable(
        name: "org.freedesktop.DBus.ObjectManager",
        methods: [Method(name: "GetManagedObjects", gives: [("objects", "a{oa{sa{sv}}}")])],
        signals: [
            Signal(name: "InterfacesAdded", carries: [("object", "o"), ("interfaces", "a{sa{sv}}")]),
            Signal(name: "InterfacesRemoved", carries: [("object", "o"), ("interfaces", "as")]),
        ])
}

extension DeviceProperty {
    /// The property's type.
    var signature: String {
        switch self {
        case .address, .addressType, .name, .alias, .icon: "s"
        case .appearance: "q"
        case .paired, .bonded, .trusted, .blocked, .legacyPairing, .cablePairing, .connected, .servicesResolved: "b"
        case .rssi, .txPower: "n"
        case .uuids: "as"
        case .adapter: "o"
        case .manufacturerData: "a{qv}"
        case .serviceData: "a{sv}"
        case .advertisingFlags: "ay"
        case .advertisingData: "a{yv}"
        }
    }
}
