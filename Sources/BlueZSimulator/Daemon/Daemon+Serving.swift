import Foundation

/// Centrals on the adapters that serve: their links and requests (`src/shared/gatt-server.c`).
extension Daemon {
    // MARK: Links

    /// A central has connected: there is a device for it, as for every other.
    mutating func centralCame(_ key: DeviceKey, _ central: CentralIdentity) {
        guard let adapter = adapters[key.adapter], adapter.isPowered else { return order(.hangUp(central.end)) }
        if devices[key] == nil {
            devices[key] = Device(
                key: key, adapterPath: adapter.path, addressType: central.addressType, sequence: nextSequence())
            outbox.added(.device(key))
            flush()
        }
        serverLinks[key] = ServerLink(
            end: central.end, mtu: central.mtu, name: central.name, isBonded: central.isBonded,
            configurations: bondedConfigurations.removeValue(forKey: key) ?? [:])
        devices[key]?.isConnected = true
        if central.isBonded { bond(key) }
        alarms.remove(.forget(key))
        outbox.changed(.device(.connected), of: .device(key))
        alarms.set(.resolveCentral(key), to: now + Self.resolvingTime)
    }

    private mutating func bond(_ key: DeviceKey) {
        guard devices[key]?.isBonded == false else { return }
        devices[key]?.isPaired = true
        devices[key]?.isBonded = true
        devices[key]?.isTemporary = false
        outbox.changed(.device(.paired), of: .device(key))
        outbox.changed(.device(.bonded), of: .device(key))
    }

    /// BlueZ has looked at the central's own services, of which nothing is to be seen here.
    mutating func centralResolved(_ key: DeviceKey) {
        guard let link = serverLinks[key], let device = devices[key] else { return }
        devices[key]?.areServicesResolved = true
        outbox.changed(.device(.servicesResolved), of: .device(key))
        guard let name = link.name, name != device.name else { return }
        devices[key]?.name = name
        outbox.changed(.device(.name), of: .device(key))
        if device.alias == nil { outbox.changed(.device(.alias), of: .device(key)) }
    }

    static let resolvingTime: TimeInterval = 0.1

    /// A central's link has ended: nobody subscribes for it any more, and what it asked is not answered.
    mutating func centralLeft(_ key: DeviceKey, _ reason: LinkEndCause) {
        guard let link = serverLinks.removeValue(forKey: key) else { return }
        for alarm in [
            Alarm.dropLink(key), .confirmation(key), .confirmationTimeout(key), .resolveCentral(key),
        ] {
            alarms.remove(alarm)
        }
        disconnecting.remove(key)
        for (packet, pending) in packets where pending.link == key {
            packets[packet] = nil
            if !diesOfAbandonedAnswers { alarms.remove(.packetTimeout(packet)) }
        }
        endSubscriptions(over: link, key)
        if devices[key]?.areServicesResolved == true {
            devices[key]?.areServicesResolved = false
            outbox.changed(.device(.servicesResolved), of: .device(key))
        }
        sayDisconnected(key, reason)
        for call in disconnects.removeValue(forKey: key) ?? [] { reply(call) }
        devices[key]?.isConnected = false
        outbox.changed(.device(.connected), of: .device(key))
        if devices[key]?.isTemporary == true { alarms.set(.forget(key), to: now + Self.temporaryTimeout) }
        guard let calls = removals.removeValue(forKey: key) else { return }
        if traits.diesOfRemovingConnected { return effects.append(.die) }
        for call in calls { reply(call) }
        remove(key)
    }

    /// The server ends a link; the central sees it go.
    mutating func endServerLink(_ key: DeviceKey, _ reason: LinkEndCause = .local) {
        guard let link = serverLinks[key] else { return }
        order(.hangUp(link.end))
        centralLeft(key, reason)
    }

    /// What an adapter serves, as another one finds it.
    func servedTable(of index: Int) -> [AttributeDatabase.Service] { databases[index]?.discovered ?? [] }

    // MARK: Requests

    /// A central asks for something. Commands do not wait for what was asked before.
    mutating func serve(_ request: AttributeRequest, over key: DeviceKey) {
        guard let link = serverLinks[key] else { return }
        if case .write(let handle, _, let bytes, .command) = request.kind {
            _ = write(handle, bytes, over: key, packet: nil)
            return
        }
        serverLinks[key]?.exchanges.append(ServerExchange(request, mtu: link.mtu))
        if link.exchanges.isEmpty { beginExchange(key) }
    }

    private mutating func beginExchange(_ key: DeviceKey) {
        guard var exchange = serverLinks[key]?.exchanges.first else { return }
        let step = exchange.begin(configuration: configurationHandle(for: exchange, on: key.adapter))
        serverLinks[key]?.exchanges[0] = exchange
        take(step, key)
    }

    private func configurationHandle(for exchange: ServerExchange, on index: Int) -> UInt16? {
        exchange.subscribed.flatMap { databases[index]?.configurationHandle(of: $0 + 1) }
    }

    private mutating func take(_ step: ServerExchange.Step, _ key: DeviceKey) {
        switch step {
        case .send(let packet):
            packetNumber += 1
            let id = PacketID(number: packetNumber)
            if let result = judge(packet, id, over: key) { continueExchange(key, result) }
        case .finish(let result):
            guard let link = serverLinks[key], let exchange = link.exchanges.first else { return }
            serverLinks[key]?.exchanges.removeFirst()
            order(.respond(link.end, id: exchange.id, result, packets: exchange.packets))
            beginExchange(key)
        }
    }

    private mutating func continueExchange(_ key: DeviceKey, _ result: AttributeResult) {
        guard var exchange = serverLinks[key]?.exchanges.first else { return }
        let step = exchange.answered(result)
        serverLinks[key]?.exchanges[0] = exchange
        take(step, key)
    }

    /// What a packet comes to; nil where a program must be asked first.
    private mutating func judge(_ packet: ServerPacket, _ id: PacketID, over key: DeviceKey) -> AttributeResult? {
        switch packet {
        case .read(let handle, let offset): return read(handle, offset, over: key, id)
        case .write(let handle, let bytes): return write(handle, bytes, over: key, packet: id)
        case .prepare(let handle, let offset, let bytes): return prepare(handle, offset, bytes, over: key, id)
        case .execute(false):
            serverLinks[key]?.prepared = []
            return .bytes([])
        case .execute(true):
            let prepared = serverLinks[key]?.prepared ?? []
            // With more than one value it is a reliable write, which all of them must allow.
            if prepared.count > 1, prepared.contains(where: { !isReliable($0.handle, on: key.adapter) }) {
                serverLinks[key]?.prepared = []
                return .error(ATTError.requestNotSupported)
            }
            return execute(key, id)
        }
    }

    private mutating func read(
        _ handle: UInt16, _ offset: Int, over key: DeviceKey, _ id: PacketID
    ) -> AttributeResult? {
        guard let link = serverLinks[key], let attribute = databases[key.adapter]?.attributes[handle] else {
            return .error(ATTError.invalidHandle)
        }
        if let code = attribute.permissions.refusal(ofWriting: false) { return .error(code) }
        switch attribute.content {
        case .value(let bytes):
            guard offset <= bytes.count else { return .error(ATTError.invalidOffset) }
            return .bytes(Array(bytes.dropFirst(offset).prefix(link.mtu - 1)))
        case .configuration:
            let value = link.configurations[handle] ?? 0
            return .bytes([UInt8(value & 0xFF), UInt8(value >> 8)])
        case .object(let object):
            ask(object, "ReadValue", [.options(options(key, offset: offset))], .bytes, .read(id), id, key)
            return nil
        }
    }

    /// A write that is no part of a longer one; the packet is nil for a command, which nobody answers.
    private mutating func write(
        _ handle: UInt16, _ bytes: [UInt8], over key: DeviceKey, packet id: PacketID?
    ) -> AttributeResult? {
        guard let attribute = databases[key.adapter]?.attributes[handle] else {
            return .error(ATTError.invalidHandle)
        }
        guard bytes.count <= traits.longestWrite else { return .error(ATTError.invalidLength) }
        if let code = attribute.permissions.refusal(ofWriting: true) { return .error(code) }
        switch attribute.content {
        case .value: return .bytes([])
        case .configuration(let value):
            return configure(handle, of: value, bytes, over: key)
        case .object(let object):
            return write(bytes, offset: 0, to: object, over: key, packet: id)
        }
    }

    private mutating func prepare(
        _ handle: UInt16, _ offset: Int, _ bytes: [UInt8], over key: DeviceKey, _ id: PacketID
    ) -> AttributeResult? {
        guard serverLinks[key].map({ $0.prepared.count < ServerLink.longestQueue }) == true else {
            return .error(Self.prepareQueueFull)
        }
        guard let attribute = databases[key.adapter]?.attributes[handle] else {
            return .error(ATTError.invalidHandle)
        }
        let limit = ServerExchange.longestValue
        guard bytes.count + 4 <= limit else { return .error(ATTError.invalidLength) }
        guard offset <= limit else { return .error(ATTError.invalidOffset) }
        guard bytes.count + 4 + offset <= limit else { return .error(ATTError.invalidLength) }
        if let code = attribute.permissions.refusal(ofWriting: true) { return .error(code) }
        switch attribute.content {
        case .value: break
        case .configuration: return .error(ATTError.invalidLength)
        case .object(let object):
            guard wantsAuthorization(object), devices[key]?.isTrusted != true else { break }
            packets[id] = PendingPacket(
                link: key, object: object,
                prepared: ServerLink.PreparedWrite(handle: handle, offset: offset, bytes: bytes))
            ask(
                object, "WriteValue", [.bytes([]), .options(options(key, offset: offset, isAuthorizing: true))],
                .nothing, .write(id), id, key)
            return nil
        }
        serverLinks[key]?.prepare(handle, offset, bytes)
        return .bytes([])
    }

    /// Executes what is prepared, one value after another.
    private mutating func execute(_ key: DeviceKey, _ id: PacketID) -> AttributeResult? {
        while let next = serverLinks[key]?.prepared.first {
            serverLinks[key]?.prepared.removeFirst()
            guard case .object(let object)? = databases[key.adapter]?.attributes[next.handle]?.content else {
                continue
            }
            forgetAuthorization(object)
            packets[id] = PendingPacket(link: key, object: object, isExecuting: true)
            guard let result = write(next.bytes, offset: next.offset, to: object, over: key, packet: id) else {
                return nil
            }
            packets[id] = nil
            if case .error = result {
                serverLinks[key]?.prepared = []
                return result
            }
        }
        return .bytes([])
    }

    static let prepareQueueFull: UInt8 = 0x09

    // MARK: Answers

    /// A program's answer, or what stands in its place.
    mutating func packetAnswered(_ id: PacketID, _ result: AttributeResult) {
        guard let pending = packets.removeValue(forKey: id) else { return }
        alarms.remove(.packetTimeout(id))
        var result = result
        if case .bytes = result {
            if let prepared = pending.prepared {
                serverLinks[pending.link]?.prepare(prepared.handle, prepared.offset, prepared.bytes)
            }
            if pending.isExecuting {
                guard let next = execute(pending.link, id) else { return }
                result = next
            }
        } else if pending.isExecuting {
            serverLinks[pending.link]?.prepared = []
        }
        continueExchange(pending.link, result)
    }

    /// A program has not answered in time, or the link has ended and nobody waits for its answer any more.
    mutating func packetTimedOut(_ id: PacketID) {
        guard packets[id] != nil else {
            // 5.66 then looks at a link that is no more.
            if diesOfAbandonedAnswers { effects.append(.die) }
            return
        }
        packetAnswered(id, .error(ATTError.unlikely))
    }

    /// `ATTRIBUTE_TIMEOUT` of `src/shared/gatt-db.c`.
    static let packetTimeout: TimeInterval = 5

    /// Calls a program's object for a packet that waits for it.
    mutating func ask(
        _ object: ObjectID, _ member: String, _ arguments: [BusValue], _ form: ClientCall.Form,
        _ purpose: CallPurpose?, _ id: PacketID, _ key: DeviceKey
    ) {
        guard let application = applications[object.application] else { return }
        if packets[id] == nil { packets[id] = PendingPacket(link: key, object: object) }
        alarms.set(.packetTimeout(id), to: now + Self.packetTimeout)
        callClient(
            application.owner, object.path, interface(of: object), member, arguments, form: form,
            timeout: Self.proxyTimeout, for: purpose)
    }

    static let proxyTimeout: Double = 300

    func interface(of object: ObjectID) -> String {
        applications[object.application]?.descriptors[object.path] == nil
            ? InterfaceName.characteristic : InterfaceName.descriptor
    }

    /// What BlueZ says of a request, in its order.
    func options(_ key: DeviceKey, offset: Int, isAuthorizing: Bool = false) -> [NamedValue] {
        var options: [NamedValue] = []
        if let device = devices[key] { options.append(NamedValue(name: "device", value: .objectPath(device.path))) }
        if offset > 0 { options.append(NamedValue(name: "offset", value: .uint16(UInt16(offset)))) }
        options.append(NamedValue(name: "link", value: .string("LE")))
        if isAuthorizing { options.append(NamedValue(name: "prepare-authorize", value: .bool(true))) }
        options.append(NamedValue(name: "mtu", value: .uint16(UInt16(serverLinks[key]?.mtu ?? 23))))
        return options
    }
}

/// A packet that waits for a program.
struct PendingPacket: Hashable, Sendable {
    let link: DeviceKey
    let object: ObjectID
    /// What is kept when the program allows it.
    var prepared: ServerLink.PreparedWrite?
    var isExecuting = false
}
