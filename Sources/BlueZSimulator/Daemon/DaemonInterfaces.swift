/// The daemon's interfaces, each with its methods and what carries them out.
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
                    daemon, call throws(DaemonError) in
                    try daemon.registerAgent(
                        at: call.path(0), capability: call.text(1), by: call.client, call: call.id)
                },
                Method("UnregisterAgent", takes: [("agent", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.unregisterAgent(at: call.path(0), by: call.client, call: call.id)
                },
                Method("RequestDefaultAgent", takes: [("agent", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.requestDefaultAgent(at: call.path(0), by: call.client, call: call.id)
                },
            ])
    }

    private static var profileManager: Self {
        Self(
            name: InterfaceName.profileManager,
            methods: [
                Method("RegisterProfile", takes: [("profile", "o"), ("UUID", "s"), ("options", "a{sv}")]) {
                    daemon, call throws(DaemonError) in
                    try daemon.registerProfile(at: call.path(0), uuid: call.text(1), by: call.client, call: call.id)
                },
                Method("UnregisterProfile", takes: [("profile", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.unregisterProfile(at: call.path(0), by: call.client, call: call.id)
                },
            ])
    }

    private static func adapter(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.adapter,
            methods: [
                Method("StartDiscovery") { daemon, call throws(DaemonError) in
                    try daemon.startDiscovery(on: call.adapter, by: call.client, call: call.id)
                },
                Method("SetDiscoveryFilter", takes: [("properties", "a{sv}")]) { daemon, call throws(DaemonError) in
                    try daemon.setDiscoveryFilter(
                        call.options(0).map { ($0.name, FilterValue($0.value)) }, on: call.adapter, by: call.client,
                        call: call.id)
                },
                Method("StopDiscovery") { daemon, call throws(DaemonError) in
                    try daemon.stopDiscovery(on: call.adapter, by: call.client, call: call.id)
                },
                Method("RemoveDevice", takes: [("device", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.removeDevice(at: call.path(0), of: call.adapter, call: call.id)
                },
                Method("GetDiscoveryFilters", gives: [("filters", "as")]) { daemon, call throws(DaemonError) in
                    daemon.reply(call.id, .values([.strings(daemon.traits.discoveryFilterKeys)]))
                },
            ], properties: AdapterProperty.descriptions(of: traits.adapterProperties))
    }

    private static func device(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.device,
            methods: [
                Method("Disconnect") { daemon, call throws(DaemonError) in
                    daemon.disconnect(call.device, call: call.id)
                },
                Method("Connect") { daemon, call throws(DaemonError) in
                    try daemon.connect(call.device, call: call.id)
                },
                Method("ConnectProfile", takes: [("UUID", "s")]) { _, _ throws(DaemonError) in
                    throw .bluez("NotAvailable", "br-connection-profile-unavailable")
                },
                Method("DisconnectProfile", takes: [("UUID", "s")]) { _, _ throws(DaemonError) in
                    throw .invalidArguments
                },
                Method("Pair") { daemon, call throws(DaemonError) in try daemon.pair(call.device) },
                Method("CancelPairing") { _, _ throws(DaemonError) in throw .doesNotExist },
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
                Method("AcquireWrite", takes: options, gives: socket) { daemon, call throws(DaemonError) in
                    try daemon.acquireWrite(call.attribute, call: call.id)
                },
                Method("AcquireNotify", takes: options, gives: socket) { daemon, call throws(DaemonError) in
                    try daemon.acquireNotify(call.attribute, by: call.client, call: call.id)
                },
                Method("StartNotify") { daemon, call throws(DaemonError) in
                    try daemon.startNotify(call.attribute, by: call.client, call: call.id)
                },
                Method("StopNotify") { daemon, call throws(DaemonError) in
                    try daemon.stopNotify(call.attribute, by: call.client, call: call.id)
                },
            ], properties: CharacteristicProperty.descriptions(of: traits.characteristicProperties))
    }

    private static var readValue: Method {
        Method("ReadValue", takes: options, gives: [("value", "ay")]) { daemon, call throws(DaemonError) in
            try daemon.readValue(call.attribute, offset: Int(call.options(0)["offset"]?.number ?? 0), call: call.id)
        }
    }

    private static var writeValue: Method {
        Method("WriteValue", takes: [("value", "ay")] + options) { daemon, call throws(DaemonError) in
            guard case .bytes(let bytes) = call.arguments[0] else { throw .invalidArguments }
            try daemon.writeValue(
                call.attribute, bytes, offset: Int(call.options(1)["offset"]?.number ?? 0),
                type: call.options(1)["type"]?.text, call: call.id)
        }
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
                    daemon, call throws(DaemonError) in
                    try daemon.registerApplication(at: call.path(0), on: call.adapter, by: call.client, call: call.id)
                },
                Method("UnregisterApplication", takes: [("application", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.unregisterApplication(
                        at: call.path(0), on: call.adapter, by: call.client, call: call.id)
                },
            ])
    }

    private static func advertisingManager(_ traits: DaemonTraits) -> Self {
        Self(
            name: InterfaceName.advertisingManager,
            methods: [
                Method("RegisterAdvertisement", takes: [("advertisement", "o")] + options) {
                    daemon, call throws(DaemonError) in
                    try daemon.registerAdvertisement(
                        at: call.path(0), on: call.adapter, by: call.client, call: call.id)
                },
                Method("UnregisterAdvertisement", takes: [("service", "o")]) { daemon, call throws(DaemonError) in
                    try daemon.unregisterAdvertisement(
                        at: call.path(0), on: call.adapter, by: call.client, call: call.id)
                },
            ], properties: AdvertisingProperty.descriptions(of: traits.advertisingProperties))
    }

    // MARK: Standard interfaces

    private static var properties: Self {
        Self(
            name: InterfaceName.properties,
            methods: [
                Method("Get", takes: [("interface", "s"), ("name", "s")], gives: [("value", "v")]) {
                    daemon, call throws(DaemonError) in
                    let properties = try daemon.properties(of: call.text(0), at: call.path)
                    guard let value = properties[call.text(1)] else {
                        throw .invalidArgs("No such property '\(call.text(1))'")
                    }
                    daemon.reply(call.id, .values([.variant(value)]))
                },
                Method("Set", takes: [("interface", "s"), ("name", "s"), ("value", "v")]) {
                    daemon, call throws(DaemonError) in
                    guard case .variant(let value) = call.arguments[2] else { throw .invalidArguments }
                    try daemon.setProperty(call.text(1), of: call.text(0), to: value, call)
                },
                Method("GetAll", takes: [("interface", "s")], gives: [("properties", "a{sv}")]) {
                    daemon, call throws(DaemonError) in
                    let properties = try daemon.properties(of: call.text(0), at: call.path)
                    daemon.reply(call.id, .values([.options(properties)]))
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
                Method("Introspect", gives: [("xml", "s")]) { daemon, call throws(DaemonError) in
                    daemon.reply(call.id, .values([.string(daemon.introspection(at: call.path))]))
                }
            ])
    }

    private static var objectManager: Self {
        Self(
            name: InterfaceName.objectManager,
            methods: [
                Method("GetManagedObjects", gives: [("objects", "a{oa{sa{sv}}}")]) {
                    daemon, call throws(DaemonError) in
                    daemon.reply(call.id, .objects(daemon.objects))
                }
            ],
            signals: [
                Signal(name: "InterfacesAdded", carries: [("object", "o"), ("interfaces", "a{sa{sv}}")]),
                Signal(name: "InterfacesRemoved", carries: [("object", "o"), ("interfaces", "as")]),
            ])
    }
}
