public import Foundation

/// The state of the simulator, for assertions.
extension Simulator {
    /// The calls of clients and the signals to them, up to now.
    public var statistics: Statistics { stage.look(\.statistics) }

    /// Whether bluetoothd runs.
    package var isDaemonRunning: Bool { stage.look(\.isAlive) }

    /// The adapters on the bus, by their number; none while bluetoothd does not run.
    public var adapters: [AdapterState] {
        stage.look { simulation in
            simulation.adapters.map { adapter in
                let scan = simulation.daemon.discovery.scans[adapter.hardware.index]
                return AdapterState(
                    path: adapter.path, address: adapter.hardware.address, alias: adapter.name,
                    isPowered: adapter.isPowered, isDiscovering: adapter.isDiscovering,
                    isScanning: scan?.isListening == true,
                    isDiscoverable: adapter.isDiscoverable, isPairable: adapter.isPairable)
            }
        }
    }

    /// The clients that take part in a discovery, scanning clients first; empty when every client has cleaned up.
    public var discoverySessions: [DiscoverySessionState] {
        stage.look { simulation in
            simulation.adapters.flatMap { adapter in
                let sessions = simulation.daemon.discovery.scans[adapter.hardware.index]?.sessions ?? []
                return (sessions.filter(\.isScanning) + sessions.filter { !$0.isScanning }).map { session in
                    DiscoverySessionState(
                        client: session.owner, adapter: adapter.path, isScanning: session.isScanning,
                        filter: session.filter?.sent)
                }
            }
        }
    }

    /// The paths of the devices on the bus, in the order in which they appeared.
    public var devices: [String] {
        stage.look { simulation in
            guard simulation.isAlive else { return [] }
            return simulation.daemon.core.tree.devices.values.sorted { $0.sequence < $1.sequence }.map(\.path)
        }
    }

    /// The virtual peripherals, also those that no adapter has discovered.
    public var peripherals: [VirtualPeripheral] { stage.look(\.linkLayer.radio.peripherals) }

    // MARK: Links

    /// The links that are up, in the order of their addresses, at the central's end; those of ``VirtualCentral``s are left
    /// out.
    public var links: [LinkState] {
        stage.look { simulation in
            simulation.linkLayer.links.compactMap { end, link -> LinkState? in
                guard link.isUp, case .adapter(let key) = end else { return nil }
                var handles = Array(link.subscriptions.keys)
                let database: AttributeDatabase?
                switch link.server {
                case .peripheral(let address): database = simulation.linkLayer.peripherals[address]?.database
                case .adapter(let server, _):
                    let written = simulation.daemon.server.configurations[server] ?? [:]
                    handles = written.filter { $0.value != 0 }.map(\.key)
                    database = simulation.daemon.server.applications.databases[server.adapter]
                }
                return LinkState(
                    adapter: key.adapter, address: key.address, requests: link.requestCount,
                    security: simulation.linkLayer.security.security(of: end),
                    subscriptions: handles.sorted().compactMap { database?.place(of: $0)?.characteristic.uuid })
            }.sorted { ($0.address, $0.adapter) < ($1.address, $1.adapter) }
        }
    }

    /// The value of a characteristic of a peripheral; nil if there is no such characteristic.
    public func value(of characteristic: AttributeSelector, at address: VirtualAddress) -> [UInt8]? {
        stage.look { simulation in
            let database = simulation.linkLayer.peripherals[address]?.database
            return database?.characteristic(characteristic).flatMap { database?.value(of: $0.valueHandle) }
        }
    }

    /// The clients that have a session of notifications with a characteristic, by their unique names, in their order;
    /// also those that are not in effect because there is no link.
    public func subscriptions(to characteristic: AttributeSelector, at address: VirtualAddress) -> [String] {
        stage.look { simulation in
            guard let found = simulation.linkLayer.characteristic(characteristic, at: address) else { return [] }
            return simulation.daemon.client.tables.sorted { $0.key < $1.key }.filter { $0.key.address == address }
                .flatMap { $0.value.attributes[found.handle]?.clients ?? [] }
        }
    }

    // MARK: Serving

    /// The advertisements that the adapters send at the moment, byte for byte, by the adapters' numbers and in the order of
    /// their registration. Those of an adapter that is off are left out.
    public var advertisements: [OnAirAdvertisement] {
        stage.look { simulation in
            simulation.adapters.flatMap { adapter in
                simulation.daemon.advertising.sent(by: adapter).map { sent in
                    OnAirAdvertisement(
                        adapter: adapter.hardware.index, address: sent.record.ownAddress ?? adapter.hardware.address,
                        data: sent.data, scanResponse: sent.scanResponse, isConnectable: sent.record.isPeripheral,
                        owner: sent.record.owner, path: sent.record.path)
                }
            }
        }
    }

    /// The applications that are registered, in the order of their registration.
    public var applications: [ServedApplication] {
        stage.look { simulation in
            let applications = simulation.daemon.server.applications
            return applications.all.filter { $0.registration == nil }.map { application in
                let services = applications.databases[application.adapter]?.services ?? []
                return ServedApplication(
                    adapter: application.adapter, owner: application.owner, path: application.path,
                    services: services.filter { $0.application == application.id }.map(ServedService.init))
            }
        }
    }
}

/// The state of an adapter.
public struct AdapterState: Hashable, Sendable {
    /// The path of the D-Bus object, such as `/org/bluez/hci0`.
    public var path: String
    /// The Bluetooth address.
    public var address: VirtualAddress
    /// The property `Alias`.
    public var alias: String
    /// The property `Powered`.
    public var isPowered: Bool
    /// The property `Discovering`.
    public var isDiscovering: Bool
    /// Whether the controller scans; with some faults it stops without a signal.
    public var isScanning: Bool
    /// The property `Discoverable`.
    public var isDiscoverable: Bool
    /// Whether devices may make bonds with it.
    public var isPairable: Bool
}

/// A client's part in an adapter's discovery.
public struct DiscoverySessionState: Hashable, Sendable {
    /// The client's unique name on the bus.
    public var client: String
    /// The adapter's path.
    public var adapter: String
    /// False for a client that has set a filter and has not started, or has stopped since.
    public var isScanning: Bool
    /// The filter's dictionary as it was sent; nil for a scan without a filter.
    public var filter: [String: FilterValue]?
}

/// A link that is up.
public struct LinkState: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    /// The address of the peripheral or the central at the other end.
    public var address: VirtualAddress
    /// The number of requests over it so far that want a response.
    public var requests: Int
    /// The encryption and authentication of the link.
    public var security: LinkSecurity
    /// The UUIDs of the characteristics that are subscribed to, in the order of their handles.
    public var subscriptions: [String]
}

/// The calls of clients and the signals to them, for assertions. A copy: take a new one to see more.
public struct Statistics: Hashable, Sendable {
    /// A method call as it came, before the reply.
    public struct Call: Hashable, Sendable {
        /// The D-Bus interface, such as `org.bluez.Adapter1`.
        public var interface: String
        /// The method, such as `StartDiscovery`.
        public var member: String
        /// The path of the called object.
        public var path: String
        /// The caller's unique name on the bus.
        public var sender: String
        /// Seconds since the simulator began.
        public var seconds: TimeInterval
    }

    /// The latest calls, oldest first; at most ``callLimit``.
    public private(set) var calls: [Call] = []
    /// The dictionaries of the latest `SetDiscoveryFilter` calls, oldest first, with exactly the keys that were sent; at
    /// most ``callLimit``.
    public private(set) var discoveryFilters: [[String: FilterValue]] = []
    /// The number of advertisements that reached a scanning adapter.
    public internal(set) var sightings = 0
    private var counts: [String: Int] = [:]
    private var signals: [String: Int] = [:]

    /// The number of calls that are kept one by one; the counts include all.
    public static let callLimit = 10_000

    /// Returns how often a method was called, with or without success: `count(of: "StartDiscovery")`.
    public func count(of member: String) -> Int { counts[member, default: 0] }

    /// Returns how many signals of that name were sent: `signals(of: "InterfacesAdded")`.
    public func signals(of member: String) -> Int { signals[member, default: 0] }

    mutating func record(_ call: MethodCall, seconds: TimeInterval) {
        counts[call.member, default: 0] += 1
        let entry = Call(
            interface: call.interface ?? "", member: call.member, path: call.path, sender: call.client, seconds: seconds
        )
        Self.append(entry, to: &calls)
    }

    mutating func recordFilter(of call: MethodCall) {
        guard call.member == "SetDiscoveryFilter", call.signature == "a{sv}" else { return }
        Self.append(FilterValue.values(of: call.options(0)), to: &discoveryFilters)
    }

    mutating func record(signal member: String) { signals[member, default: 0] += 1 }

    private static func append<Entry>(_ entry: Entry, to list: inout [Entry]) {
        // Half of the list at a time, so that the entries are moved once in five thousand calls.
        if list.count >= callLimit { list.removeFirst(callLimit / 2) }
        list.append(entry)
    }
}
