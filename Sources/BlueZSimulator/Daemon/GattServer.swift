import Foundation

/// The adapters as servers: the links and requests of centrals, and the programs that serve the values
/// (`src/shared/gatt-server.c`, `src/gatt-database.c`).
struct GattServer: Sendable {
    var applications = Applications()
    /// By the serving adapter and the central's address.
    var links: [DeviceKey: ServerLink] = [:]
    /// What centrals have written to each descriptor for subscriptions, by the descriptor's handle. That of a bonded central
    /// outlives its link.
    private(set) var configurations: [DeviceKey: [UInt16: UInt16]] = [:]

    // MARK: Applications

    mutating func unregister(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard let application = applications[call] else { throw .doesNotExist }
        // A registration that is under way gets no reply.
        remove(application, &core)
        core.reply(call.id)
    }

    /// Takes the objects of a program, and completes its registration, unless that was ended.
    mutating func objectsCame(_ id: ApplicationID, _ reply: ClientReply, _ core: inout Core) {
        guard let application = applications.byID[id], let call = application.registration,
            let database = applications.databases[application.adapter]
        else { return }
        var builder = ApplicationBuilder(database: database, application: application, traits: core.traits)
        let failure = builder.build(reply.value?.objects ?? [])
        // BlueZ writes the handles that it gave, and does not wait for a reply.
        for given in builder.handles {
            core.setProperty(
                "Handle", of: given.interface, to: .uint16(given.handle), at: given.path, of: application.owner)
        }
        applications.databases[application.adapter] = builder.database
        if let failure {
            // What was begun is removed, and its handles are not given again.
            _ = applications.remove(application, &core)
            return core.fail(call, failure)
        }
        applications.byID[id] = builder.application
        servicesChanged(builder.added, on: application.adapter, &core)
        core.reply(call)
    }

    private mutating func remove(_ application: LocalApplication, _ core: inout Core) {
        let services = applications.remove(application, &core)
        for (_, link) in links.sorted(by: { $0.key < $1.key }) {
            guard let pending = link.pending, pending.object.application == application.id else { continue }
            answer(pending.id, .error(ATTError.requestNotSupported), &core)
        }
        servicesRemoved(services, on: application.adapter, &core)
    }

    mutating func clientLeft(_ client: String, _ core: inout Core) {
        for application in applications.all where application.owner == client { remove(application, &core) }
    }

    mutating func removeAdapter(_ index: Int, _ core: inout Core) {
        for application in applications.all where application.adapter == index { remove(application, &core) }
        applications.databases[index] = nil
    }

    mutating func removeService(at path: String, of client: String, _ core: inout Core) {
        for application in applications.all where application.owner == client {
            servicesRemoved(applications.removeService(at: path, of: application), on: application.adapter, &core)
        }
    }

    private mutating func servicesRemoved(_ services: [AttributeDatabase.Service], on index: Int, _ core: inout Core) {
        guard !services.isEmpty else { return }
        servicesChanged(services, on: index, &core)
        for (key, written) in configurations where key.adapter == index {
            configurations[key] = written.filter { handle, _ in !services.contains { $0.range.contains(Int(handle)) } }
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
                service.handle.bytes + UInt16(service.range.upperBound).bytes, from: serviceChanged, on: index, &core)
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

    /// BlueZ has read the central's own services, of which the simulator has none.
    func centralResolved(_ key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        core.change(key) { $0.areServicesResolved = true }
        core.announce(.servicesResolved, of: key)
        if let name = link.central.name { core.setName(name, of: key) }
    }

    /// A central's link has ended (`att_disconnected`): its requests get no response, its subscriptions end unless it is
    /// bonded, then its sockets. Returns whether there was one.
    mutating func centralLeft(_ key: DeviceKey, _ core: inout Core) -> Bool {
        guard let link = links.removeValue(forKey: key) else { return false }
        core.alarms.remove(.confirmation(key), .confirmationTimeout(key), .resolveCentral(key))
        if let pending = link.pending, !core.faults.diesOfAbandonedAnswers {
            core.alarms.remove(.packetTimeout(pending.id))
        }
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
        return true
    }

    // MARK: Requests

    mutating func serve(_ packet: ServerPacket, over key: DeviceKey, isCommand: Bool, _ core: inout Core) {
        let id = PacketID(number: core.nextNumber(), link: key, wantsResponse: !isCommand)
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
        case .execute(let isConfirmed):
            let prepared = links[id.link]?.prepared ?? []
            let database = applications.databases[id.link.adapter]
            // Several values are a reliable write, which all of them must allow.
            let isAllowed =
                prepared.count <= 1
                || prepared.allSatisfy {
                    database?.characteristic(withValue: $0.handle)?.flags.contains(.reliableWrite) == true
                }
            if isConfirmed, isAllowed { return execute(id, &core) }
            links[id.link]?.prepared = []
            return isConfirmed ? .error(ATTError.requestNotSupported) : .bytes([])
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
            ask(object, "ReadValue", [options(packet.link, offset: offset, core)], packet, &core)
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
        let limit = Limits.valueLength.upperBound
        guard bytes.count + 4 <= limit else { return .error(ATTError.invalidLength) }
        guard offset <= limit else { return .error(ATTError.invalidOffset) }
        guard bytes.count + 4 + offset <= limit else { return .error(ATTError.invalidLength) }
        if let code = attribute.permissions.refusal(ofWriting: true, over: link.security) { return .error(code) }
        let part = ServerLink.PreparedWrite(handle: handle, offset: offset, bytes: bytes)
        switch attribute.content {
        case .value: break
        case .configuration: return .error(ATTError.invalidLength)
        case .object(let object):
            guard let served = applications[object], served.wantsAuthorization, !served.isAuthorized,
                core.tree.devices[key]?.isTrusted != true
            else { break }
            links[key]?.pending = ServerLink.PendingPacket(id: packet, object: object, prepared: part)
            let arguments = [.bytes([]), options(key, offset: offset, isAuthorizing: true, core)]
            ask(object, "WriteValue", arguments, packet, &core)
            return nil
        }
        links[key]?.prepare(part)
        return .bytes([])
    }

    /// Executes what is prepared, one value after another.
    private mutating func execute(_ packet: PacketID, _ core: inout Core) -> AttributeResult? {
        let key = packet.link
        while let next = links[key]?.prepared.first {
            links[key]?.prepared.removeFirst()
            guard let object = applications.object(of: next.handle, on: key.adapter) else { continue }
            applications[object]?.isAuthorized = false
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

    /// Calls `ReadValue` or `WriteValue` for a packet that waits for it.
    private mutating func ask(
        _ object: ObjectID, _ member: String, _ arguments: [BusValue], _ packet: PacketID, _ core: inout Core
    ) {
        wait(for: object, packet, &core)
        applications.call(object, member, &core, arguments, reply: .values) {
            $0.server.returned(packet, isRead: member == "ReadValue", $1, &$0.core)
        }
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
            if let part = pending.prepared { links[packet.link]?.prepare(part) }
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
        if isPending(id) { return answer(id, .error(ATTError.unlikely), &core) }
        // 5.66 then uses a link that does not exist any more.
        if core.faults.diesOfAbandonedAnswers { core.perform(.die) }
    }

    mutating func returned(_ packet: PacketID, isRead: Bool, _ reply: ClientReply, _ core: inout Core) {
        guard let link = links[packet.link], let pending = link.pending, pending.id == packet else { return }
        if isRead, let bytes = reply.value?.bytes {
            let limit = min(Limits.valueLength.upperBound, link.central.mtu - 1)
            return answer(packet, .bytes(Array(bytes.prefix(limit))), &core)
        }
        // Of the reply to a write BlueZ refuses only a second value.
        guard !isRead, case .values(let values) = reply, values.count <= 1 else {
            let notPermitted = isRead ? ATTError.readNotPermitted : ATTError.writeNotPermitted
            return answer(packet, .error(reply.code(notPermitted, core.traits)), &core)
        }
        if pending.prepared != nil { applications[pending.object]?.isAuthorized = true }
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
            applications[object]?.waitingForSocket.append((packet, bytes))
            if packet.wantsResponse { wait(for: object, packet, &core) }
            // The program is asked once for all writes that wait for the socket.
            guard served.waitingForSocket.isEmpty else { return nil }
            applications.call(object, "AcquireWrite", &core, [options(packet.link, core)], reply: .socket) {
                $0.server.writeSocketReturned(object, packet, $1, &$0.core)
            }
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
        ask(object, "WriteValue", arguments, packet, &core)
    }

    mutating func writeSocketReturned(
        _ object: ObjectID, _ packet: PacketID, _ reply: ClientReply, _ core: inout Core
    ) {
        guard let waiting = applications[object]?.waitingForSocket else {
            if case .socket(let socket) = reply { core.perform(.closeSocket(socket)) }
            return
        }
        let code = reply.code(ATTError.writeNotPermitted, core.traits)
        switch reply {
        case .socket(let socket):
            applications[object]?.writeSockets.append(ServedSocket(id: socket, central: packet.link))
            applications[object]?.waitingForSocket = []
            for write in waiting {
                core.perform(.transmit(socket, write.bytes))
                answer(write.packet, .bytes([]), &core)
            }
        // The writes behind it go on waiting: 5.66 does not look at them again.
        case .error where code != ATTError.unlikely: answer(packet, .error(code), &core)
        case .error, .values:
            applications[object]?.waitingForSocket = []
            for write in waiting where links[write.packet.link] != nil {
                let isWaiting = isPending(write.packet)
                writeValue(write.bytes, offset: 0, to: object, write.packet, isWaiting: isWaiting, &core)
            }
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
                applications[object]?.subscriptions += 1
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
            let database = applications.databases[key.adapter]
            let characteristic = applications[object].flatMap { database?.characteristic(withValue: $0.handle) }
            guard links[key] != nil, configurations[key]?[characteristic?.configurationHandle ?? 0] ?? 0 != 0 else {
                return core.perform(.closeSocket(socket))
            }
            if !core.traits.hasNotificationSocketPerCentral {
                for place in applications[object]?.notifySockets.indices ?? 0..<0 {
                    applications[object]?.notifySockets[place].isReplaced = true
                }
            }
            applications[object]?.notifySockets.append(ServedSocket(id: socket, central: key))
            applications[object]?.subscriptions += 1
        case .error("org.freedesktop.DBus.Error.NoReply", _), .error("org.bluez.Error.Failed", _): return
        case .error, .values: applications.startNotify(object, &core)
        }
    }

    // MARK: Values

    /// The `Value` of an object has changed: all subscribers get it.
    mutating func valueChanged(
        at path: String, of client: String, _ changed: [NamedValue], _ invalidated: [String],
        _ core: inout Core
    ) {
        for application in applications.all where application.owner == client {
            guard let characteristic = application.objects[path] else { continue }
            var values = changed.filter { $0.name == "Value" }.compactMap(\.value.bytes)
            values += invalidated.filter { $0 == "Value" }.map { _ in [] }
            for bytes in values {
                send(
                    bytes, from: characteristic.handle, on: application.adapter,
                    confirming: ObjectID(application: application.id, path: path), &core)
            }
        }
    }

    /// Sends a value to the subscribers of an adapter, or to one of them. The confirmation of an indication calls the object,
    /// or sends a packet to the socket.
    private mutating func send(
        _ bytes: [UInt8], from handle: UInt16, on index: Int, to central: DeviceKey? = nil,
        confirming object: ObjectID? = nil, by socket: SocketID? = nil, _ core: inout Core
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
                bytes: Array(bytes.prefix(min(Limits.valueLength.upperBound, link.central.mtu - 3))),
                isIndication: bits & 2 != 0, seconds: core.now)
            guard value.isIndication else {
                core.order(.deliver(link.end, value))
                continue
            }
            links[key]?.indications.append((value, object, socket))
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

    mutating func confirmed(_ key: DeviceKey, _ core: inout Core) {
        guard let indication = links[key]?.indications.first else { return }
        core.alarms.remove(.confirmationTimeout(key))
        links[key]?.indications.removeFirst()
        if let object = indication.object { applications.call(object, "Confirm", &core) }
        if let socket = indication.socket { core.perform(.transmit(socket, [1])) }
        indicate(key, &core)
    }

    // MARK: Sockets

    /// Takes packets of a program's socket (`sock_io_read`). Returns false if the socket is not a program's.
    mutating func packetsCame(_ packets: [[UInt8]], from id: SocketID, _ core: inout Core) -> Bool {
        guard let object = applications.object(with: id, \.notifySockets), let characteristic = applications[object],
            let place = characteristic.notifySockets.firstIndex(where: { $0.id == id })
        else { return false }
        let socket = characteristic.notifySockets[place]
        guard !socket.isDeaf else { return true }
        let traits = core.traits
        for bytes in packets.prefix(while: { !$0.isEmpty }) {
            send(
                bytes, from: characteristic.handle, on: socket.central.adapter,
                to: traits.routesNotificationSockets ? socket.central : nil,
                confirming: traits.routesNotificationSockets ? nil : object,
                by: traits.confirmsSocketsByPacket ? id : nil, &core)
        }
        if packets.contains([]) { applications[object]?.notifySockets[place].isDeaf = true }
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
