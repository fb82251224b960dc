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

/// An adapter as `bluetoothd` keeps it: the state behind one `org.bluez.Adapter1`.
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
    /// Discoverable only because a discovery filter asks for it.
    var isDiscoverableForDiscovery = false
    var discoverableTimeout: UInt32 = 180
    /// While a default agent is registered, or when a client says so.
    var isPairable = false
    var pairableTimeout: UInt32 = 0
    /// The property, which is not quite the same as ``kernelScans``.
    var isDiscovering = false
    /// Clients that scan, the latest first.
    var scanning: [DiscoverySession] = []
    /// Clients that have set a filter and do not scan, the latest first.
    var waiting: [DiscoverySession] = []
    /// Nil is the scan without filters.
    var kernelFilter: KernelFilter?
    /// Whether the controller is scanning at all.
    var kernelScans = false
    /// Whether the scan was begun with a filter, which changes what is reported and how.
    var scansWithFilter = false
    /// A fault: scanning, and nothing is heard any more.
    var isDeaf = false
    /// The services of programs that it serves.
    var servedUUIDs: [String] = []

    init(_ hardware: VirtualAdapter, version: BlueZVersion) {
        self.hardware = hardware
        self.version = version
        path = hardware.path
        isPowered = hardware.isPowered
        powerState = hardware.isPowered ? .on : .off
    }

    /// A laptop's, while on; BlueZ forces 0 while off.
    private var deviceClass: UInt32 { isPowered && !hardware.isLowEnergyOnly ? 0x6C_010C : 0 }

    /// The value of a property; every one of these always exists.
    func value(of property: AdapterProperty) -> BusValue {
        switch property {
        case .address: .string(hardware.address.description)
        case .addressType: .string("public")
        case .name: .string(hardware.name)
        case .alias: .string(alias ?? hardware.name)
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

    /// What a plain daemon offers by itself: GATT, GAP, PnP, remote control, device information.
    private static let services = ["1801", "1800", "1200", "110c", "110e", "180a"].compactMap(ServiceUUID.long)
}
