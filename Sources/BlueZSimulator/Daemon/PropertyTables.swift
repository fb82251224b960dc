/// The properties of the daemon's interfaces in a version of BlueZ.
struct PropertyTables: Sendable {
    let adapter: PropertyTable<Adapter>
    let advertisingManager: PropertyTable<Adapter>
    let device: PropertyTable<Device>
    let service: PropertyTable<(service: AttributeDatabase.Service, devicePath: String)>
    let characteristic: PropertyTable<(characteristic: AttributeDatabase.Characteristic, servicePath: String)>
    let descriptor: PropertyTable<(descriptor: AttributeDatabase.Descriptor, characteristicPath: String)>

    init(_ traits: DaemonTraits) {
        adapter = PropertyTable(InterfaceName.adapter, Property<Adapter>.all, traits)
        advertisingManager = PropertyTable(InterfaceName.advertisingManager, Property<Adapter>.advertising, traits)
        device = PropertyTable(InterfaceName.device, Property<Device>.all, traits)
        service = PropertyTable(
            InterfaceName.service,
            [
                Property("Handle", "q") { .uint16($0.service.handle) },
                Property("UUID", "s") { .string($0.service.uuid) },
                Property("Device", "o") { .objectPath($0.devicePath) },
                Property("Primary", "b") { .bool($0.service.isPrimary) },
                Property("Includes", "ao") { object in
                    .objectPaths(object.service.includes.map { RemoteTable.path(of: $0, in: object.devicePath) })
                },
            ], traits)
        characteristic = PropertyTable(
            InterfaceName.characteristic,
            [
                Property("Handle", "q") { .uint16($0.characteristic.handle) },
                Property("UUID", "s") { .string($0.characteristic.uuid) },
                Property("Service", "o") { .objectPath($0.servicePath) },
                Property("Value", "ay") { _ in .bytes([]) },
                Property("Notifying", "b") { $0.characteristic.canNotify ? .bool(false) : nil },
                Property("Flags", "as") { object in
                    .strings(CharacteristicFlag.allCases.filter(object.characteristic.flags.contains).map(\.rawValue))
                },
                Property("WriteAcquired", "b") {
                    $0.characteristic.flags.contains(.writeWithoutResponse) ? .bool(false) : nil
                },
                Property("NotifyAcquired", "b") { $0.characteristic.flags.contains(.notify) ? .bool(false) : nil },
                // That of the link, while there is one.
                Property("MTU", "q") { _ in nil },
            ], traits)
        descriptor = PropertyTable(
            InterfaceName.descriptor,
            [
                Property("Handle", "q") { .uint16($0.descriptor.handle) },
                Property("UUID", "s") { .string($0.descriptor.uuid) },
                Property("Characteristic", "o") { .objectPath($0.characteristicPath) },
                Property("Value", "ay") { _ in .bytes([]) },
            ], traits)
    }
}

extension Property<Adapter> {
    static let all = [
        address, addressType, name, alias, deviceClass, connectable, powered, powerState, discoverable,
        discoverableTimeout, pairable, pairableTimeout, discovering, uuids, modalias, roles, manufacturer, version,
    ]

    static let address = Self("Address", "s") { .string($0.hardware.address.description) }
    static let addressType = Self("AddressType", "s") { _ in .string("public") }
    static let name = Self("Name", "s") { .string($0.hardware.name) }
    static let alias = Self("Alias", "s", isWritable: true) { .string($0.name) }
    /// That of a laptop; BlueZ forces 0 while the adapter is off.
    static let deviceClass = Self("Class", "u") { adapter in
        .uint32(adapter.isPowered && !adapter.hardware.isLowEnergyOnly ? 0x6C_010C : 0)
    }
    static let connectable = Self("Connectable", "b", isWritable: true) { .bool($0.isConnectable) }
    static let powered = Self("Powered", "b", isWritable: true) { .bool($0.isPowered) }
    static let powerState = Self("PowerState", "s") { .string($0.powerState.rawValue) }
    static let discoverable = Self("Discoverable", "b", isWritable: true) { .bool($0.isDiscoverable) }
    static let discoverableTimeout = Self("DiscoverableTimeout", "u", isWritable: true) {
        .uint32($0.discoverableTimeout)
    }
    static let pairable = Self("Pairable", "b", isWritable: true) { .bool($0.isPairable) }
    static let pairableTimeout = Self("PairableTimeout", "u", isWritable: true) { .uint32($0.pairableTimeout) }
    static let discovering = Self("Discovering", "b") { .bool($0.isDiscovering) }
    static let uuids = Self("UUIDs", "as") { .strings($0.uuids) }
    static let modalias = Self("Modalias", "s") { .string($0.version.modalias) }
    static let roles = Self("Roles", "as") { _ in .strings(["central", "peripheral"]) }
    /// The Linux Foundation.
    static let manufacturer = Self("Manufacturer", "q") { _ in .uint16(0x05F1) }
    /// Bluetooth 5.3.
    static let version = Self("Version", "y") { _ in .byte(0x0C) }

    // MARK: LEAdvertisingManager1

    static let advertising = [
        activeInstances, supportedInstances,
        Self("SupportedIncludes", "as") { _ in .strings(["tx-power", "appearance", "local-name"]) },
        Self("SupportedSecondaryChannels", "as") { _ in .strings(["1M", "2M", "Coded"]) },
        Self("SupportedFeatures", "as") { _ in .strings(["CanSetTxPower", "HardwareOffload"]) },
        Self("SupportedCapabilities", "a{sv}") { _ in
            .options([
                NamedValue(name: "MinTxPower", value: .int16(-34)), NamedValue(name: "MaxTxPower", value: .int16(7)),
                NamedValue(name: "MaxAdvLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
                NamedValue(name: "MaxScnRspLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
            ])
        },
    ]

    static let activeInstances = Self("ActiveInstances", "y") { .byte(UInt8($0.advertisements)) }
    static let supportedInstances = Self("SupportedInstances", "y") {
        .byte(UInt8(Adapter.mostAdvertisements - $0.advertisements))
    }
}

/// `Class`, `Modalias` and `WakeAllowed` never exist for a device that was only discovered over LE.
extension Property<Device> {
    static let all = [
        address, addressType, name, alias, appearance, icon, paired, bonded, trusted, blocked, legacyPairing,
        cablePairing, rssi, connected, uuids, adapter, manufacturerData, serviceData, txPower, servicesResolved,
        advertisingFlags, advertisingData,
    ]

    static let address = Self("Address", "s") { .string(($0.identity ?? $0.key.address).description) }
    static let addressType = Self("AddressType", "s") { .string($0.addressType.rawValue) }
    static let name = Self("Name", "s") { $0.name.map(BusValue.string) }
    static let alias = Self("Alias", "s", isWritable: true) { .string($0.shownName) }
    static let appearance = Self("Appearance", "q") { $0.appearance.map(BusValue.uint16) }
    static let icon = Self("Icon", "s") { $0.appearance.flatMap(Device.icon).map(BusValue.string) }
    static let paired = Self("Paired", "b") { .bool($0.isPaired) }
    static let bonded = Self("Bonded", "b") { .bool($0.isBonded) }
    static let trusted = Self("Trusted", "b", isWritable: true) { .bool($0.isTrusted) }
    static let blocked = Self("Blocked", "b", isWritable: true) { .bool($0.isBlocked) }
    static let legacyPairing = Self("LegacyPairing", "b") { _ in .bool(false) }
    static let cablePairing = Self("CablePairing", "b") { _ in .bool(false) }
    static let rssi = Self("RSSI", "n") { $0.rssi == 0 ? nil : .int16($0.rssi) }
    static let connected = Self("Connected", "b") { .bool($0.isConnected) }
    static let uuids = Self("UUIDs", "as") { .strings($0.shownUUIDs) }
    static let adapter = Self("Adapter", "o") { .objectPath($0.adapterPath) }
    static let manufacturerData = Self("ManufacturerData", "a{qv}") {
        BusValue.fields($0.manufacturerData, BusValue.uint16)
    }
    static let serviceData = Self("ServiceData", "a{sv}") { BusValue.fields($0.serviceData, BusValue.string) }
    static let txPower = Self("TxPower", "n") { $0.txPower == 127 ? nil : .int16($0.txPower) }
    static let servicesResolved = Self("ServicesResolved", "b") { .bool($0.areServicesResolved) }
    static let advertisingFlags = Self("AdvertisingFlags", "ay") { $0.advertisingFlags.map { .bytes([$0]) } }
    static let advertisingData = Self("AdvertisingData", "a{yv}") { BusValue.fields($0.otherData, BusValue.byte) }
}
