import BlueCapReactor
import Foundation

/// What all parts of the daemon use: the time, the alarms, the objects on the bus, and the effects in their order.
///
/// The order of effects is that of gdbus. A reply follows the signals of what happened before it, signals of what it
/// causes follow the reply, and a property that changes several times before the daemon is idle is announced once.
struct Core: Sendable {
    let traits: DaemonTraits
    /// The time of the event that is being handled.
    var now: TimeInterval = 0
    var alarms = DeadlineQueue<Alarm>()
    var tree: ObjectTree
    var faults = DaemonFaults()
    private var outbox = Outbox()
    private var effects: [Effect] = []
    /// The number that was given last: of devices, sockets, calls, applications, advertisements, and questions to agents.
    private var latestNumber: UInt64 = 0
    /// Those of the calls of clients' objects that have no reply yet, by their numbers.
    var replyHandlers: [UInt64: ReplyHandler] = [:]

    init(traits: DaemonTraits) {
        self.traits = traits
        tree = ObjectTree(traits: traits)
    }

    // MARK: Effects

    /// Returns what is to be done now. Changes that are not announced yet wait until ``rest()``.
    mutating func takeEffects() -> [Effect] { exchange(&effects, with: []) }

    /// Announces all changes when the daemon is idle. An object that changed again is announced after those that did not,
    /// because gdbus moves its idle handler to the end.
    mutating func rest() { announceAll { $0.last < $1.last } }

    /// Announces all changes, in the order of first changes, before something that must not precede them.
    mutating func flush() { announceAll { $0.first < $1.first } }

    private mutating func announceAll(_ inOrder: (Outbox.Entry, Outbox.Entry) -> Bool) {
        for entry in outbox.drain(inOrder) { announce(entry) }
    }

    mutating func perform(_ effect: Effect) { effects.append(effect) }

    mutating func order(_ order: LinkLayerCommand) { effects.append(.order(order)) }

    mutating func emit(_ emission: Emission) { effects.append(.emit(emission)) }

    mutating func reply(_ call: CallID, _ values: BusValue...) {
        flush()
        effects.append(.reply(call, values))
    }

    mutating func fail(_ call: CallID, _ error: DaemonError) {
        flush()
        effects.append(.fail(call, error))
    }

    private mutating func announce(_ entry: Outbox.Entry) {
        if entry.isNew {
            guard let state = tree.state(of: entry.key) else { return }
            emit(.interfacesAdded(path: state.path, interfaces: state.interfaces))
        } else if let emission = tree.propertiesChanged(entry) {
            emit(emission)
        }
    }

    /// Announces a removal at once, after the changes of the object; an object that was not announced yet goes silently.
    private mutating func announceRemoval(of key: ObjectKey) {
        guard let path = tree.path(of: key) else { return }
        let rest = outbox.take(key)
        if rest?.isNew == true { return }
        if let rest { announce(rest) }
        emit(.interfacesRemoved(path: path, interfaces: tree.interfacesLost(by: key)))
    }

    /// Forgets effects, changes and calls, and keeps the objects.
    mutating func silence() {
        outbox = Outbox()
        effects = []
        replyHandlers = [:]
    }

    // MARK: Adapters

    mutating func add(_ adapter: Adapter) {
        tree.adapters[adapter.hardware.index] = adapter
        outbox.added(.adapter(adapter.hardware.index))
    }

    mutating func removeAdapter(_ index: Int) {
        announceRemoval(of: .adapter(index))
        tree.adapters[index] = nil
    }

    /// Sets a field of an adapter, and announces the property if the field has changed.
    mutating func set<Value: Equatable>(
        _ field: WritableKeyPath<Adapter, Value>, to value: Value, of index: Int, announcing property: Property<Adapter>
    ) {
        guard let adapter = tree.adapters[index], adapter[keyPath: field] != value else { return }
        tree.adapters[index]?[keyPath: field] = value
        announce(property, of: index)
    }

    /// Lets an adapter pair, for as long as its time-out says.
    mutating func setPairable(_ isPairable: Bool, of index: Int) {
        set(\.isPairable, to: isPairable, of: index, announcing: .pairable)
        let timeout = tree.adapters[index]?.pairableTimeout ?? 0
        setAlarm(.endPairable(index), after: timeout, if: isPairable && timeout > 0)
    }

    /// Sets or moves an alarm, or removes it.
    mutating func setAlarm(_ alarm: Alarm, after seconds: some BinaryInteger, if isLimited: Bool) {
        if isLimited { alarms.set(alarm, to: now + TimeInterval(seconds)) } else { alarms.remove(alarm) }
    }

    mutating func announce(_ property: Property<Adapter>, of index: Int) {
        outbox.changed(property.name, of: .adapter(index))
    }

    mutating func announceInstances(of index: Int) {
        outbox.changed(Property<Adapter>.supportedInstances.name, of: .advertising(index))
        outbox.changed(Property<Adapter>.activeInstances.name, of: .advertising(index))
    }

    // MARK: Devices

    mutating func addDevice(_ key: DeviceKey, _ type: AddressType, _ body: (inout Device) -> Void = { _ in }) {
        guard let adapter = tree.adapters[key.adapter] else { return }
        var device = Device(key: key, adapterPath: adapter.path, addressType: type, sequence: nextNumber())
        body(&device)
        restore(device)
    }

    /// Adds the object of a device from BlueZ's storage.
    mutating func restore(_ device: Device) {
        tree.devices[device.key] = device
        outbox.added(.device(device.key))
    }

    mutating func removeDevice(_ key: DeviceKey) {
        announceRemoval(of: .device(key))
        tree.devices[key] = nil
        alarms.remove(.forget(key))
    }

    mutating func set<Value: Equatable>(
        _ field: WritableKeyPath<Device, Value>, to value: Value, of key: DeviceKey,
        announcing property: Property<Device>
    ) {
        guard let place = tree.devices.index(forKey: key), tree.devices.values[place][keyPath: field] != value else {
            return
        }
        tree.devices.values[place][keyPath: field] = value
        announce(property, of: key)
    }

    /// Changes a device without announcing it. Returns nil if there is no such device.
    @discardableResult
    mutating func change<Result>(_ key: DeviceKey, _ body: (inout Device) -> Result) -> Result? {
        guard let place = tree.devices.index(forKey: key) else { return nil }
        return body(&tree.devices.values[place])
    }

    mutating func announce(_ property: Property<Device>, of key: DeviceKey) {
        outbox.changed(property.name, of: .device(key))
    }

    /// Takes a name that was read from the device.
    mutating func setName(_ name: String, of key: DeviceKey) {
        guard let device = tree.devices[key], device.name != name else { return }
        set(\.name, to: name, of: key, announcing: .name)
        if device.alias == nil { announce(.alias, of: key) }
    }

    /// A device without a link is forgotten half a minute after it was last received (the default of `TemporaryTimeout`),
    /// unless it is permanent.
    mutating func forgetLater(_ key: DeviceKey) {
        guard tree.devices[key]?.isTemporary == true else { return }
        alarms.set(.forget(key), to: now + 30)
    }

    /// Makes a device permanent.
    mutating func keep(_ key: DeviceKey) {
        change(key) { $0.isTemporary = false }
        alarms.remove(.forget(key))
    }

    /// Writes some properties of a device with wrong types from now on, and announces them.
    mutating func mistype(_ names: Set<String>, of address: VirtualAddress) {
        let concerned = names.union(tree.mistyped[address] ?? [])
        tree.mistyped[address] = names.isEmpty ? nil : names
        for key in tree.devices.keys.filter({ $0.address == address }).sorted() {
            for property in Property<Device>.all where concerned.contains(property.name) {
                announce(property, of: key)
            }
        }
    }

    // MARK: Attributes

    mutating func add(_ attribute: ObjectTree.Attribute, as key: AttributeKey) {
        tree.add(attribute, as: key)
        outbox.added(.attribute(key))
    }

    mutating func removeAttribute(_ key: AttributeKey) {
        announceRemoval(of: .attribute(key))
        tree.removeAttribute(key)
    }

    mutating func set(_ property: String, to value: BusValue, of key: AttributeKey) {
        tree.set(property, to: value, of: key)
        outbox.changed(property, of: .attribute(key))
    }

    /// Sets the value of a characteristic or a descriptor. It is announced at once, also if it is the same.
    mutating func setValue(_ value: [UInt8], of key: AttributeKey) {
        guard let attribute = tree.attribute(key) else { return }
        tree.set("Value", to: .bytes(value), of: key)
        flush()
        emit(
            .propertiesChanged(
                path: attribute.path, interface: attribute.interface,
                changed: [NamedValue(name: "Value", value: .bytes(value))], invalidated: []))
    }

    // MARK: Clients' objects

    mutating func nextNumber() -> UInt64 {
        latestNumber += 1
        return latestNumber
    }

    /// Calls an object of a client. The handler is nil if the daemon does not use the reply.
    mutating func call(
        _ client: String, _ path: String, _ interface: String, _ member: String, _ arguments: [BusValue] = [],
        reply: ClientCall.Reply, timeout: Double = 25, _ handler: ReplyHandler? = nil
    ) {
        let id = nextNumber()
        replyHandlers[id] = handler
        effects.append(
            .call(
                ClientCall(
                    id: id, client: client, path: path, interface: interface, member: member,
                    arguments: arguments, reply: reply, timeout: timeout)))
    }

    /// Writes a property of a client's object, and ignores the reply.
    mutating func setProperty(
        _ name: String, of interface: String, to value: BusValue, at path: String, of client: String
    ) {
        call(
            client, path, InterfaceName.properties, "Set", [.string(interface), .string(name), .variant(value)],
            reply: .values)
    }

    /// Asks a client for the objects that it registers.
    mutating func requestObjects(of call: MethodCall, _ handler: @escaping ReplyHandler) {
        self.call(
            call.client, call.path(0), InterfaceName.objectManager, "GetManagedObjects", reply: .values, handler)
    }
}

/// The faults that have been set and do not concern the radio. They outlive the process.
struct DaemonFaults: Sendable {
    /// The error of all calls.
    var refusal: DaemonError?
    // The errors of the next calls.
    var startDiscovery: [DaemonError] = []
    var registerApplication: [DaemonError] = []
    var registerAdvertisement: [DaemonError] = []
    var connect: [VirtualAddress: [DaemonError]] = [:]
    /// Devices whose `Connected` turns true without a signal.
    var silentConnections: Set<VirtualAddress> = []
    /// Devices that do not reply to calls of their attributes.
    var unanswering: Set<VirtualAddress> = []
    /// As 5.66: the daemon crashes if a central disconnects before a program has answered its request.
    var diesOfAbandonedAnswers = false
}

enum Alarm: Hashable, Sendable {
    /// A temporary device was not received for long enough.
    case forget(DeviceKey)
    case endDiscoverable(Int)
    case endPairable(Int)
    /// The two seconds after `Disconnect` are over.
    case dropLink(DeviceKey)
    /// A device that is paged does not answer.
    case pageTimeout(DeviceKey)
    /// The user of another program's agent answers the question with this number.
    case agentAnswer(UInt64, PairingProcedure.Answer)
    case requestTimeout(DeviceKey)
    /// The next object of a table is due.
    case export(DeviceKey)
    case exportService(AttributeKey)
    /// The timeout of an advertisement, or that of its being discoverable.
    case endAdvertisement(AdvertisementKey)
    case endAdvertisedDiscoverable(AdvertisementKey)
    /// A program has not answered in time.
    case packetTimeout(PacketID)
    /// The services of a central are read.
    case resolveCentral(DeviceKey)
    /// A central confirms an indication, or did not in time.
    case confirmation(DeviceKey)
    case confirmationTimeout(DeviceKey)
}

/// Takes the reply to a call of a client's object.
typealias ReplyHandler = @Sendable (inout Daemon, ClientReply) -> Void

/// What the daemon wants done, in order.
enum Effect: Hashable, Sendable {
    case reply(CallID, [BusValue])
    case fail(CallID, DaemonError)
    case emit(Emission)
    /// For the link layer, which is in the same process.
    case order(LinkLayerCommand)
    /// Makes a pair of sockets, one of which is the reply to the call.
    case openSocket(SocketID, CallID, mtu: Int)
    case transmit(SocketID, [UInt8])
    case closeSocket(SocketID)
    /// Watches a client: its sessions and registrations end with its connection to the bus, and its objects send
    /// signals.
    case watch(client: String)
    case unwatch(client: String)
    case call(ClientCall)
    /// Passes an event to a ``VirtualCentral``.
    case central(CentralEnd, CentralNews)
    /// The daemon crashes because of a defect of its own.
    case die
    /// The process starts or ends.
    case connectToBus
    case disconnectFromBus
}
