import TestSupport
import XCTest

@testable import BlueZSimulator

/// A daemon without a bus: a test makes the calls, and all effects are kept.
struct DaemonBench {
    var daemon: Daemon
    var now = 0.0
    private var calls: UInt64 = 0

    init(
        _ bluez: BlueZVersion = .v5_66, adapters: [VirtualAdapter] = [VirtualAdapter()],
        remembering peripherals: [VirtualPeripheral] = []
    ) {
        daemon = Daemon(version: bluez)
        daemon.restart(adapters, remembering: peripherals)
    }

    /// Returns the effects of one call without the watches: first those of the call, then those of the idle daemon.
    mutating func ask(_ request: Request, as client: String = ":1.7") -> [Effect] {
        calls += 1
        daemon.core.now = now
        daemon.receive(request.call(by: client, CallID(number: calls)))
        return settle()
    }

    /// Returns the reply alone.
    mutating func answer(_ request: Request, as client: String = ":1.7") -> Result<[BusValue], DaemonError>? {
        ask(request, as: client).compactMap { effect -> Result<[BusValue], DaemonError>? in
            switch effect {
            case .reply(_, let values): .success(values)
            case .fail(_, let error): .failure(error)
            case .emit, .order, .openSocket, .transmit, .closeSocket, .watch, .unwatch, .connectToBus,
                .disconnectFromBus,
                .call, .central, .die:
                nil
            }
        }.first
    }

    /// The error of a call that fails.
    mutating func error(of request: Request, as client: String = ":1.7") -> DaemonError? {
        guard case .failure(let error)? = answer(request, as: client) else { return nil }
        return error
    }

    var isListening: Bool { daemon.discovery.isListening(daemon.core) }

    /// Returns the effects of the daemon now, and when it is idle.
    mutating func settle() -> [Effect] {
        var effects = daemon.core.takeEffects()
        daemon.core.rest()
        effects += daemon.core.takeEffects()
        return effects.filter { effect in
            switch effect {
            case .watch, .unwatch, .order, .openSocket, .transmit, .closeSocket, .call, .central, .die:
                false
            case .reply, .fail, .emit, .connectToBus, .disconnectFromBus: true
            }
        }
    }

    /// The signals of something that is done to the daemon.
    mutating func signals(_ body: (inout Daemon) -> Void) -> [Emission] {
        body(&daemon)
        return settle().emissions
    }

    /// The signals of an advertisement.
    mutating func receive(_ peripheral: VirtualPeripheral, rssi: Int? = nil) -> [Emission] {
        receive(peripheral.address, peripheral.advertisement, type: peripheral.addressType, rssi: rssi ?? -60)
    }

    mutating func receive(
        _ address: VirtualAddress, _ advertisement: Advertisement, type: AddressType = .public, rssi: Int = -60
    ) -> [Emission] {
        let sighting = Sighting(
            address: address, addressType: type, rssi: rssi, report: AdvertisingReport(advertisement))
        daemon.core.now = now
        return signals { $0.received(sighting) }
    }

    /// A link of an adapter to a peripheral changes.
    mutating func link(_ key: DeviceKey, _ news: CentralNews, now: Double) {
        daemon.core.now = now
        daemon.take(.central(.adapter(key), news))
    }

    /// Advances the time, and returns the signals of what was due.
    mutating func advance(by seconds: Double) -> [Emission] {
        now += seconds
        let now = now
        return signals { $0.timePassed(to: now) }
    }
}

extension DaemonBench: TableMachine {
    enum Event {
        case ask(Request, as: String = ":1.7"), refused(Request, as: String = ":1.7", DaemonError)
        case receive(VirtualPeripheral, rssi: Int? = nil), advance(by: Double)
        case signals((inout Daemon) -> Void)
        case holds((DaemonBench) -> Bool)
    }

    /// Returns the outline of the effects. A call that is not refused with this error does not hold.
    mutating func handle(_ event: Event) -> [String]? {
        switch event {
        case .ask(let request, let client): ask(request, as: client).outline
        case .refused(let request, let client, let error): self.error(of: request, as: client) == error ? [] : nil
        case .receive(let peripheral, let rssi): receive(peripheral, rssi: rssi).map(\.outline)
        case .advance(let seconds): advance(by: seconds).map(\.outline)
        case .signals(let body): signals(body).map(\.outline)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}

extension [Effect] {
    var emissions: [Emission] {
        compactMap { effect in
            if case .emit(let emission) = effect { emission } else { nil }
        }
    }

    /// Each effect as one word, to compare orders: `reply`, `fail`, or the object and the properties of a signal.
    var outline: [String] {
        map { effect in
            switch effect {
            case .reply: "reply"
            case .fail(_, let error): error.name
            case .emit(let emission): emission.outline
            case .order, .openSocket, .transmit, .closeSocket, .call, .central, .die: "order"
            case .watch(let client): "watch \(client)"
            case .unwatch(let client): "unwatch \(client)"
            case .connectToBus: "join"
            case .disconnectFromBus: "leave"
            }
        }
    }
}

extension Emission {
    var outline: String {
        switch self {
        case .interfacesAdded(let path, _): "+ \(path.suffix(6))"
        case .interfacesRemoved(let path, _): "- \(path.suffix(6))"
        case .disconnected(let path, _, let reason): "\(path.suffix(5)) Disconnected \(reason.rawValue)"
        case .propertiesChanged(let path, _, let changed, let invalidated):
            "\(path.suffix(5)) " + (changed.map(\.name) + invalidated.map { "-" + $0 }).joined(separator: " ")
        }
    }

    /// The value of a property in this signal.
    func value(of name: String) -> BusValue? {
        switch self {
        case .propertiesChanged(_, _, let changed, _):
            changed.first { $0.name == name }?.value
        case .interfacesAdded(_, let interfaces):
            interfaces.flatMap(\.properties).first { $0.name == name }?.value
        case .interfacesRemoved, .disconnected:
            nil
        }
    }
}

/// The peripherals of the tests.
enum Cast {
    static let strap = VirtualPeripheral(
        "C0:00:00:00:00:01", addressType: .random,
        advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"], txPower: 4, appearance: 0x0341))
    static let tag = VirtualPeripheral(
        "C0:00:00:00:00:02", addressType: .random,
        advertisement: Advertisement(localName: "Tag", manufacturerData: [0x004C: [1, 2, 3]]))
    static let beacon = VirtualPeripheral(
        "C0:00:00:00:00:03", addressType: .random,
        advertisement: Advertisement(manufacturerData: [0x004C: [2, 0x15]], isConnectable: false))
    static let hidden = VirtualPeripheral(
        "C0:00:00:00:00:04", addressType: .random, advertisement: Advertisement(localName: "Hidden", flags: 0))
}

/// A method call as a test writes it.
struct Request {
    var path: String
    var interface: String
    var member: String
    var arguments: [BusValue] = []

    func call(by client: String, _ id: CallID) -> MethodCall {
        MethodCall(
            path: path, interface: interface, member: member, signature: arguments.map(\.signature).joined(),
            arguments: arguments, client: client, id: id)
    }

    static let start = adapter("StartDiscovery")
    static let stop = adapter("StopDiscovery")
    static let getDiscoveryFilters = adapter("GetDiscoveryFilters")

    static func filter(_ entries: (String, BusValue)...) -> Request { setDiscoveryFilter(entries) }

    static func setDiscoveryFilter(_ entries: [(String, BusValue)]) -> Request {
        adapter("SetDiscoveryFilter", .options(entries.map { NamedValue(name: $0.0, value: $0.1) }))
    }

    static func removeDevice(_ path: String) -> Request { adapter("RemoveDevice", .objectPath(path)) }

    static func power(_ isOn: Bool) -> Request { set("Powered", .bool(isOn)) }

    static func set(_ name: String, _ value: BusValue) -> Request {
        set(name, of: InterfaceName.adapter, at: "/org/bluez/hci0", value)
    }

    static func set(_ name: String, of interface: String, at path: String, _ value: BusValue) -> Request {
        Request(
            path: path, interface: InterfaceName.properties, member: "Set",
            arguments: [.string(interface), .string(name), .variant(value)])
    }

    static func introspect(_ path: String) -> Request {
        Request(path: path, interface: InterfaceName.introspectable, member: "Introspect")
    }

    static func connect(_ key: DeviceKey) -> Request { device("Connect", key) }
    static func disconnect(_ key: DeviceKey) -> Request { device("Disconnect", key) }

    static func readValue(_ path: String) -> Request {
        characteristic("ReadValue", path, .options([]))
    }

    static func acquireNotify(_ path: String) -> Request {
        characteristic("AcquireNotify", path, .options([]))
    }

    static func registerAgent(_ path: String, capability: String) -> Request {
        agent("RegisterAgent", .objectPath(path), .string(capability))
    }

    static func requestDefaultAgent(_ path: String) -> Request { agent("RequestDefaultAgent", .objectPath(path)) }

    private static func adapter(_ member: String, _ arguments: BusValue...) -> Request {
        Request(path: "/org/bluez/hci0", interface: InterfaceName.adapter, member: member, arguments: arguments)
    }

    private static func device(_ member: String, _ key: DeviceKey) -> Request {
        Request(
            path: "/org/bluez/hci\(key.adapter)/dev_" + key.address.written(separator: UInt8(ascii: "_")),
            interface: InterfaceName.device, member: member)
    }

    private static func characteristic(_ member: String, _ path: String, _ arguments: BusValue...) -> Request {
        Request(path: path, interface: InterfaceName.characteristic, member: member, arguments: arguments)
    }

    private static func agent(_ member: String, _ arguments: BusValue...) -> Request {
        Request(path: "/org/bluez", interface: InterfaceName.agentManager, member: member, arguments: arguments)
    }
}
