import BlueCapDBus
package import BlueCapGATT

/// `org.bluez.Adapter1`: a Bluetooth controller of this machine.
package struct Adapter1: Sendable {
    /// The properties that have a value.
    package internal(set) var fields: Fields = []
    /// The Boolean properties that are true.
    var truths: Fields = []
    package internal(set) var address: BluetoothAddress?
    package internal(set) var powerState: PowerState?
    package internal(set) var modalias: String?
    /// The seconds after which BlueZ ends ``isPairable``; 0 for no limit.
    package internal(set) var pairableTimeout: UInt32 = 0
    /// Whether BlueZ has exported `Adapter1` itself; its object may have the other interfaces before.
    var isExported = false
    /// The other interfaces of the adapter's object.
    package internal(set) var interfaces: Interfaces = []
    /// The properties of its `LEAdvertisingManager1`.
    package internal(set) var advertising = AdvertisingCapabilities()
    /// `SupportedMonitorTypes` of its `AdvertisementMonitorManager1`.
    var monitorTypes: [String] = []
    /// The abilities of the daemon with this adapter, as far as they are known.
    package internal(set) var capabilities = DaemonCapabilities()

    package var isPowered: Bool { truths.contains(.isPowered) }
    package var isDiscovering: Bool { truths.contains(.isDiscovering) }
    /// Whether the adapter accepts bonds.
    package var isPairable: Bool { truths.contains(.isPairable) }

    /// `PowerState`: experimental at 5.66, stable since 5.73.
    package enum PowerState: String, Hashable, Sendable, CaseIterable {
        case on
        case off
        case turningOn = "off-enabling"
        case turningOff = "on-disabling"
        /// By rfkill.
        case blocked = "off-blocked"
    }

    /// Interfaces besides `Adapter1` that an adapter's object may have.
    package struct Interfaces: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let gattManager = Interfaces(rawValue: 1 << 0)
        package static let advertisingManager = Interfaces(rawValue: 1 << 1)
        /// Only with `bluetoothd --experimental`.
        package static let advertisementMonitorManager = Interfaces(rawValue: 1 << 2)
    }

    /// The properties of the interface, as a set.
    package struct Fields: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let address = Fields(rawValue: 1 << 0)
        package static let isPowered = Fields(rawValue: 1 << 5)
        package static let powerState = Fields(rawValue: 1 << 6)
        package static let isPairable = Fields(rawValue: 1 << 8)
        package static let isDiscovering = Fields(rawValue: 1 << 9)
        package static let modalias = Fields(rawValue: 1 << 11)
        package static let manufacturer = Fields(rawValue: 1 << 13)
        package static let isConnectable = Fields(rawValue: 1 << 14)
        package static let pairableTimeout = Fields(rawValue: 1 << 15)
        /// Not a property: ``Adapter1/capabilities`` has changed.
        package static let capabilities = Fields(rawValue: 1 << 30)
        /// Not a property: another interface was added or removed.
        package static let interfaces = Fields(rawValue: 1 << 31)
    }
}

/// Each property of `org.bluez.Adapter1` that we use, once (BlueZ's `doc/adapter-api.txt`, and `src/adapter.c` of 5.66).
extension Adapter1: PropertyOwner {
    package static let table = PropertyTable<Adapter1>(
        "org.bluez.Adapter1",
        [
            .value("Address", .address, "s") { $0.address().set(&$1.address) },
            .flag("Powered", .isPowered),
            .value(
                "PowerState", .powerState, "s", isOptional: true,
                read: { $0.string().map { PowerState(rawValue: $0) }.set(&$1.powerState) },
                clear: { $0.powerState = nil }),
            .flag("Pairable", .isPairable),
            .value("PairableTimeout", .pairableTimeout, "u") { $0.uint32().set(&$1.pairableTimeout) },
            // Whether any process of this machine discovers.
            .flag("Discovering", .isDiscovering),
            .value(
                "Modalias", .modalias, "s", isOptional: true,
                read: { $0.string().set(&$1.modalias) }, clear: { $0.modalias = nil }),
            // The controller's manufacturer, since 5.71, of which only the presence counts.
            .value("Manufacturer", .manufacturer, "q") { reader, _ in reader.uint16() != nil },
            // Since 5.79.
            .flag("Connectable", .isConnectable),
        ])
}
