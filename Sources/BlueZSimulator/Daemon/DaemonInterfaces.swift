/// The daemon's interfaces, each with its methods and the parts that carry them out.
extension InterfaceTable<Daemon> {
    /// Returns the interfaces that a version of BlueZ has, by their names.
    static func all(_ traits: DaemonTraits) -> [String: Self] {
        let tables = [
            agentManager, profileManager, adapter(traits), device(traits),
            Self(name: InterfaceName.bearer, signals: [disconnected]),
            Self(
                name: InterfaceName.battery, properties: [PropertyDescription(name: "Percentage", signature: "y")]),
            batteryProviders,
            Self(
                name: InterfaceName.service, properties: ServiceProperty.descriptions(of: traits.serviceProperties)),
            characteristic(traits),
            Self(
                name: InterfaceName.descriptor, methods: [readValue, writeValue],
                properties: DescriptorProperty.descriptions(of: traits.descriptorProperties)),
            gattManager, advertisingManager(traits), properties, introspectable, objectManager,
        ]
        return Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0) })
    }

    private static var agentManager: Self {
        Self(
            name: InterfaceName.agentManager,
            methods: [
                Method("RegisterAgent", takes: [("agent", "o"), ("capability", "s")]) {
                    try $0.agents.register($1, &$0.core)
                },
                Method("UnregisterAgent", takes: [("agent", "o")]) { try $0.agents.unregister($1, &$0.core) },
                Method("RequestDefaultAgent", takes: [("agent", "o")]) {
                    try $0.agents.requestDefault($1, &$0.core)
                },
            ])
    }

    private static var profileManager: Self {
        Self(
            name: InterfaceName.profileManager,
            methods: [
                Method("RegisterProfile", takes: [("profile", "o"), ("UUID", "s"), ("options", "a{sv}")]) {
                    try $0.agents.registerProfile($1, &$0.core)
                },
                Method("UnregisterProfile", takes: [("profile", "o")]) {
                    try $0.agents.unregisterProfile($1, &$0.core)
                },
            ])
    }

    private static func adapter(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.adapter,
            methods: [
                Method("StartDiscovery") { try $0.discovery.start($1, &$0.core) },
                Method("SetDiscoveryFilter", takes: [("properties", "a{sv}")]) {
                    try $0.discovery.setFilter($1, &$0.core)
                },
                Method("StopDiscovery") { $0.remove(try $0.discovery.stop($1, &$0.core)) },
                Method("RemoveDevice", takes: [("device", "o")]) { try $0.removeDevice($1) },
                Method("GetDiscoveryFilters", gives: [("filters", "as")]) {
                    $0.core.reply($1.id, .strings($0.core.traits.discoveryFilterKeys))
                },
            ], properties: AdapterProperty.descriptions(of: traits.adapterProperties))
    }

    private static func device(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.device,
            methods: [
                Method("Disconnect") { $0.connections.disconnect($1.device, call: $1.id, &$0.core) },
                Method("Connect") { try $0.connections.connect($1.device, call: $1.id, &$0.core) },
                Method("ConnectProfile", takes: [("UUID", "s")]) { _, _ in
                    throw DaemonError.bluez("NotAvailable", "br-connection-profile-unavailable")
                },
                Method("DisconnectProfile", takes: [("UUID", "s")]) { _, _ in throw DaemonError.invalidArguments },
                Method("Pair") { daemon, call in
                    daemon.core.makePermanent(call.device)
                    throw DaemonError.bluez("ConnectionAttemptFailed", "Page Timeout")
                },
                Method("CancelPairing") { _, _ in throw DaemonError.doesNotExist },
            ],
            properties: DeviceProperty.descriptions(of: traits.deviceProperties),
            signals: traits.signalsDisconnections ? [disconnected] : [])
    }

    private static var disconnected: Signal {
        Signal(name: "Disconnected", carries: [("name", "s"), ("message", "s")])
    }

    private static func characteristic(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.characteristic,
            methods: [
                readValue, writeValue,
                Method("AcquireWrite", takes: options, gives: socket) { try $0.client.acquireWrite($1, &$0.core) },
                Method("AcquireNotify", takes: options, gives: socket) { try $0.client.acquireNotify($1, &$0.core) },
                Method("StartNotify") { try $0.client.startNotify($1, &$0.core) },
                Method("StopNotify") { try $0.client.stopNotify($1, &$0.core) },
            ], properties: CharacteristicProperty.descriptions(of: traits.characteristicProperties))
    }

    private static var readValue: Method {
        Method("ReadValue", takes: options, gives: [("value", "ay")]) { try $0.client.readValue($1, &$0.core) }
    }

    private static var writeValue: Method {
        Method("WriteValue", takes: [("value", "ay")] + options) { try $0.client.writeValue($1, &$0.core) }
    }

    private static var options: [Argument] { [("options", "a{sv}")] }
    private static var socket: [Argument] { [("fd", "h"), ("mtu", "q")] }

    private static var batteryProviders: Self {
        Self(
            name: InterfaceName.batteryProviders,
            methods: [
                Method("RegisterBatteryProvider", takes: [("provider", "o")]),
                Method("UnregisterBatteryProvider", takes: [("provider", "o")]),
            ])
    }

    private static var gattManager: Self {
        Self(
            name: InterfaceName.gattManager,
            methods: [
                Method("RegisterApplication", takes: [("application", "o")] + options) {
                    try $0.server.register($1, &$0.core)
                },
                Method("UnregisterApplication", takes: [("application", "o")]) {
                    try $0.server.unregister($1, &$0.core)
                },
            ])
    }

    private static func advertisingManager(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.advertisingManager,
            methods: [
                Method("RegisterAdvertisement", takes: [("advertisement", "o")] + options) {
                    try $0.advertising.register($1, &$0.core)
                },
                Method("UnregisterAdvertisement", takes: [("service", "o")]) {
                    try $0.advertising.unregister($1, &$0.core)
                },
            ], properties: AdvertisingProperty.descriptions(of: traits.advertisingProperties))
    }

    // MARK: Standard interfaces

    private static var properties: Self {
        Self(
            name: InterfaceName.properties,
            methods: [
                Method("Get", takes: [("interface", "s"), ("name", "s")], gives: [("value", "v")]) { daemon, call in
                    let properties = try daemon.properties(of: call.text(0), at: call.path)
                    guard let value = properties[call.text(1)] else {
                        throw DaemonError.invalidArgs("No such property '\(call.text(1))'")
                    }
                    daemon.core.reply(call.id, .variant(value))
                },
                Method("Set", takes: [("interface", "s"), ("name", "s"), ("value", "v")]) {
                    try $0.setProperty($1)
                },
                Method("GetAll", takes: [("interface", "s")], gives: [("properties", "a{sv}")]) { daemon, call in
                    daemon.core.reply(call.id, .options(try daemon.properties(of: call.text(0), at: call.path)))
                },
            ],
            signals: [
                Signal(
                    name: "PropertiesChanged",
                    carries: [
                        ("interface", "s"), ("changed_properties", "a{sv}"), ("invalidated_properties", "as"),
                    ])
            ])
    }

    private static var introspectable: Self {
        Self(
            name: InterfaceName.introspectable,
            methods: [
                Method("Introspect", gives: [("xml", "s")]) {
                    $0.core.reply($1.id, .string($0.introspection(at: $1.path)))
                }
            ])
    }

    private static var objectManager: Self {
        Self(
            name: InterfaceName.objectManager,
            methods: [
                Method("GetManagedObjects", gives: [("objects", "a{oa{sa{sv}}}")]) {
                    $0.core.reply($1.id, .objects($0.core.tree.objects))
                }
            ],
            signals: [
                Signal(name: "InterfacesAdded", carries: [("object", "o"), ("interfaces", "a{sa{sv}}")]),
                Signal(name: "InterfacesRemoved", carries: [("object", "o"), ("interfaces", "as")]),
            ])
    }
}
