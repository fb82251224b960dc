import Foundation

/// `bluetoothd` as a value without a bus, a thread or a clock: the time, calls, events of the link layer and faults go in,
/// effects come out.
///
/// It routes each to the part that it concerns, and does itself what concerns several parts: power, the removal of
/// devices, and the clients that are watched.
struct Daemon: Sendable {
    let version: BlueZVersion
    private let interfaces: [String: InterfaceTable<Daemon>]
    var core: Core
    var discovery = Discovery()
    var connections = Connections()
    var client = GattClient()
    var server = GattServer()
    var advertising = Advertising()

    /// A fault: whether registrations are accepted and not processed.
    var ignoresRegistrations = false { didSet { settle() } }
    /// Calls that came while objects were put on the bus, and registrations that are not processed.
    private var held: [MethodCall] = []
    /// What BlueZ has stored of the adapters that were unplugged or stopped, by their addresses.
    private var storage: [VirtualAddress: (alias: String?, devices: [Device])] = [:]
    /// Clients that have something here, which ends with their connection to the bus.
    private var watched: Set<String> = []

    init(version: BlueZVersion = .default) {
        self.version = version
        let traits = DaemonTraits(version)
        core = Core(traits: traits)
        interfaces = InterfaceTable.all(core.tree.properties, traits)
    }

    // MARK: Calls

    mutating func receive(_ call: MethodCall) {
        perform(call)
        settle()
    }

    private mutating func perform(_ call: MethodCall) {
        if call.interface == InterfaceName.peer, call.member == "Ping" { return core.reply(call.id) }
        do {
            try dispatch(call)
        } catch {
            core.fail(call.id, error as? DaemonError ?? .failed("\(error)"))
        }
    }

    private mutating func dispatch(_ call: MethodCall) throws {
        let present = core.tree.interfaces(at: call.path)
        guard !present.isEmpty else { throw DaemonError.unhandled("UnknownObject", call) }
        let name = call.interface ?? present.first { interfaces[$0]?.method(call.member) != nil } ?? ""
        guard present.contains(name), let method = interfaces[name]?.method(call.member),
            call.signature == method.signature
        else { throw DaemonError.unhandled("UnknownMethod", call) }
        guard !isHeld(call) else { return held.append(call) }
        if let refusal = core.faults.refusal { throw refusal }
        var call = call
        call.object = core.tree.key(at: call.path)
        if case .attribute(let key)? = call.object, core.tree.attribute(key)?.interface == name,
            core.faults.unanswering[key.device.address]
        {
            return
        }
        try method.handler(&self, call)
    }

    private func isHeld(_ call: MethodCall) -> Bool {
        client.isExporting(core) || ignoresRegistrations && Self.registrations.contains(call.member)
    }

    private static let registrations: Set = ["RegisterApplication", "RegisterAdvertisement"]

    func introspection(at path: String) -> String {
        InterfaceTable.introspection(
            of: core.tree.interfaces(at: path).compactMap { interfaces[$0] }, children: core.tree.children(of: path))
    }

    func properties(of interface: String, at path: String) throws(DaemonError) -> [NamedValue] {
        guard let key = core.tree.key(at: path), core.tree.interfaces(of: key).contains(interface) else {
            throw .invalidArgs("No such interface '\(interface)'")
        }
        return core.tree.values(of: interface, key)
    }

    mutating func setProperty(_ call: MethodCall) throws(DaemonError) {
        let (interface, name) = (call.text(0), call.text(1))
        guard case .variant(let value) = call.arguments[2] else { throw .invalidSignature(name) }
        switch (call.object, interface) {
        case (.adapter(let index)?, InterfaceName.adapter):
            try setAdapterProperty(name, to: value, of: index, call: call.id)
        case (.device(let key)?, InterfaceName.device): try setDeviceProperty(name, to: value, of: key, call: call.id)
        case (_, InterfaceName.advertisingManager), (_, InterfaceName.gattManager), (_, InterfaceName.battery),
            (.attribute?, _):
            throw .notWritable(name)
        default: throw .invalidArgs("No such interface '\(interface)'")
        }
    }

    // MARK: Clients

    /// A client's connection to the bus has ended, and with it what it has registered here.
    mutating func clientLeft(_ client: String) {
        for key in discovery.clientLeft(client, &core) { remove(key) }
        self.client.clientLeft(client, &core)
        server.clientLeft(client, &core)
        advertising.clientLeft(client, &core)
        connections.clientLeft(client, &core)
        held.removeAll { $0.client == client }
        settle()
    }

    /// A client has replied to a call of one of its objects, or the call has failed.
    mutating func clientReplied(_ id: UInt64, _ reply: ClientReply) {
        if let handler = core.replyHandlers.removeValue(forKey: id) {
            handler(&self, reply)
        } else if case .socket(let socket) = reply {
            core.perform(.closeSocket(socket))
        }
        settle()
    }

    mutating func clientSignalled(_ signal: Emission, _ client: String) {
        switch signal {
        case .propertiesChanged(let path, InterfaceName.characteristic, let changed, let invalidated):
            server.valueChanged(at: path, of: client, changed, invalidated, &core)
        case .propertiesChanged(let path, InterfaceName.advertisement, let changed, let invalidated):
            advertising.changed(at: path, of: client, changed, invalidated, &core)
        case .interfacesRemoved(let path, let interfaces) where interfaces.contains(InterfaceName.service):
            server.removeService(at: path, of: client, &core)
        default: return
        }
        settle()
    }

    /// Packets have come out of a socket. An empty one is the end, as BlueZ reads it.
    mutating func packetsCame(_ packets: [[UInt8]], from socket: SocketID) {
        if !server.packetsCame(packets, from: socket, &core) { client.packetsCame(packets, from: socket, &core) }
    }

    mutating func loseSockets(of address: VirtualAddress) {
        client.loseSockets(of: address, &core)
        settle()
    }

    mutating func socketClosed(_ socket: SocketID) {
        if !server.applications.socketClosed(socket) { client.socketClosed(socket, &core) }
        settle()
    }

    /// After each event: carries out the calls that had to wait, and watches the clients that have something here.
    private mutating func settle() {
        for key in connections.pending.sorted() where core.tree.devices[key]?.areServicesResolved == true {
            connections.conclude(key, &core)
        }
        while let place = held.firstIndex(where: { !isHeld($0) }) { perform(held.remove(at: place)) }
        let owners = Set(
            connections.agents.owners + discovery.owners + client.owners + server.applications.owners
                + advertising.owners + held.map(\.client))
        for client in owners.subtracting(watched).sorted() { core.perform(.watch(client: client)) }
        for client in watched.subtracting(owners).sorted() { core.perform(.unwatch(client: client)) }
        watched = owners
    }

    // MARK: The link layer

    mutating func take(_ event: LinkLayerEvent) {
        switch event {
        case .central(.virtual, _): return
        // There may be hundreds of thousands, and none changes which clients are watched.
        case .central(.adapter(let key), .value(let value)): return client.valueCame(value, of: key, &core)
        case .central(.adapter(let key), .connected(let link)): linkWentUp(key, link)
        case .central(.adapter(let key), .failed): connections.linkFailed(key, &core)
        case .central(.adapter(let key), .disconnected(let reason)): linkEnded(key, reason, asCentral: true)
        case .central(.adapter(let key), .response(let id, let result)): client.responded(key, id, result, &core)
        case .discovered(let key, let services, let name): client.discovered(services, name: name, of: key, &core)
        case .centralCame(let key, let central, let end): server.centralCame(key, central, end, &core)
        case .centralLeft(let key, let reason): linkEnded(key, reason, asCentral: false)
        case .asked(let key, let packet, let isCommand):
            server.serve(packet, over: key, isCommand: isCommand, &core)
        case .central(_, .security): return
        case .security(let key, let news): take(news, of: key)
        case .hostDiscovered(let key, let host):
            let name = core.tree.adapters[host]?.hardware.name
            client.discovered(server.table(of: host), name: name, of: key, &core)
        }
        settle()
    }

    mutating func received(_ sighting: Sighting) { discovery.received(sighting, &core) }

    /// The link of a paired device is encrypted before anything else; `Connect` does not wait for that. From 5.81 on the link
    /// of a device that is to be paired waits too.
    private mutating func linkWentUp(_ key: DeviceKey, _ link: VirtualLink) {
        guard connections.linkWentUp(key, mtu: link.mtu, &core) else { return }
        let isWaiting =
            core.tree.devices[key]?.isPaired == true
            || connections.isPairing(key) && core.traits.pairsLinkWithItsCapability
        client.linkWentUp(key, exportDelay: link.exportDelay, isSecured: isWaiting, &core)
        connections.secure(key, &core)
    }

    private mutating func take(_ news: SecurityNews, of key: DeviceKey) {
        let isServed = server.links[key] != nil
        switch news {
        case .asked(let question): connections.asked(question, key, isServed: isServed, &core)
        case .secured(let security):
            server.links[key]?.security = security
            if !isServed { client.secured(key, security, &core) }
        case .paired(let isBonded, let privacy):
            connections.paired(key, isBonded: isBonded, privacy, isServed: isServed, &core)
        // The end of the link is the next event.
        case .failed(.linkLost): return
        case .failed(let failure):
            connections.pairingFailed(failure, key, &core)
            client.pairingFailed(failure, key, &core)
        }
    }

    /// A link has ended, of the adapter as the central or as the peripheral. A device may have both.
    private mutating func linkEnded(_ key: DeviceKey, _ reason: LinkEndCause, asCentral: Bool) {
        let link = asCentral ? client.linkWentDown(key, &core) : nil
        guard link != nil || !asCentral && server.centralLeft(key, &core) else { return }
        connections.linkEnded(key, reason, asCentral: asCentral, &core)
        if let link { client.conclude(link, of: key, &core) }
        core.forgetLater(key)
        if connections.concludeRemoval(of: key, &core) { removeWithKeys(key) }
    }

    /// Ends the link of a central, if there is one.
    private mutating func hangUp(_ key: DeviceKey, _ reason: LinkEndCause = .local) {
        guard let link = server.links[key] else { return }
        core.order(.hangUp(link.end))
        linkEnded(key, reason, asCentral: false)
    }

    // MARK: Time

    mutating func timePassed(to now: TimeInterval) {
        while let due = core.alarms.popDue(at: now) {
            core.now = due.deadline
            switch due.key {
            case .forget(let key): remove(key)
            case .endDiscoverable(let index):
                core.set(\.isDiscoverable, to: false, of: index, announcing: .discoverable)
            case .endPairable(let index): core.setPairable(false, of: index)
            case .pageTimeout(let key): connections.failPairing(key, .pageTimeout, &core)
            case .agentAnswer(let number, let answer): connections.agents.answer(number, answer, &core)
            case .dropLink(let key), .requestTimeout(let key):
                if server.links[key] == nil { core.order(.disconnect(key)) } else { hangUp(key) }
            case .export(let key): client.exportDue(of: key, &core)
            case .exportService(let key): client.exportService(key, &core)
            case .endAdvertisement(let key): advertising.timedOut(key, &core)
            case .endAdvertisedDiscoverable(let key): advertising.discoverableEnded(key)
            case .packetTimeout(let packet): server.packetTimedOut(packet, &core)
            case .resolveCentral(let key): server.centralResolved(key, &core)
            case .confirmation(let key): server.confirmed(key, &core)
            case .confirmationTimeout(let key): hangUp(key)
            }
            settle()
        }
        core.now = now
    }

    // MARK: Devices

    /// Adds a device from BlueZ's storage: it is permanent, and has no strength until it is received.
    mutating func remember(_ peripheral: VirtualPeripheral, on index: Int) {
        let key = DeviceKey(adapter: index, address: peripheral.address)
        guard core.tree.devices[key] == nil else { return }
        let report = AdvertisingReport(peripheral.advertisement)
        core.addDevice(key, peripheral.addressType) { device in
            device.name = report.name ?? peripheral.name
            device.uuids = report.uuids
            device.appearance = report.appearance
            device.isTemporary = false
            device.isConnectable = true
        }
    }

    /// Removes a device with its links and its objects.
    mutating func remove(_ key: DeviceKey) {
        guard core.tree.devices[key] != nil else { return }
        connections.forget(key, &core)
        hangUp(key)
        client.remove(key, &core)
        core.removeDevice(key)
        // The calls that waited for its objects.
        if !held.isEmpty { settle() }
    }

    mutating func removeWithKeys(_ key: DeviceKey) {
        core.order(.forget(key, isStored: true))
        remove(key)
    }

    mutating func removeDevice(_ call: MethodCall) throws(DaemonError) {
        guard case .device(let key)? = core.tree.key(at: call.path(0)), key.adapter == call.adapter,
            let device = core.tree.devices[key]
        else { throw .doesNotExist }
        guard core.tree.adapters[key.adapter]?.isPowered == true else { throw .notReady }
        if core.traits.diesOfLostAcquisitions, client.hasLostAcquisition(key) { return core.perform(.die) }
        // The link ends first, which takes two seconds.
        guard !device.isConnected else { return connections.remove(key, call: call.id, &core) }
        removeWithKeys(key)
        core.reply(call.id)
    }

    private mutating func setDeviceProperty(
        _ name: String, to value: BusValue, of key: DeviceKey, call: CallID
    ) throws(DaemonError) {
        guard let property = core.tree.properties.device[name] else { throw .noSuchProperty(name) }
        guard property.isWritable else { throw .notWritable(name) }
        switch (name, value) {
        case ("Alias", .string(let text)):
            core.set(\.alias, to: text.isEmpty ? nil : text, of: key, announcing: property)
        case ("Trusted", .bool(let isTrusted)): core.set(\.isTrusted, to: isTrusted, of: key, announcing: property)
        case ("Blocked", .bool(let isBlocked)): core.set(\.isBlocked, to: isBlocked, of: key, announcing: property)
        default: throw .invalidSignature(name)
        }
        core.reply(call)
    }

    // MARK: Adapters

    private mutating func setAdapterProperty(
        _ name: String, to value: BusValue, of index: Int, call: CallID
    ) throws(DaemonError) {
        guard let property = core.tree.properties.adapter[name] else { throw .noSuchProperty(name) }
        guard property.isWritable else { throw .notWritable(name) }
        guard let adapter = core.tree.adapters[index], value.signature == property.signature else {
            throw .invalidSignature(name)
        }
        switch name {
        case "Powered" where value != .bool(adapter.isPowered):
            return try switchPower(value == .bool(true), of: index, call: call)
        case "Discoverable" where adapter.discoverableTimeout > 0 && !adapter.isPowered: throw .failed("Not Powered")
        default: core.reply(call)
        }
        switch (name, value) {
        case ("Alias", .string(let alias)):
            core.set(\.alias, to: alias.isEmpty ? nil : alias, of: index, announcing: property)
        case ("Pairable", .bool(let isOn)): core.setPairable(isOn, of: index)
        case ("Connectable", .bool(let isOn)): core.set(\.isConnectable, to: isOn, of: index, announcing: property)
        case ("Discoverable", .bool(let isOn)):
            discovery.discoverableWasSet(on: index)
            core.set(\.isDiscoverable, to: isOn, of: index, announcing: property)
            let timeout = adapter.discoverableTimeout
            core.setAlarm(.endDiscoverable(index), after: timeout, if: isOn && timeout > 0)
        case ("DiscoverableTimeout", .uint32(let seconds)):
            core.tree.adapters[index]?.discoverableTimeout = seconds
            core.announce(property, of: index)
        case ("PairableTimeout", .uint32(let seconds)):
            core.tree.adapters[index]?.pairableTimeout = seconds
            core.announce(property, of: index)
            core.setPairable(adapter.isPairable, of: index)
        default: break
        }
    }

    /// A client switches an adapter, or another program that is not on this bus, which has no `call`. When it goes off the
    /// temporary devices are removed first, then the reply is sent.
    mutating func switchPower(_ isOn: Bool, of index: Int, call: CallID? = nil) throws(DaemonError) {
        guard let adapter = core.tree.adapters[index], adapter.isPowered != isOn else { return }
        if isOn, adapter.isBlocked { throw .blocked }
        if call != nil {
            core.set(\.powerState, to: isOn ? .enabling : .disabling, of: index, announcing: .powerState)
        }
        for device in core.tree.devices(of: index) where !isOn && device.isTemporary { remove(device.key) }
        if !isOn { endLinks(of: index) }
        if let call { core.reply(call) }
        powerChanged(to: isOn, on: index)
    }

    /// Ends every link and every attempt to connect.
    private mutating func endLinks(of index: Int) {
        connections.endAttempts(of: index, &core)
        for key in client.links.keys.filter({ $0.adapter == index }).sorted() {
            core.order(.disconnect(key))
            linkEnded(key, .unknown, asCentral: true)
        }
        for key in server.links.keys.filter({ $0.adapter == index }).sorted() { hangUp(key, .unknown) }
    }

    private mutating func powerChanged(to isOn: Bool, on index: Int) {
        guard let adapter = core.tree.adapters[index], adapter.isPowered != isOn else { return }
        if !isOn { endLinks(of: index) }
        core.set(\.isPowered, to: isOn, of: index, announcing: .powered)
        core.set(
            \.powerState, to: isOn ? .on : adapter.isBlocked ? .blocked : .off, of: index, announcing: .powerState)
        if !isOn { for key in discovery.adapterStopped(index, &core) { remove(key) } }
        core.announce(.deviceClass, of: index)
        settle()
    }

    /// rfkill blocks the adapter, or unblocks it; then BlueZ switches it on (`AutoEnable`).
    mutating func setBlocked(_ isBlocked: Bool, on index: Int) {
        core.tree.adapters[index]?.isBlocked = isBlocked
        if !isBlocked, core.tree.adapters[index]?.isPowered == false {
            core.set(\.powerState, to: .enabling, of: index, announcing: .powerState)
            core.flush()
        }
        powerChanged(to: !isBlocked, on: index)
    }

    /// Stores what outlives an adapter's object: its alias, and the devices that are not temporary.
    private mutating func store(_ adapter: Adapter) {
        let devices = core.tree.devices(of: adapter.hardware.index).filter { !$0.isTemporary }
        storage[adapter.hardware.address] = (adapter.alias, devices.map(\.stored))
    }

    /// An adapter is plugged in, with the devices and the keys that BlueZ has stored for it.
    mutating func addAdapter(_ hardware: VirtualAdapter, remembering peripherals: [VirtualPeripheral]) {
        core.add(Adapter(hardware, version: version))
        server.applications.databases[hardware.index] = AttributeDatabase(
            name: hardware.name, hasAddressResolution: core.traits.hasAddressResolution, version: version)
        connections.agents.introduce(hardware.index, &core)
        if let storage = storage[hardware.address] {
            core.tree.adapters[hardware.index]?.alias = storage.alias
            for device in storage.devices where device.key.adapter == hardware.index { core.restore(device) }
        }
        core.order(.loadKeys(hardware.address))
        for peripheral in peripherals where peripheral.isRemembered { remember(peripheral, on: hardware.index) }
    }

    /// An adapter is pulled out: its devices are removed first, then its own object.
    mutating func removeAdapter(_ index: Int) {
        guard let adapter = core.tree.adapters[index] else { return }
        store(adapter)
        server.removeAdapter(index, &core)
        advertising.removeAdapter(index, &core)
        for device in core.tree.devices(of: index) { remove(device.key) }
        discovery.scans[index] = nil
        core.removeAdapter(index)
        core.alarms.remove(.endDiscoverable(index), .endPairable(index))
        settle()
    }

    // MARK: The process

    /// The process is killed: everything that clients have here ends without a signal.
    mutating func forgetClients() {
        held = []
        var agents = connections.agents
        agents.reset()
        connections = Connections()
        connections.agents = agents
        client = GattClient()
        server = GattServer()
        advertising = Advertising()
        core.silence()
        watched = []
    }

    /// The process starts. Sessions, filters and temporary devices are gone; stored devices are there again without a
    /// strength.
    mutating func restart(_ hardware: [VirtualAdapter], remembering peripherals: [VirtualPeripheral]) {
        let before = core.tree
        for adapter in before.adapters.values { store(adapter) }
        forgetClients()
        discovery = Discovery()
        core.alarms = DeadlineQueue()
        core.tree.removeAll()
        for adapter in hardware {
            addAdapter(adapter, remembering: peripherals)
            guard before.adapters[adapter.index]?.isBlocked == true else { continue }
            core.tree.adapters[adapter.index]?.isBlocked = true
            core.tree.adapters[adapter.index]?.isPowered = false
            core.tree.adapters[adapter.index]?.powerState = .blocked
        }
        // There is no signal for them: a client that starts now asks for all objects.
        core.silence()
        for adapter in hardware { core.order(.loadKeys(adapter.address)) }
    }
}
