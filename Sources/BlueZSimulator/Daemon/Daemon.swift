import Foundation

/// `bluetoothd` as a pure value: calls, sightings and faults go in, effects come out. It knows no bus, no thread
/// and no clock; times are given to it.
///
/// The order of effects is that of gdbus: a reply comes after the signals of what happened before it, signals of what
/// it sets off come after it, and what changes several times before the daemon rests is said once.
struct Daemon: Sendable {
    let version: BlueZVersion
    let traits: DaemonTraits
    /// The interfaces as this version describes them.
    let interfaceTables: [String: InterfaceTable<Daemon>]
    var adapters: [Int: Adapter] = [:] { didSet { mayHaveNews = true } }
    var devices: [DeviceKey: Device] = [:]
    /// By adapter, what was heard in this discovery; may hold devices that are gone.
    var found: [Int: [DeviceKey]] = [:]
    var agents: [String: Agent] = [:]
    /// Clients whose agents asked to be the default one, the latest first.
    var defaultAgents: [String] = []
    var profiles: [Profile] = []
    var outbox = Outbox()
    /// Deadlines that the daemon sets itself.
    var alarms = DeadlineQueue<Alarm>()
    /// How the next attempts to start a discovery fail.
    var startFailures: [DaemonError] = []
    /// When set, nobody may call anything.
    var refusal: DaemonError?
    /// By device, the properties that are written with a wrong type.
    var mistyped: [VirtualAddress: Set<String>] = [:]

    // MARK: Links
    /// Who waits for a link, for the end of one, and for the removal of a connected device.
    var connects: [DeviceKey: CallID] = [:]
    var disconnects: [DeviceKey: [CallID]] = [:]
    var removals: [DeviceKey: [CallID]] = [:]
    /// Links whose two seconds are running.
    var disconnecting: Set<DeviceKey> = []
    var links: [DeviceKey: HostLink] = [:]
    var tables: [DeviceKey: RemoteTable] = [:]
    /// By client, how many subscriptions it has.
    var subscribers: [String: Int] = [:]
    /// What the next attempts to connect fail with.
    var connectFailures: [VirtualAddress: [DaemonError]] = [:]
    /// Devices whose `Connected` turns true without a signal.
    var untoldConnections: Set<VirtualAddress> = []
    /// Devices whose attributes can be called, without an answer.
    var unanswering: Set<VirtualAddress> = []
    // MARK: Serving
    /// By adapter, what it serves.
    var databases: [Int: AttributeDatabase] = [:]
    var applications: [ApplicationID: LocalApplication] = [:]
    var applicationNumber = 0
    /// By adapter, in the order they were registered.
    var advertisements: [Int: [AdvertisementRecord]] = [:] { didSet { mayHaveNews = true } }
    var advertisementNumber = 0
    /// What the air was told last.
    var announced: [Int: HostAnnouncement] = [:]
    /// Whether something may have changed since, of what adapters send.
    var mayHaveNews = true
    /// By the serving adapter and the central's address.
    var serverLinks: [DeviceKey: ServerLink] = [:]
    /// What bonded centrals have subscribed to, while they are not connected.
    var bondedConfigurations: [DeviceKey: [UInt16: UInt16]] = [:]
    /// What waits for a program.
    var packets: [PacketID: PendingPacket] = [:]
    var packetNumber: UInt64 = 0
    /// Calls to clients that are not answered yet.
    var clientCalls: [UInt64: CallPurpose] = [:]
    var clientCallNumber: UInt64 = 0
    /// What the next registrations fail with.
    var registrationFailures: [DaemonError] = []
    var advertisementFailures: [DaemonError] = []
    /// Whether registrations are accepted and not worked off.
    var ignoresRegistrations = false { didSet { if !ignoresRegistrations { registerIgnored() } } }
    private var ignoredRegistrations: [MethodCall] = []
    /// A fault of 5.66: who leaves while a program has a question of its open takes the daemon along.
    var diesOfAbandonedAnswers = false
    /// Centrals that confirm no indication.
    var unconfirming: Set<VirtualAddress> = []

    var requestNumber: UInt64 = 0
    var batteryReads: UInt64 = 0
    /// The time of what is being handled.
    var now: TimeInterval = 0

    /// Devices whose objects are being put on the bus: until that is done nobody is answered.
    var exporting: Set<DeviceKey> = []
    private var held: [MethodCall] = []
    private var socketNumber: UInt64 = 0

    var effects: [Effect] = []
    private var watched: Set<String> = []
    /// Clients whose objects are listened to.
    private var listened: Set<String> = []
    private var sequence = 0

    enum Alarm: Hashable, Sendable {
        /// Not heard for long enough.
        case forget(DeviceKey)
        case endDiscoverable(Int)
        /// The two seconds after `Disconnect` are over.
        case dropLink(DeviceKey)
        /// A request got no response.
        case requestTimeout(DeviceKey)
        /// The next object of a table is due.
        case export(DeviceKey)
        case exportService(AttributeKey)
        /// An advertisement's time is over, or that of its being discoverable.
        case endAdvertisement(AdvertisementKey)
        case endAdvertisedDiscoverable(AdvertisementKey)
        /// A program has not answered in time.
        case packetTimeout(PacketID)
        /// A central's own services were looked at.
        case resolveCentral(DeviceKey)
        /// A central confirms an indication, or never did.
        case confirmation(DeviceKey)
        case confirmationTimeout(DeviceKey)
    }

    /// How long a temporary device is remembered after it was last heard (`TemporaryTimeout`'s default).
    static let temporaryTimeout: TimeInterval = 30

    init(version: BlueZVersion = .default) {
        self.version = version
        traits = DaemonTraits(version)
        interfaceTables = InterfaceTable.all(traits)
    }

    // MARK: Calls

    /// Carries out a method call.
    mutating func receive(_ call: MethodCall, now: TimeInterval) {
        self.now = now
        if call.interface == InterfaceName.peer, call.member == "Ping" { return reply(call.id) }
        do throws(DaemonError) {
            try perform(call)
        } catch {
            fail(call.id, error)
        }
        refreshWatches()
    }

    private mutating func perform(_ call: MethodCall) throws(DaemonError) {
        var call = call
        let interfaces = interfaces(at: call.path)
        guard !interfaces.isEmpty else { throw .unknownObject(call) }
        let named = call.interface ?? interfaces.first { interfaceTables[$0]?.method(call.member) != nil } ?? ""
        guard interfaces.contains(named), let method = interfaceTables[named]?.method(call.member),
            call.signature == method.signature
        else { throw .unknownMethod(call) }
        guard exporting.isEmpty else { return held.append(call) }
        if ignoresRegistrations, Self.registrations.contains(call.member) { return ignoredRegistrations.append(call) }
        if let refusal { throw refusal }
        call.object = key(at: call.path)
        if case .attribute(let key)? = call.object, unanswering.contains(key.device.address),
            named == InterfaceName.characteristic || named == InterfaceName.descriptor
        {
            return
        }
        try method.handler(&self, call)
    }

    private static let registrations: Set = ["RegisterApplication", "RegisterAdvertisement"]

    /// Objects have all been put on the bus, or have gone: who had to wait is answered, in turn.
    mutating func exported(_ key: DeviceKey) {
        guard exporting.remove(key) != nil, exporting.isEmpty else { return }
        let calls = held
        held = []
        for call in calls { receive(call, now: now) }
    }

    private mutating func registerIgnored() {
        let calls = ignoredRegistrations
        ignoredRegistrations = []
        for call in calls { receive(call, now: now) }
    }

    /// A client's connection to the bus has ended, and with it all that it had here.
    mutating func clientLeft(_ client: String) {
        for index in adapters.keys.sorted() { endSession(of: client, on: index) }
        endSubscriptions(of: client)
        removeApplications(of: client)
        removeAdvertisements(of: client)
        removeAgent(of: client)
        profiles.removeAll { $0.owner == client }
        ignoredRegistrations.removeAll { $0.client == client }
        refreshWatches()
    }

    // MARK: Time

    /// When the daemon wants to be asked again.
    mutating func nextAlarm() -> TimeInterval? { alarms.next() }

    /// Does what has fallen due.
    mutating func timePassed(to now: TimeInterval) {
        while let due = alarms.popDue(at: now) {
            self.now = due.deadline
            switch due.key {
            case .forget(let key): remove(key)
            case .endDiscoverable(let index): setDiscoverable(false, of: index)
            case .dropLink(let key), .requestTimeout(let key):
                if serverLinks[key] == nil { order(.disconnect(key)) } else { endServerLink(key) }
            case .export(let key): exportDue(of: key)
            case .exportService(let key): exportService(key)
            case .endAdvertisement(let key): advertisementTimedOut(key)
            case .endAdvertisedDiscoverable(let key): advertisedDiscoverableEnded(key)
            case .packetTimeout(let packet): packetTimedOut(packet)
            case .resolveCentral(let key): centralResolved(key)
            case .confirmation(let key): confirmed(key)
            case .confirmationTimeout(let key): endServerLink(key)
            }
        }
        self.now = now
    }

    // MARK: Effects

    /// What is to be done now. Changes that were not said yet stay back until the daemon rests.
    mutating func takeEffects() -> [Effect] {
        defer { effects.removeAll(keepingCapacity: true) }
        return effects
    }

    /// The loop has come round: says what has changed since.
    mutating func rest() {
        guard !outbox.isEmpty else { return }
        for entry in outbox.drainAtRest() { say(entry) }
    }

    mutating func order(_ order: AirOrder) { effects.append(.order(order)) }

    mutating func emit(_ emission: Emission) { effects.append(.emit(emission)) }

    mutating func reply(_ call: CallID, _ answer: Answer = .values([])) {
        flush()
        effects.append(.reply(call, answer))
    }

    mutating func fail(_ call: CallID, _ error: DaemonError) {
        flush()
        effects.append(.fail(call, error))
    }

    /// Says all that has changed, before something that must not overtake it.
    mutating func flush() {
        guard !outbox.isEmpty else { return }
        for entry in outbox.drainBeforeReply() { say(entry) }
    }

    private mutating func say(_ entry: Outbox.Entry) {
        if entry.isNew {
            guard let state = state(of: entry.key) else { return }
            effects.append(.emit(.interfacesAdded(path: state.path, interfaces: state.interfaces)))
        } else if let emission = propertiesChanged(entry) {
            effects.append(.emit(emission))
        }
    }

    /// Says at once that an object is gone, after what was left to say about it; nothing at all when it was not
    /// announced yet.
    mutating func sayRemoved(_ key: ObjectKey, path: String, interfaces: [String]) {
        let left = outbox.take(key)
        if left?.isNew == true { return }
        if let left, let emission = propertiesChanged(left) { effects.append(.emit(emission)) }
        effects.append(.emit(.interfacesRemoved(path: path, interfaces: interfaces)))
    }

    // MARK: Bookkeeping

    mutating func nextSequence() -> Int {
        sequence += 1
        return sequence
    }

    /// Everything that is there goes without a word, as when the process is killed.
    mutating func forgetClients() {
        agents.removeAll()
        defaultAgents.removeAll()
        profiles.removeAll()
        ignoredRegistrations.removeAll()
        forgetLinks()
        forgetServing()
        outbox.removeAll()
        effects.removeAll()
        watched.removeAll()
        listened.removeAll()
    }

    /// Everything that programs have registered; the kernel ends the links of a daemon that is gone.
    private mutating func forgetServing() {
        databases.removeAll()
        applications.removeAll()
        advertisements.removeAll()
        announced.removeAll()
        serverLinks.removeAll()
        bondedConfigurations.removeAll()
        packets.removeAll()
        clientCalls.removeAll()
    }

    private mutating func forgetLinks() {
        connects.removeAll()
        disconnects.removeAll()
        removals.removeAll()
        disconnecting.removeAll()
        links.removeAll()
        tables.removeAll()
        subscribers.removeAll()
        exporting.removeAll()
        held.removeAll()
    }

    mutating func nextSocket() -> SocketID {
        socketNumber += 1
        return SocketID(number: socketNumber)
    }

    mutating func refreshWatches() {
        var owners = Set(agents.keys)
        owners.formUnion(subscribers.keys)
        for profile in profiles { owners.insert(profile.owner) }
        let serving = Set(applications.values.map(\.owner) + advertisements.values.joined().map(\.owner))
        owners.formUnion(serving)
        listen(to: serving)
        for adapter in adapters.values {
            for session in adapter.scanning + adapter.waiting { owners.insert(session.owner) }
        }
        guard owners != watched else { return }
        for client in owners.subtracting(watched).sorted() { effects.append(.watch(client: client)) }
        for client in watched.subtracting(owners).sorted() { effects.append(.unwatch(client: client)) }
        watched = owners
    }

    /// Programs that serve are listened to: their objects' properties change.
    private mutating func listen(to clients: Set<String>) {
        guard clients != listened else { return }
        for client in clients.subtracting(listened).sorted() { effects.append(.listen(client: client)) }
        for client in listened.subtracting(clients).sorted() { effects.append(.unlisten(client: client)) }
        listened = clients
    }
}
