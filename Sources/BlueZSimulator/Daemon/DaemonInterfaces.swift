/// The daemon's interfaces, each with its methods and the parts that carry them out.
extension InterfaceTable<Daemon> {
    /// Returns the interfaces that a version of BlueZ has, by their names.
    static func all(_ properties: PropertyTables, _ traits: DaemonTraits) -> [String: Self] {
        let disconnected: KeyValuePairs = ["Disconnected": "name:s message:s"]
        let tables = [
            Self(name: InterfaceName.agentManager, methods: agentMethods),
            Self(name: InterfaceName.profileManager, methods: profileMethods),
            Self(name: InterfaceName.adapter, methods: adapterMethods, properties: properties.adapter.xml),
            Self(
                name: InterfaceName.device, methods: deviceMethods, properties: properties.device.xml,
                signals: traits.signalsDisconnections ? disconnected : [:]),
            Self(name: InterfaceName.bearer, signals: disconnected),
            Self(name: InterfaceName.battery, properties: Property("Percentage", "y", BusValue.byte).xml),
            Self(
                name: InterfaceName.batteryProviders,
                methods: [
                    Method("RegisterBatteryProvider", "provider:o"), Method("UnregisterBatteryProvider", "provider:o"),
                ]),
            Self(name: InterfaceName.service, properties: properties.service.xml),
            Self(
                name: InterfaceName.characteristic, methods: valueMethods + characteristicMethods,
                properties: properties.characteristic.xml),
            Self(name: InterfaceName.descriptor, methods: valueMethods, properties: properties.descriptor.xml),
            Self(name: InterfaceName.gattManager, methods: applicationMethods),
            Self(
                name: InterfaceName.advertisingManager, methods: advertisementMethods,
                properties: properties.advertisingManager.xml),
            Self(
                name: InterfaceName.properties, methods: propertyMethods,
                signals: ["PropertiesChanged": "interface:s changed_properties:a{sv} invalidated_properties:as"]),
            Self(
                name: InterfaceName.introspectable,
                methods: [
                    Method("Introspect", gives: "xml:s") {
                        $0.core.reply($1.id, .string($0.introspection(at: $1.path)))
                    }
                ]),
            Self(
                name: InterfaceName.objectManager,
                methods: [
                    Method("GetManagedObjects", gives: "objects:a{oa{sa{sv}}}") {
                        $0.core.reply($1.id, .objects($0.core.tree.objects))
                    }
                ],
                signals: [
                    "InterfacesAdded": "object:o interfaces:a{sa{sv}}", "InterfacesRemoved": "object:o interfaces:as",
                ]),
        ]
        return Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0) })
    }
}

private typealias Method = InterfaceTable<Daemon>.Method

private let agentMethods: [Method] = [
    Method("RegisterAgent", "agent:o capability:s") { try $0.connections.agents.register($1, &$0.core) },
    Method("UnregisterAgent", "agent:o") { try $0.connections.agents.unregister($1, &$0.core) },
    Method("RequestDefaultAgent", "agent:o") { try $0.connections.agents.requestDefault($1, &$0.core) },
]

private let profileMethods: [Method] = [
    Method("RegisterProfile", "profile:o UUID:s options:a{sv}") {
        try $0.connections.agents.registerProfile($1, &$0.core)
    },
    Method("UnregisterProfile", "profile:o") { try $0.connections.agents.unregisterProfile($1, &$0.core) },
]

private let adapterMethods: [Method] = [
    Method("StartDiscovery") { try $0.discovery.start($1, &$0.core) },
    Method("SetDiscoveryFilter", "properties:a{sv}") { try $0.discovery.setFilter($1, &$0.core) },
    Method("StopDiscovery") { daemon, call in
        for key in try daemon.discovery.stop(call, &daemon.core) { daemon.remove(key) }
    },
    Method("RemoveDevice", "device:o") { try $0.removeDevice($1) },
    Method("GetDiscoveryFilters", gives: "filters:as") {
        $0.core.reply($1.id, .strings($0.core.traits.discoveryFilterKeys))
    },
]

private let deviceMethods: [Method] = [
    Method("Disconnect") { $0.connections.disconnect($1.device, call: $1.id, &$0.core) },
    Method("Connect") { try $0.connections.connect($1.device, call: $1.id, &$0.core) },
    Method("ConnectProfile", "UUID:s") { _, _ in
        throw DaemonError.bluez("NotAvailable", "br-connection-profile-unavailable")
    },
    Method("DisconnectProfile", "UUID:s") { _, _ in throw DaemonError.invalidArguments },
    Method("Pair") { try $0.connections.pair($1.device, call: $1.id, client: $1.client, &$0.core) },
    Method("CancelPairing") { try $0.connections.cancelPairing($1.device, call: $1.id, &$0.core) },
]

private let valueMethods: [Method] = [
    Method("ReadValue", "options:a{sv}", gives: "value:ay") { try $0.client.readValue($1, &$0.core) },
    Method("WriteValue", "value:ay options:a{sv}") { try $0.client.writeValue($1, &$0.core) },
]

private let characteristicMethods: [Method] = [
    Method("AcquireWrite", "options:a{sv}", gives: "fd:h mtu:q") { try $0.client.acquireWrite($1, &$0.core) },
    Method("AcquireNotify", "options:a{sv}", gives: "fd:h mtu:q") { try $0.client.acquireNotify($1, &$0.core) },
    Method("StartNotify") { try $0.client.startNotify($1, &$0.core) },
    Method("StopNotify") { try $0.client.stopNotify($1, &$0.core) },
]

private let applicationMethods: [Method] = [
    Method("RegisterApplication", "application:o options:a{sv}") { try $0.server.applications.register($1, &$0.core) },
    Method("UnregisterApplication", "application:o") { try $0.server.unregister($1, &$0.core) },
]

private let advertisementMethods: [Method] = [
    Method("RegisterAdvertisement", "advertisement:o options:a{sv}") { try $0.advertising.register($1, &$0.core) },
    Method("UnregisterAdvertisement", "service:o") { try $0.advertising.unregister($1, &$0.core) },
]

private let propertyMethods: [Method] = [
    Method("Get", "interface:s name:s", gives: "value:v") { daemon, call in
        let properties = try daemon.properties(of: call.text(0), at: call.path)
        guard let value = properties[call.text(1)] else {
            throw DaemonError.invalidArgs("No such property '\(call.text(1))'")
        }
        daemon.core.reply(call.id, .variant(value))
    },
    Method("Set", "interface:s name:s value:v") { try $0.setProperty($1) },
    Method("GetAll", "interface:s", gives: "properties:a{sv}") { daemon, call in
        daemon.core.reply(call.id, .options(try daemon.properties(of: call.text(0), at: call.path)))
    },
]
