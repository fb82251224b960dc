import Foundation

/// A Bluetooth controller that exists only in a simulator.
public struct VirtualAdapter: Hashable, Sendable {
    /// The number in `hciN`.
    public var index: Int
    public var address: VirtualAddress
    /// The host's name, which BlueZ gives its adapters.
    public var name: String
    /// Whether it is on from the start.
    public var isPowered: Bool
    /// Whether it has no classic Bluetooth.
    public var isLowEnergyOnly: Bool

    public init(
        index: Int = 0, address: VirtualAddress? = nil, name: String = "simulated", isPowered: Bool = true,
        isLowEnergyOnly: Bool = false
    ) {
        self.index = index
        self.address = address ?? VirtualAddress(value: 0x00AA_0101_0000 + UInt64(index))
        self.name = name
        self.isPowered = isPowered
        self.isLowEnergyOnly = isLowEnergyOnly
    }

    /// The object's path on the bus.
    public var path: String { "/org/bluez/hci\(index)" }

    var transports: DiscoveryFilter.Transport { isLowEnergyOnly ? .lowEnergy : .both }
}

/// The state behind one `org.bluez.Adapter1` and the other interfaces of its object.
struct Adapter: Sendable {
    /// The values of `PowerState`.
    enum PowerState: String, Sendable {
        // swift-format-ignore: AlwaysUseLowerCamelCase
        case off, on
        case disabling = "on-disabling"
        case enabling = "off-enabling"
        case blocked = "off-blocked"
    }

    let hardware: VirtualAdapter
    let version: BlueZVersion
    let path: String
    var alias: String?
    var isPowered: Bool
    var powerState: PowerState
    var isBlocked = false
    var isConnectable = false
    var isDiscoverable = false
    /// In seconds; 0 is no limit.
    var discoverableTimeout: UInt32 = 180
    /// Whether a default agent is registered, or a client has set it.
    var isPairable = false
    var pairableTimeout: UInt32 = 0
    /// The property, which may differ from whether the kernel scans.
    var isDiscovering = false
    /// The UUIDs of the services that programs have registered.
    var servedUUIDs: [String] = []
    /// How many advertisements are registered or being registered.
    var advertisements = 0

    init(_ hardware: VirtualAdapter, version: BlueZVersion) {
        self.hardware = hardware
        self.version = version
        path = hardware.path
        isPowered = hardware.isPowered
        powerState = hardware.isPowered ? .on : .off
    }

    var name: String { alias ?? hardware.name }

    /// That of a laptop; BlueZ forces 0 while the adapter is off.
    private var deviceClass: UInt32 { isPowered && !hardware.isLowEnergyOnly ? 0x6C_010C : 0 }

    func value(of property: AdapterProperty) -> BusValue? {
        switch property {
        case .address: .string(hardware.address.description)
        case .addressType: .string("public")
        case .name: .string(hardware.name)
        case .alias: .string(name)
        case .deviceClass: .uint32(deviceClass)
        case .powered: .bool(isPowered)
        case .discoverable: .bool(isDiscoverable)
        case .discoverableTimeout: .uint32(discoverableTimeout)
        case .pairable: .bool(isPairable)
        case .pairableTimeout: .uint32(pairableTimeout)
        case .discovering: .bool(isDiscovering)
        case .uuids: .strings(Self.services + servedUUIDs.filter { !Self.services.contains($0) })
        case .modalias: .string(version.modalias)
        case .roles: .strings(["central", "peripheral"])
        case .connectable: .bool(isConnectable)
        case .powerState: .string(powerState.rawValue)
        // The Linux Foundation, and a controller of Bluetooth 5.3.
        case .manufacturer: .uint16(0x05F1)
        case .version: .byte(0x0C)
        }
    }

    func value(of property: AdvertisingProperty) -> BusValue? {
        switch property {
        case .activeInstances: .byte(UInt8(advertisements))
        case .supportedInstances: .byte(UInt8(Self.mostAdvertisements - advertisements))
        case .supportedIncludes: .strings(["tx-power", "appearance", "local-name"])
        case .supportedSecondaryChannels: .strings(["1M", "2M", "Coded"])
        case .supportedCapabilities:
            .options([
                NamedValue(name: "MinTxPower", value: .int16(-34)), NamedValue(name: "MaxTxPower", value: .int16(7)),
                NamedValue(name: "MaxAdvLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
                NamedValue(name: "MaxScnRspLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
            ])
        case .supportedFeatures: .strings(["CanSetTxPower", "HardwareOffload"])
        }
    }

    /// How many advertisements the controller sends at most.
    static let mostAdvertisements = 3

    /// The services of BlueZ itself: GATT, GAP, PnP, remote control, device information.
    private static let services = ["1801", "1800", "1200", "110c", "110e", "180a"].compactMap(ServiceUUID.long)
}
