import Foundation

/// A Bluetooth controller that exists only in a simulator.
public struct VirtualAdapter: Hashable, Sendable {
    /// The number in `hciN`.
    public var index: Int
    /// The Bluetooth address, unique in the simulator.
    public var address: VirtualAddress
    /// The host's name, which BlueZ gives its adapters.
    public var name: String
    /// Whether it is on from the start.
    public var isPowered: Bool
    /// Whether it has no classic Bluetooth.
    public var isLowEnergyOnly: Bool

    /// Creates an adapter; without an address it has 00:AA:01:01:00:00 plus the index.
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
    var path: String { hardware.path }
    var alias: String?
    var isPowered: Bool
    var powerState: PowerState
    var isBlocked = false
    var isConnectable = false
    var isDiscoverable = false
    /// In seconds; 0 is no limit.
    var discoverableTimeout: UInt32 = 180
    /// That of the default agent, or of the last one that there was.
    var capability = PairingCapability.noInputNoOutput
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
        isPowered = hardware.isPowered
        powerState = hardware.isPowered ? .on : .off
    }

    var name: String { alias ?? hardware.name }

    var uuids: [String] { Self.services + servedUUIDs.filter { !Self.services.contains($0) } }

    static let mostAdvertisements = 3

    /// The services of BlueZ itself: GATT, GAP, PnP, remote control, device information.
    private static let services = ["1801", "1800", "1200", "110c", "110e", "180a"].compactMap(ServiceUUID.long)
}
