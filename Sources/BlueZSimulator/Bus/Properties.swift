/// The properties of an interface of `bluetoothd` without `--experimental`, in the order in which BlueZ lists them.
protocol InterfaceProperty: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    var signature: String { get }
    /// Whether a client may set it.
    var isWritable: Bool { get }
}

extension InterfaceProperty {
    var isWritable: Bool { false }

    /// Describes the properties that a version of BlueZ has.
    static func descriptions(of known: Set<Self>) -> [PropertyDescription] {
        allCases.filter(known.contains).map {
            PropertyDescription(name: $0.rawValue, signature: $0.signature, isWritable: $0.isWritable)
        }
    }

    /// Returns the values of the properties that a version of BlueZ has, and that exist.
    static func values(of known: Set<Self>, _ value: (Self) -> BusValue?) -> [NamedValue] {
        var values: [NamedValue] = []
        values.reserveCapacity(known.count)
        for property in allCases where known.contains(property) {
            if let value = value(property) { values.append(NamedValue(name: property.rawValue, value: value)) }
        }
        return values
    }
}

/// The properties of `org.bluez.Adapter1`.
enum AdapterProperty: String, InterfaceProperty {
    case address = "Address"
    case addressType = "AddressType"
    case name = "Name"
    case alias = "Alias"
    case deviceClass = "Class"
    case connectable = "Connectable"
    case powered = "Powered"
    case powerState = "PowerState"
    case discoverable = "Discoverable"
    case discoverableTimeout = "DiscoverableTimeout"
    case pairable = "Pairable"
    case pairableTimeout = "PairableTimeout"
    case discovering = "Discovering"
    case uuids = "UUIDs"
    case modalias = "Modalias"
    case roles = "Roles"
    case manufacturer = "Manufacturer"
    case version = "Version"

    var signature: String {
        switch self {
        case .address, .addressType, .name, .alias, .powerState, .modalias: "s"
        case .deviceClass, .discoverableTimeout, .pairableTimeout: "u"
        case .connectable, .powered, .discoverable, .pairable, .discovering: "b"
        case .uuids, .roles: "as"
        case .manufacturer: "q"
        case .version: "y"
        }
    }

    var isWritable: Bool {
        switch self {
        case .alias, .connectable, .powered, .discoverable, .discoverableTimeout, .pairable, .pairableTimeout: true
        default: false
        }
    }
}

/// The properties of `org.bluez.Device1`. `Class`, `Modalias` and `WakeAllowed` never exist for a device that was only
/// discovered over LE.
enum DeviceProperty: String, InterfaceProperty {
    case address = "Address"
    case addressType = "AddressType"
    case name = "Name"
    case alias = "Alias"
    case appearance = "Appearance"
    case icon = "Icon"
    case paired = "Paired"
    case bonded = "Bonded"
    case trusted = "Trusted"
    case blocked = "Blocked"
    case legacyPairing = "LegacyPairing"
    case cablePairing = "CablePairing"
    case rssi = "RSSI"
    case connected = "Connected"
    case uuids = "UUIDs"
    case adapter = "Adapter"
    case manufacturerData = "ManufacturerData"
    case serviceData = "ServiceData"
    case txPower = "TxPower"
    case servicesResolved = "ServicesResolved"
    case advertisingFlags = "AdvertisingFlags"
    case advertisingData = "AdvertisingData"

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

    var isWritable: Bool { self == .alias || self == .trusted || self == .blocked }
}

/// The properties of `org.bluez.GattService1`.
enum ServiceProperty: String, InterfaceProperty {
    case handle = "Handle"
    case uuid = "UUID"
    case device = "Device"
    case primary = "Primary"
    case includes = "Includes"

    var signature: String {
        switch self {
        case .handle: "q"
        case .uuid: "s"
        case .device: "o"
        case .primary: "b"
        case .includes: "ao"
        }
    }
}

/// The properties of `org.bluez.GattCharacteristic1`.
enum CharacteristicProperty: String, InterfaceProperty {
    case handle = "Handle"
    case uuid = "UUID"
    case service = "Service"
    case value = "Value"
    case notifying = "Notifying"
    case flags = "Flags"
    case writeAcquired = "WriteAcquired"
    case notifyAcquired = "NotifyAcquired"
    case mtu = "MTU"

    var signature: String {
        switch self {
        case .handle, .mtu: "q"
        case .uuid: "s"
        case .service: "o"
        case .value: "ay"
        case .notifying, .writeAcquired, .notifyAcquired: "b"
        case .flags: "as"
        }
    }
}

/// The properties of `org.bluez.GattDescriptor1`.
enum DescriptorProperty: String, InterfaceProperty {
    case handle = "Handle"
    case uuid = "UUID"
    case characteristic = "Characteristic"
    case value = "Value"

    var signature: String {
        switch self {
        case .handle: "q"
        case .uuid: "s"
        case .characteristic: "o"
        case .value: "ay"
        }
    }
}

/// The properties of `org.bluez.LEAdvertisingManager1`.
enum AdvertisingProperty: String, InterfaceProperty {
    case activeInstances = "ActiveInstances"
    case supportedInstances = "SupportedInstances"
    case supportedIncludes = "SupportedIncludes"
    case supportedSecondaryChannels = "SupportedSecondaryChannels"
    case supportedFeatures = "SupportedFeatures"
    case supportedCapabilities = "SupportedCapabilities"

    var signature: String {
        switch self {
        case .activeInstances, .supportedInstances: "y"
        case .supportedIncludes, .supportedSecondaryChannels, .supportedFeatures: "as"
        case .supportedCapabilities: "a{sv}"
        }
    }
}
