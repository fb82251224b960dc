import Foundation

/// The adapters as servers: the links and requests of centrals, and the programs that serve the values
/// (`src/shared/gatt-server.c`, `src/gatt-database.c`).
struct GattServer: Sendable {
    var applications = Applications()
    /// By the serving adapter and the central's address.
    private(set) var links: [DeviceKey: ServerLink] = [:]
    /// What centrals have written to each descriptor for subscriptions, by the descriptor's handle. That of a bonded central
    /// outlives its link.
    private(set) var configurations: [DeviceKey: [UInt16: UInt16]] = [:]
    private var packetCount: UInt64 = 0
    /// A fault of 5.66: the daemon crashes if a central disconnects before a program has answered its request.
    var diesOfAbandonedAnswers = false

    mutating func reset() {
        applications = Applications()
        links = [:]
        configurations = [:]
    }

    // MARK: Applications

    mutating func unregister(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard let id = applications.application(call) else { throw .doesNotExist }
        // A registration that is under way gets no reply.
        remove(id, &core)
        core.reply(call.id)
    }

    mutating func objectsCame(_ id: ApplicationID, _ reply: ClientReply, _ core: inout Core) {
        guard let registered = applications.take(reply, for: id, &core) else { return }
        servicesChanged(registered.services, on: registered.adapter, &core)
        core.reply(registered.call)
    }

    private mutating func remove(_ id: ApplicationID, _ core: inout Core) {
        guard let application = applications.remove(id) else { return }
        for (_, link) in links.sorted(by: { $0.key < $1.key }) {
            guard let pending = link.pending, pending.object.application == id else { continue }
            answer(pending.id, .error(ATTError.requestNotSupported), &core)
        }
        servicesRemoved(applications.close(application, &core), on: application.adapter, &core)
    }

    mutating func clientLeft(_ client: String, _ core: inout Core) {
        for application in applications.all where application.owner == client { remove(application.id, &core) }
    }

    mutating func removeAdapter(_ index: Int, _ core: inout Core) {
        for application in applications.all where application.adapter == index { remove(application.id, &core) }
        applications.databases[index] = nil
    }

    mutating func removeService(at path: String, of client: String, _ core: inout Core) {
        for application in applications.all where application.owner == client {
            guard let gone = applications.removeService(at: path, of: application.id) else { continue }
            servicesRemoved([gone], on: application.adapter, &core)
        }
    }

    private mutating func servicesRemoved(_ services: [AttributeDatabase.Service], on index: Int, _ core: inout Core) {
        guard !services.isEmpty else { return }
        servicesChanged(services, on: index, &core)
        for (key, written) in configurations where key.adapter == index {
            configurations[key] = written.filter { entry in
                !services.contains { $0.range.contains(Int(entry.key)) }
            }
        }
    }

    /// Announces the adapter's UUIDs, and indicates the handles to centrals that subscribe to Service Changed. Other adapters
    /// discover the services again.
    private mutating func servicesChanged(_ services: [AttributeDatabase.Service], on index: Int, _ core: inout Core) {
        guard let database = applications.databases[index] else { return }
        let serviceChanged = database.handle("2a05", descriptor: nil) ?? 0
        let uuids = database.services.filter { $0.application != nil }.map(\.uuid)
        core.set(\.servedUUIDs, to: uuids, of: index, announcing: .uuids)
        for service in services {
            send(
                service.handle.bytes + UInt16(service.range.upperBound).bytes, from: serviceChanged, on: index,
                confirmation: .none, &core)
        }
        for (key, link) in links.sorted(by: { $0.key < $1.key }) where key.adapter == index {
            if case .adapter(let client) = link.end { core.order(.discover(client)) }
        }
    }

    /// The table of an adapter, as another one discovers it.
    func table(of index: Int) -> [AttributeDatabase.Service] { applications.databases[index]?.discovered ?? [] }

    // MARK: Links

    /// A central has connected. It gets an object of a device, as each device does.
    mutating func centralCame(_ key: DeviceKey, _ central: VirtualCentral, _ end: CentralEnd, _ core: inout Core) {
        guard core.tree.adapters[key.adapter]?.isPowered == true else { return core.order(.hangUp(end)) }
        if core.tree.devices[key] == nil {
            core.addDevice(key, central.addressType)
            core.flush()
        }
        links[key] = ServerLink(central: central, end: end)
        core.change(key) { $0.isConnected = true }
        if central.isBonded {
            core.change(key) { $0.isTemporary = $0.isTemporary && $0.isBonded }
            core.set(\.isPaired, to: true, of: key, announcing: .paired)
            core.set(\.isBonded, to: true, of: key, announcing: .bonded)
        }
        core.alarms.remove(.forget(key))
        core.announce(.connected, of: key)
        core.alarms.set(.resolveCentral(key), to: core.now + 0.1)
    }

    mutating func secured(_ key: DeviceKey, _ security: LinkSecurity) { links[key]?.security = security }

    /// BlueZ has read the central's own services, of which the simulator has none.
    func centralResolved(_ key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        core.change(key) { $0.areServicesResolved = true }
        core.announce(.servicesResolved, of: key)
        if let name = link.central.name { core.setName(name, of: key) }
    }

    /// A central's link has ended: so do its subscriptions, and its requests get no response. Returns whether there was one.
    mutating func centralLeft(_ key: DeviceKey, _ core: inout Core) -> Bool {
        guard let link = links.removeValue(forKey: key) else { return false }
        for alarm in [Alarm.confirmation(key), .confirmationTimeout(key), .resolveCentral(key)] {
            core.alarms.remove(alarm)
        }
        if let pending = link.pending, !diesOfAbandonedAnswers { core.alarms.remove(.packetTimeout(pending.id)) }
        endSubscriptions(of: key, &core)
        return true
    }

    // MARK: Requests

    mutating func serve(_ packet: ServerPacket, over key: DeviceKey, isCommand: Bool, _ core: inout Core) {
        packetCount += 1
        let id = PacketID(number: packetCount, link: key, wantsResponse: !isCommand)
        if let result = result(of: packet, id, &core), !isCommand { respond(key, result, &core) }
    }

    private func respond(_ key: DeviceKey, _ result: AttributeResult, _ core: inout Core) {
        if let link = links[key] { core.order(.respond(link.end, result)) }
    }

    private func isPending(_ packet: PacketID) -> Bool { links[packet.link]?.pending?.id == packet }

    /// Returns the result of a packet; nil if a program must be asked first.
    private mutating func result(of packet: ServerPacket, _ id: PacketID, _ core: inout Core) -> AttributeResult? {
        switch packet {
        case .read(let handle, let offset): return read(handle, offset, id, &core)
        case .write(let handle, let bytes): return write(handle, bytes, id, &core)
        case .prepare(let handle, let offset, let bytes): return prepare(handle, offset, bytes, id, &core)
        case .execute(false):
            links[id.link]?.prepared = []
            return .bytes([])
        case .execute(true):
            let prepared = links[id.link]?.prepared ?? []
            // Several values are a reliable write, which all of them must allow.
            if prepared.count > 1,
                prepared.contains(where: { !applications.isReliable($0.handle, on: id.link.adapter) })
            {
                links[id.link]?.prepared = []
                return .error(ATTError.requestNotSupported)
            }
            return execute(id, &core)
        }
    }

    private func attribute(_ handle: UInt16, of packet: PacketID) -> AttributeDatabase.Attribute? {
        applications.databases[packet.link.adapter]?.attributes[handle]
    }

    private mutating func read(
        _ handle: UInt16, _ offset: Int, _ packet: PacketID, _ core: inout Core
    ) -> AttributeResult? {
        guard let link = links[packet.link], let attribute = attribute(handle, of: packet) else {
            return .error(ATTError.invalidHandle)
        }
        if let code = attribute.permissions.refusal(ofWriting: false, over: link.security) { return .error(code) }
        switch attribute.content {
        case .value(let bytes):
            guard offset <= bytes.count else { return .error(ATTError.invalidOffset) }
            return .bytes(Array(bytes.dropFirst(offset).prefix(link.central.mtu - 1)))
        case .configuration: return .bytes((configurations[packet.link]?[handle] ?? 0).bytes)
        case .object(let object):
            ask(object, "ReadValue", [options(packet.link, offset: offset, core)], packet, &core) {
                $0.server.readReturned(packet, $1, &$0.core)
            }
            return nil
        }
    }

    /// A write that is no part of a longer one.
    private mutating func write(
        _ handle: UInt16, _ bytes: [UInt8], _ packet: PacketID, _ core: inout Core
    ) -> AttributeResult? {
        guard let attribute = attribute(handle, of: packet) else { return .error(ATTError.invalidHandle) }
        guard bytes.count <= core.traits.longestWrite else { return .error(ATTError.invalidLength) }
        let security = links[packet.link]?.security ?? .none
        if let code = attribute.permissions.refusal(ofWriting: true, over: security) { return .error(code) }
        switch attribute.content {
        case .value: return .bytes([])
        case .configuration: return configure(handle, bytes, over: packet.link, &core)
        case .object(let object): return write(bytes, offset: 0, to: object, packet, &core)
        }
    }

    private mutating func prepare(
        _ handle: UInt16, _ offset: Int, _ bytes: [UInt8], _ packet: PacketID, _ core: inout Core
    ) -> AttributeResult? {
        let key = packet.link
        guard let link = links[key], link.prepared.count < ServerLink.longestQueue else {
            return .error(Self.prepareQueueFull)
        }
        guard let attribute = attribute(handle, of: packet) else { return .error(ATTError.invalidHandle) }
        let limit = ServerExchange.longestValue
        guard bytes.count + 4 <= limit else { return .error(ATTError.invalidLength) }
        guard offset <= limit else { return .error(ATTError.invalidOffset) }
        guard bytes.count + 4 + offset <= limit else { return .error(ATTError.invalidLength) }
        if let code = attribute.permissions.refusal(ofWriting: true, over: link.security) { return .error(code) }
        switch attribute.content {
        case .value: break
        case .configuration: return .error(ATTError.invalidLength)
        case .object(let object):
            guard applications[object]?.needsAuthorization == true, core.tree.devices[key]?.isTrusted != true else {
                break
            }
            links[key]?.pending = ServerLink.PendingPacket(
                id: packet, object: object,
                prepared: ServerLink.PreparedWrite(handle: handle, offset: offset, bytes: bytes))
            let arguments = [.bytes([]), options(key, offset: offset, isAuthorizing: true, core)]
            ask(object, "WriteValue", arguments, packet, &core) { $0.server.writeReturned(packet, $1, &$0.core) }
            return nil
        }
        links[key]?.prepare(handle, offset, bytes)
        return .bytes([])
    }

    /// Executes what is prepared, one value after another.
    private mutating func execute(_ packet: PacketID, _ core: inout Core) -> AttributeResult? {
        let key = packet.link
        while let next = links[key]?.prepared.first {
            links[key]?.prepared.removeFirst()
            guard let object = applications.object(of: next.handle, on: key.adapter) else { continue }
            applications.change(object) { $0.isAuthorized = false }
            links[key]?.pending = ServerLink.PendingPacket(id: packet, object: object, isExecuting: true)
            guard let result = write(next.bytes, offset: next.offset, to: object, packet, &core) else { return nil }
            links[key]?.pending = nil
            if case .error = result {
                links[key]?.prepared = []
                return result
            }
        }
        return .bytes([])
    }

    private static let prepareQueueFull: UInt8 = 0x09
    private static let improperlyConfigured: UInt8 = 0xFD

    // MARK: Programs

    /// Calls an object of a program for a packet that waits for it.
    private mutating func ask(
        _ object: ObjectID, _ member: String, _ arguments: [BusValue], _ packet: PacketID, _ core: inout Core,
        _ handler: @escaping ReplyHandler
    ) {
        guard applications[object.application] != nil else { return }
        wait(for: object, packet, &core)
        applications.call(object, member, &core, arguments, reply: .values, handler)
    }

    private mutating func wait(for object: ObjectID, _ packet: PacketID, _ core: inout Core) {
        if !isPending(packet) {
            links[packet.link]?.pending = ServerLink.PendingPacket(id: packet, object: object)
        }
        core.alarms.set(.packetTimeout(packet), to: core.now + Self.packetTimeout)
    }

    /// `ATTRIBUTE_TIMEOUT` of `src/shared/gatt-db.c`, in seconds.
    private static let packetTimeout: TimeInterval = 5

    /// The options of a call, in BlueZ's order.
    private func options(_ key: DeviceKey, offset: Int = 0, isAuthorizing: Bool = false, _ core: Core) -> BusValue {
        var options: [NamedValue] = []
        if let device = core.tree.devices[key] {
            options.append(NamedValue(name: "device", value: .objectPath(device.path)))
        }
        if offset > 0 { options.append(NamedValue(name: "offset", value: .uint16(UInt16(offset)))) }
        options.append(NamedValue(name: "link", value: .string("LE")))
        if isAuthorizing { options.append(NamedValue(name: "prepare-authorize", value: .bool(true))) }
        options.append(NamedValue(name: "mtu", value: .uint16(UInt16(links[key]?.central.mtu ?? 23))))
        return .options(options)
    }

    private mutating func answer(_ packet: PacketID, _ result: AttributeResult, _ core: inout Core) {
        guard let pending = links[packet.link]?.pending, pending.id == packet else { return }
        links[packet.link]?.pending = nil
        core.alarms.remove(.packetTimeout(packet))
        var result = result
        if case .bytes = result {
            if let prepared = pending.prepared {
                links[packet.link]?.prepare(prepared.handle, prepared.offset, prepared.bytes)
            }
            if pending.isExecuting {
                guard let next = execute(packet, &core) else { return }
                result = next
            }
        } else if pending.isExecuting {
            links[packet.link]?.prepared = []
        }
        respond(packet.link, result, &core)
    }

    /// A program has not answered in time, or the central has disconnected before it did.
    mutating func packetTimedOut(_ id: PacketID, _ core: inout Core) {
        guard isPending(id) else {
            // 5.66 then uses a link that does not exist any more.
            if diesOfAbandonedAnswers { core.perform(.die) }
            return
        }
        answer(id, .error(ATTError.unlikely), &core)
    }

    mutating func readReturned(_ packet: PacketID, _ reply: ClientReply, _ core: inout Core) {
        guard isPending(packet), let link = links[packet.link] else { return }
        guard case .bytes(let bytes)? = reply.value else {
            return answer(packet, .error(reply.code(ATTError.readNotPermitted, core.traits)), &core)
        }
        answer(packet, .bytes(Array(bytes.prefix(min(ServerExchange.longestValue, link.central.mtu - 1)))), &core)
    }

    mutating func writeReturned(_ packet: PacketID, _ reply: ClientReply, _ core: inout Core) {
        guard let pending = links[packet.link]?.pending, pending.id == packet else { return }
        // BlueZ refuses only a second value.
        guard case .values(let values) = reply, values.count <= 1 else {
            return answer(packet, .error(reply.code(ATTError.writeNotPermitted, core.traits)), &core)
        }
        if pending.prepared != nil { applications.change(pending.object) { $0.isAuthorized = true } }
        answer(packet, .bytes([]), &core)
    }

    // MARK: Writing

    private mutating func write(
        _ bytes: [UInt8], offset: Int, to object: ObjectID, _ packet: PacketID, _ core: inout Core
    ) -> AttributeResult? {
        guard let served = applications[object] else { return .error(ATTError.unlikely) }
        let isPerCentral = core.traits.hasWriteSocketPerCentral
        if let socket = served.writeSockets.first(where: { !isPerCentral || $0.central == packet.link }) {
            core.perform(.transmit(socket.id, bytes))
            return .bytes([])
        }
        if served.offersWriteSocket {
            acquireWrite(object, bytes, packet, &core)
            return nil
        }
        // If commands are allowed too, BlueZ responds without asking (`chrc_write_cb` gives no queue).
        let isWaiting = packet.wantsResponse && !served.flags.contains(.writeWithoutResponse)
        writeValue(bytes, offset: offset, to: object, packet, isWaiting: isWaiting, &core)
        return isWaiting ? nil : .bytes([])
    }

    /// Calls `WriteValue`; if the packet does not wait for the reply, it asks for none.
    private mutating func writeValue(
        _ bytes: [UInt8], offset: Int, to object: ObjectID, _ packet: PacketID, isWaiting: Bool, _ core: inout Core
    ) {
        let arguments = [.bytes(bytes), options(packet.link, offset: offset, core)]
        guard isWaiting else { return applications.call(object, "WriteValue", &core, arguments) }
        ask(object, "WriteValue", arguments, packet, &core) { $0.server.writeReturned(packet, $1, &$0.core) }
    }

    /// Asks a program for a socket, once for all writes that wait for it.
    private mutating func acquireWrite(
        _ object: ObjectID, _ bytes: [UInt8], _ packet: PacketID, _ core: inout Core
    ) {
        let isAsked = applications[object]?.waitingForSocket.isEmpty == false
        applications.change(object) { $0.waitingForSocket.append(WaitingWrite(packet: packet, bytes: bytes)) }
        if packet.wantsResponse { wait(for: object, packet, &core) }
        guard !isAsked else { return }
        applications.call(object, "AcquireWrite", &core, [options(packet.link, core)], reply: .socket) {
            $0.server.writeSocketReturned(object, packet, $1, &$0.core)
        }
    }

    mutating func writeSocketReturned(
        _ object: ObjectID, _ packet: PacketID, _ reply: ClientReply, _ core: inout Core
    ) {
        guard let waiting = applications[object]?.waitingForSocket else {
            if case .socket(let socket) = reply { core.perform(.closeSocket(socket)) }
            return
        }
        if case .socket(let socket) = reply {
            applications.change(object) { characteristic in
                characteristic.writeSockets.append(ServedSocket(id: socket, central: packet.link))
                characteristic.waitingForSocket = []
            }
            for write in waiting {
                core.perform(.transmit(socket, write.bytes))
                answer(write.packet, .bytes([]), &core)
            }
            return
        }
        if case .error = reply {
            let code = reply.code(ATTError.writeNotPermitted, core.traits)
            // The writes behind it go on waiting: 5.66 does not look at them again.
            guard code == ATTError.unlikely else { return answer(packet, .error(code), &core) }
        }
        applications.change(object) { $0.waitingForSocket = [] }
        for write in waiting {
            let isWaiting = isPending(write.packet)
            guard isWaiting || links[write.packet.link] != nil else { continue }
            writeValue(write.bytes, offset: 0, to: object, write.packet, isWaiting: isWaiting, &core)
        }
    }

    // MARK: Subscriptions

    /// A central writes the descriptor for subscriptions (`gatt_ccc_write_cb`, `ccc_write_cb`).
    private mutating func configure(
        _ handle: UInt16, _ bytes: [UInt8], over key: DeviceKey, _ core: inout Core
    ) -> AttributeResult {
        guard (1...2).contains(bytes.count) else { return .error(ATTError.invalidLength) }
        let value = UInt16(bytes)
        guard value != configurations[key]?[handle] ?? 0 else { return .bytes([]) }
        if let object = applications.object(notifiedBy: handle, on: key.adapter),
            let characteristic = applications[object]
        {
            if value == 0 {
                applications.unsubscribe(object, by: key, &core)
            } else if value > 2 || !characteristic.flags.contains(value == 1 ? .notify : .indicate) {
                return .error(Self.improperlyConfigured)
            } else if applications.notifySocket(of: characteristic, for: key, core.traits) != nil {
                applications.change(object) { $0.subscriptions += 1 }
            } else if characteristic.offersNotifySocket {
                applications.call(object, "AcquireNotify", &core, [options(key, core)], reply: .socket) {
                    $0.server.notifySocketReturned(object, key, $1, &$0.core)
                }
            } else {
                applications.startNotify(object, &core)
            }
        }
        configurations[key, default: [:]][handle] = value
        return .bytes([])
    }

    mutating func notifySocketReturned(_ object: ObjectID, _ key: DeviceKey, _ reply: ClientReply, _ core: inout Core) {
        switch reply {
        case .socket(let socket):
            // The central may have disconnected or unsubscribed in the meantime.
            guard isSubscribed(key, to: object) else { return core.perform(.closeSocket(socket)) }
            let isShared = !core.traits.hasNotificationSocketPerCentral
            applications.change(object) { characteristic in
                if isShared {
                    for place in characteristic.notifySockets.indices {
                        characteristic.notifySockets[place].isReplaced = true
                    }
                }
                characteristic.notifySockets.append(ServedSocket(id: socket, central: key))
                characteristic.subscriptions += 1
            }
        case .error("org.freedesktop.DBus.Error.NoReply", _), .error("org.bluez.Error.Failed", _): return
        case .error, .values: applications.startNotify(object, &core)
        }
    }

    private func isSubscribed(_ key: DeviceKey, to object: ObjectID) -> Bool {
        guard let application = applications[object.application],
            let characteristic = applications[object],
            let handle = applications.databases[application.adapter]?.characteristic(
                withValue: characteristic.handle)?.configurationHandle
        else { return false }
        return links[key] != nil && configurations[key]?[handle] ?? 0 != 0
    }

    /// The link of a central has ended (`att_disconnected`): its subscriptions end unless it is bonded, then its sockets.
    private mutating func endSubscriptions(of key: DeviceKey, _ core: inout Core) {
        if core.tree.devices[key]?.isBonded != true {
            let written = configurations.removeValue(forKey: key) ?? [:]
            for handle in written.filter({ $0.value != 0 }).keys.sorted() {
                guard let object = applications.object(notifiedBy: handle, on: key.adapter) else { continue }
                // The versions with a socket per central close the oldest one here (bluez#1452).
                applications.unsubscribe(object, by: nil, &core)
            }
        }
        if core.traits.hasNotificationSocketPerCentral { applications.closeSockets(of: key, \.notifySockets, &core) }
        if core.traits.hasWriteSocketPerCentral { applications.closeSockets(of: key, \.writeSockets, &core) }
    }

    // MARK: Values

    /// The `Value` of an object has changed: all subscribers get it.
    mutating func valueChanged(
        at path: String, of client: String, _ changed: [NamedValue], _ invalidated: [String],
        _ core: inout Core
    ) {
        for application in applications.all where application.owner == client {
            guard let characteristic = application.objects[path] else { continue }
            var values: [[UInt8]] = changed.filter { $0.name == "Value" }.compactMap {
                if case .bytes(let bytes) = $0.value { bytes } else { nil }
            }
            values += invalidated.filter { $0 == "Value" }.map { _ in [] }
            for bytes in values {
                send(
                    bytes, from: characteristic.handle, on: application.adapter,
                    confirmation: .call(ObjectID(application: application.id, path: path)), &core)
            }
        }
    }

    /// Sends a value to the subscribers of an adapter, or to one of them.
    private mutating func send(
        _ bytes: [UInt8], from handle: UInt16, on index: Int, to central: DeviceKey? = nil,
        confirmation: ServerLink.Confirmation, _ core: inout Core
    ) {
        guard let characteristic = applications.databases[index]?.characteristic(withValue: handle),
            characteristic.canNotify, let configuration = characteristic.configurationHandle
        else { return }
        let indicatesOnly =
            core.traits.losesNotificationsBesideIndications && characteristic.flags.contains(.indicate)
        for (key, link) in links.sorted(by: { $0.key < $1.key })
        where key.adapter == index && (central == nil || central == key) {
            let bits = configurations[key]?[configuration] ?? 0
            guard bits & (indicatesOnly ? 2 : 3) != 0 else { continue }
            let value = CentralValue(
                characteristic: characteristic.uuid, handle: handle,
                bytes: Array(bytes.prefix(min(ServerExchange.longestValue, link.central.mtu - 3))),
                isIndication: bits & 2 != 0, seconds: core.now)
            guard value.isIndication else {
                core.order(.deliver(link.end, value))
                continue
            }
            links[key]?.indications.append(ServerLink.Indication(value: value, confirmation: confirmation))
            if link.indications.isEmpty { indicate(key, &core) }
        }
    }

    /// Sends the next indication; the one after it is sent when this one is confirmed.
    private func indicate(_ key: DeviceKey, _ core: inout Core) {
        guard let link = links[key], let indication = link.indications.first else { return }
        core.alarms.set(.confirmationTimeout(key), to: core.now + GattClient.requestTimeout)
        core.order(.deliver(link.end, indication.value))
        if link.central.confirmsIndications { core.alarms.set(.confirmation(key), to: core.now + 0.005) }
    }

    /// A central is out of range, before its link ends.
    mutating func vanished(_ key: DeviceKey) { links[key]?.central.confirmsIndications = false }

    mutating func confirmed(_ key: DeviceKey, _ core: inout Core) {
        guard let indication = links[key]?.indications.first else { return }
        core.alarms.remove(.confirmationTimeout(key))
        links[key]?.indications.removeFirst()
        switch indication.confirmation {
        case .none: break
        case .call(let object): applications.call(object, "Confirm", &core)
        case .packet(let socket): core.perform(.transmit(socket, [1]))
        }
        indicate(key, &core)
    }

    // MARK: Sockets

    /// Takes packets of a program's socket (`sock_io_read`). Returns false if the socket is not a program's.
    mutating func packetsCame(_ packets: [[UInt8]], from id: SocketID, _ core: inout Core) -> Bool {
        guard let object = applications.object(with: id, \.notifySockets),
            let application = applications[object.application],
            let characteristic = applications[object],
            let place = characteristic.notifySockets.firstIndex(where: { $0.id == id })
        else { return false }
        let socket = characteristic.notifySockets[place]
        guard !socket.isDeaf else { return true }
        let confirmation: ServerLink.Confirmation =
            core.traits.confirmsSocketsByPacket
            ? .packet(id) : core.traits.confirmsSocketsByCall ? .call(object) : .none
        for bytes in packets.prefix(while: { !$0.isEmpty }) {
            send(
                bytes, from: characteristic.handle, on: application.adapter,
                to: core.traits.routesNotificationSockets ? socket.central : nil, confirmation: confirmation,
                &core)
        }
        if packets.contains([]) { applications.change(object) { $0.notifySockets[place].isDeaf = true } }
        return true
    }
}

extension ClientReply {
    /// Returns what a program's error becomes for the central (`dbus_error_to_att_ecode`), or the error for a reply of
    /// another form than BlueZ expects.
    fileprivate func code(_ notPermitted: UInt8, _ traits: DaemonTraits) -> UInt8 {
        guard case .error(let name, let message) = self else { return ATTError.requestNotSupported }
        switch name {
        case "org.bluez.Error.Failed":
            guard traits.passesApplicationErrors, let number = Self.number(message) else { return 0x80 }
            return (0x80...0x9F).contains(number) ? UInt8(number) : ATTError.unlikely
        case "org.bluez.Error.NotSupported": return ATTError.requestNotSupported
        case "org.bluez.Error.NotAuthorized": return ATTError.insufficientAuthorization
        case "org.bluez.Error.InvalidValueLength": return ATTError.invalidLength
        case "org.bluez.Error.InvalidOffset": return ATTError.invalidOffset
        case "org.bluez.Error.InProgress": return 0xFE
        case "org.bluez.Error.NotPermitted": return notPermitted
        case "org.bluez.Error.ImproperlyConfigured" where traits.passesImproperlyConfigured: return 0xFD
        default: return ATTError.unlikely
        }
    }

    /// Reads a number as `strtol` does, with or without a base; an empty text is 0.
    private static func number(_ text: String) -> Int? {
        if text.isEmpty { return 0 }
        if text.lowercased().hasPrefix("0x") { return Int(text.dropFirst(2), radix: 16) }
        return text.hasPrefix("0") ? Int(text, radix: 8) : Int(text)
    }
}
