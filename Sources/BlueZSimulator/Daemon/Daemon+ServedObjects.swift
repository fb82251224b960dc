import Foundation

/// What centrals do with the objects of programs (`src/gatt-database.c`).
extension Daemon {
    // MARK: Reading

    mutating func readAnswered(_ packet: PacketID, _ answer: ClientReply) {
        guard let pending = packets[packet], let link = serverLinks[pending.link] else { return }
        switch answer {
        case .bytes(let bytes):
            let longest = min(ServerExchange.longestValue, link.mtu - 1)
            packetAnswered(packet, .bytes(Array(bytes.prefix(longest))))
        case .error(let name, let message):
            packetAnswered(packet, .error(Self.code(name, message, notPermitted: ATTError.readNotPermitted)))
        case .objects, .properties, .done, .socket, .malformed:
            packetAnswered(packet, .error(ATTError.requestNotSupported))
        }
    }

    // MARK: Writing

    mutating func write(
        _ bytes: [UInt8], offset: Int, to object: ObjectID, over key: DeviceKey, packet id: PacketID?
    ) -> AttributeResult? {
        guard let application = applications[object.application] else { return .error(ATTError.unlikely) }
        guard let characteristic = application.characteristics[object.path] else {
            return call(object, bytes, offset, key, id)
        }
        if let socket = characteristic.writeSocket {
            effects.append(.transmit(socket, bytes))
            return .bytes([])
        }
        if characteristic.offersWriteSocket { return acquireWrite(object, bytes, key, id) }
        // Where commands are taken too, 5.66 answers requests without asking (`chrc_write_cb` gives no queue).
        guard !characteristic.properties.contains(.writeWithoutResponse) else {
            callWithoutAnswer(object, bytes, offset, key)
            return .bytes([])
        }
        return call(object, bytes, offset, key, id)
    }

    private mutating func call(
        _ object: ObjectID, _ bytes: [UInt8], _ offset: Int, _ key: DeviceKey, _ id: PacketID?
    ) -> AttributeResult? {
        guard let id else {
            callWithoutAnswer(object, bytes, offset, key)
            return nil
        }
        ask(
            object, "WriteValue", [.bytes(bytes), .options(options(key, offset: offset))], .nothing, .write(id), id,
            key)
        return nil
    }

    private mutating func callWithoutAnswer(_ object: ObjectID, _ bytes: [UInt8], _ offset: Int, _ key: DeviceKey) {
        guard let application = applications[object.application] else { return }
        callClient(
            application.owner, object.path, interface(of: object), "WriteValue",
            [.bytes(bytes), .options(options(key, offset: offset))], form: .none, for: nil)
    }

    mutating func writeAnswered(_ packet: PacketID, _ answer: ClientReply) {
        guard let pending = packets[packet] else { return }
        switch answer {
        case .error(let name, let message):
            packetAnswered(packet, .error(Self.code(name, message, notPermitted: ATTError.writeNotPermitted)))
        case .done:
            if pending.prepared != nil { setAuthorized(pending.object, true) }
            packetAnswered(packet, .bytes([]))
        case .objects, .properties, .bytes, .socket, .malformed:
            packetAnswered(packet, .error(ATTError.requestNotSupported))
        }
    }

    // MARK: Write sockets

    private mutating func acquireWrite(
        _ object: ObjectID, _ bytes: [UInt8], _ key: DeviceKey, _ id: PacketID?
    ) -> AttributeResult? {
        packetNumber += 1
        let packet = id ?? PacketID(number: packetNumber)
        let isAsked = applications[object.application]?.characteristics[object.path]?.waitingForSocket.isEmpty == false
        change(object) { $0.waitingForSocket.append(WaitingWrite(packet: packet, link: key, bytes: bytes)) }
        if id != nil {
            if packets[packet] == nil { packets[packet] = PendingPacket(link: key, object: object) }
            alarms.set(.packetTimeout(packet), to: now + Self.packetTimeout)
        }
        guard !isAsked, let application = applications[object.application] else { return nil }
        callClient(
            application.owner, object.path, Self.characteristicInterface, "AcquireWrite",
            [.options(options(key, offset: 0))], form: .socket, timeout: Self.proxyTimeout,
            for: .acquireWrite(object, packet))
        return nil
    }

    mutating func writeSocketAnswered(_ object: ObjectID, _ packet: PacketID, _ answer: ClientReply) {
        guard let waiting = applications[object.application]?.characteristics[object.path]?.waitingForSocket else {
            if case .socket(let socket, _) = answer { effects.append(.closeSocket(socket)) }
            return
        }
        switch answer {
        case .socket(let socket, _):
            change(object) { characteristic in
                characteristic.writeSocket = socket
                characteristic.waitingForSocket = []
            }
            for write in waiting {
                effects.append(.transmit(socket, write.bytes))
                packetAnswered(write.packet, .bytes([]))
            }
        case .error(let name, let message):
            let code = Self.code(name, message, notPermitted: ATTError.writeNotPermitted)
            // Those that came behind it wait on: 5.66 does not look at them again.
            guard code == ATTError.unlikely else { return packetAnswered(packet, .error(code)) }
            writeWithoutSocket(object, waiting)
        case .objects, .properties, .bytes, .done, .malformed:
            writeWithoutSocket(object, waiting)
        }
    }

    private mutating func writeWithoutSocket(_ object: ObjectID, _ waiting: [WaitingWrite]) {
        change(object) { $0.waitingForSocket = [] }
        for write in waiting {
            let key = write.link
            guard packets[write.packet] != nil else {
                if serverLinks[key] != nil { callWithoutAnswer(object, write.bytes, 0, key) }
                continue
            }
            ask(
                object, "WriteValue", [.bytes(write.bytes), .options(options(key, offset: 0))], .nothing,
                .write(write.packet), write.packet, key)
        }
    }

    // MARK: Subscribing

    /// A central writes the descriptor for subscriptions (`gatt_ccc_write_cb`, `ccc_write_cb`).
    mutating func configure(
        _ handle: UInt16, of valueHandle: UInt16, _ bytes: [UInt8], over key: DeviceKey
    ) -> AttributeResult? {
        guard let link = serverLinks[key], bytes.count <= 2, let low = bytes.first else {
            return .error(ATTError.invalidLength)
        }
        let value = UInt16(low) | UInt16(bytes.count > 1 ? bytes[1] : 0) << 8
        guard value != link.configurations[handle] ?? 0 else { return .bytes([]) }
        if case .object(let object)? = databases[key.adapter]?.attributes[valueHandle]?.content {
            if let code = subscribe(object, value, over: key) { return .error(code) }
        }
        serverLinks[key]?.configurations[handle] = value
        return .bytes([])
    }

    /// Gives the error code of what is refused.
    private mutating func subscribe(_ object: ObjectID, _ value: UInt16, over key: DeviceKey) -> UInt8? {
        guard let application = applications[object.application],
            let characteristic = application.characteristics[object.path]
        else { return ATTError.unlikely }
        guard value != 0 else {
            unsubscribe(object)
            return nil
        }
        guard value <= 2, value != 1 || characteristic.properties.contains(.notify),
            value != 2 || characteristic.properties.contains(.indicate)
        else { return Self.improperlyConfigured }
        if characteristic.notifySocket != nil {
            change(object) { $0.subscriptions += 1 }
        } else if characteristic.offersNotifySocket {
            callClient(
                application.owner, object.path, Self.characteristicInterface, "AcquireNotify",
                [.options(options(key, offset: 0))], form: .socket, timeout: Self.proxyTimeout,
                for: .acquireNotify(object))
        } else {
            startNotify(object)
        }
        return nil
    }

    static let improperlyConfigured: UInt8 = 0xFD

    private mutating func startNotify(_ object: ObjectID) {
        guard let application = applications[object.application] else { return }
        callClient(
            application.owner, object.path, Self.characteristicInterface, "StartNotify", form: .none, for: nil)
        change(object) { $0.subscriptions += 1 }
    }

    mutating func notifySocketAnswered(_ object: ObjectID, _ answer: ClientReply) {
        switch answer {
        case .socket(let socket, _):
            // Whoever has asked for it may have gone.
            guard hasSubscriber(object) else { return effects.append(.closeSocket(socket)) }
            change(object) { characteristic in
                characteristic.notifySocket = socket
                characteristic.subscriptions += 1
            }
        case .error("org.freedesktop.DBus.Error.NoReply", _), .error("org.bluez.Error.Failed", _): return
        case .error, .objects, .properties, .bytes, .done, .malformed: startNotify(object)
        }
    }

    private func hasSubscriber(_ object: ObjectID) -> Bool {
        guard let application = applications[object.application],
            let characteristic = application.characteristics[object.path],
            let handle = databases[application.adapter]?.configurationHandle(of: characteristic.valueHandle)
        else { return false }
        return serverLinks.contains {
            $0.key.adapter == application.adapter && $0.value.configurations[handle] ?? 0 != 0
        }
    }

    /// The central behind the descriptor with this handle has gone.
    mutating func unsubscribe(_ handle: UInt16, on index: Int) {
        guard let database = databases[index], case .configuration(let value)? = database.attributes[handle]?.content,
            case .object(let object)? = database.attributes[value]?.content
        else { return }
        unsubscribe(object)
    }

    private mutating func unsubscribe(_ object: ObjectID) {
        guard let application = applications[object.application],
            let characteristic = application.characteristics[object.path], characteristic.subscriptions > 0
        else { return }
        change(object) { $0.subscriptions -= 1 }
        guard characteristic.subscriptions == 1 else { return }
        if let socket = characteristic.notifySocket {
            change(object) { $0.notifySocket = nil }
            effects.append(.closeSocket(socket))
        } else {
            callClient(
                application.owner, object.path, Self.characteristicInterface, "StopNotify", form: .none, for: nil)
        }
    }

    // MARK: Values

    /// A characteristic's `Value` has changed: whoever has subscribed to it gets it, whoever it is for.
    mutating func valueChanged(
        at path: String, of client: String, _ changed: [RemoteProperty], _ invalidated: [String]
    ) {
        for application in applications.values.sorted(by: { $0.id.number < $1.id.number })
        where application.owner == client {
            guard let characteristic = application.characteristics[path] else { continue }
            let object = ObjectID(application: application.id, path: path)
            for property in changed where property.name == "Value" {
                guard case .bytes(let bytes) = property.value else { continue }
                send(bytes, fromHandle: characteristic.valueHandle, on: application.adapter, object: object)
            }
            for name in invalidated where name == "Value" {
                send([], fromHandle: characteristic.valueHandle, on: application.adapter, object: object)
            }
        }
    }

    /// To every central of an adapter that has subscribed.
    mutating func send(_ bytes: [UInt8], fromHandle handle: UInt16, on index: Int, object: ObjectID?) {
        guard let configuration = databases[index]?.configurationHandle(of: handle) else { return }
        for (key, link) in serverLinks.sorted(by: { $0.key < $1.key }) where key.adapter == index {
            let value = link.configurations[configuration] ?? 0
            guard value & 3 != 0 else { continue }
            let cut = Array(bytes.prefix(min(ServerExchange.longestValue, link.mtu - 3)))
            guard value & 2 != 0 else {
                deliver(cut, handle, to: key, isIndication: false)
                continue
            }
            serverLinks[key]?.indications.append(
                ServerLink.Indication(handle: handle, bytes: cut, object: object))
            if link.indications.isEmpty { indicate(key) }
        }
    }

    private mutating func deliver(_ bytes: [UInt8], _ handle: UInt16, to key: DeviceKey, isIndication: Bool) {
        guard let link = serverLinks[key] else { return }
        let uuid = databases[key.adapter]?.characteristic(handle)?.uuid ?? ""
        switch link.end {
        case .virtual(let number):
            tell(number, .value(handle: handle, characteristic: uuid, bytes, isIndication: isIndication))
        case .adapter(let client):
            order(.deliver(client, characteristic: handle - 1, bytes))
        }
    }

    /// The next indication goes out; the one after it when this one is confirmed.
    private mutating func indicate(_ key: DeviceKey) {
        guard let indication = serverLinks[key]?.indications.first else { return }
        alarms.set(.confirmationTimeout(key), to: now + Self.requestTimeout)
        deliver(indication.bytes, indication.handle, to: key, isIndication: true)
        if !unconfirming.contains(key.address) { alarms.set(.confirmation(key), to: now + Self.confirmationTime) }
    }

    static let confirmationTime: TimeInterval = 0.005

    /// A central has confirmed; the program is told.
    mutating func confirmed(_ key: DeviceKey) {
        guard let link = serverLinks[key], let indication = link.indications.first else { return }
        alarms.remove(.confirmationTimeout(key))
        serverLinks[key]?.indications.removeFirst()
        if let object = indication.object, let application = applications[object.application] {
            callClient(
                application.owner, object.path, Self.characteristicInterface, "Confirm", form: .none, for: nil)
        }
        indicate(key)
    }

    // MARK: Sockets

    /// Packets came out of a socket that a program has given for its values.
    mutating func served(_ packets: [[UInt8]], from socket: SocketID) -> Bool {
        for application in applications.values {
            for (path, characteristic) in application.characteristics where characteristic.notifySocket == socket {
                for bytes in packets where !bytes.isEmpty {
                    send(
                        bytes, fromHandle: characteristic.valueHandle, on: application.adapter,
                        object: ObjectID(application: application.id, path: path))
                }
                return true
            }
        }
        return false
    }

    /// A program has closed its end of a socket; it is asked for another when it is needed.
    mutating func servedSocketClosed(_ socket: SocketID) -> Bool {
        for application in applications.values {
            for (path, characteristic) in application.characteristics
            where characteristic.notifySocket == socket || characteristic.writeSocket == socket {
                change(ObjectID(application: application.id, path: path)) { object in
                    if object.notifySocket == socket { object.notifySocket = nil }
                    if object.writeSocket == socket { object.writeSocket = nil }
                }
                return true
            }
        }
        return false
    }

    // MARK: Steps

    private mutating func change(_ object: ObjectID, _ body: (inout ServedCharacteristicObject) -> Void) {
        guard applications[object.application]?.characteristics[object.path] != nil else { return }
        body(&applications[object.application]!.characteristics[object.path]!)
    }

    func wantsAuthorization(_ object: ObjectID) -> Bool {
        guard let application = applications[object.application] else { return false }
        if let characteristic = application.characteristics[object.path] {
            return characteristic.wantsAuthorization && !characteristic.isAuthorized
        }
        return application.descriptors[object.path].map { $0.wantsAuthorization && !$0.isAuthorized } ?? false
    }

    private mutating func setAuthorized(_ object: ObjectID, _ isAuthorized: Bool) {
        change(object) { $0.isAuthorized = isAuthorized }
        applications[object.application]?.descriptors[object.path]?.isAuthorized = isAuthorized
    }

    mutating func forgetAuthorization(_ object: ObjectID) { setAuthorized(object, false) }

    func isReliable(_ handle: UInt16, on index: Int) -> Bool {
        guard let database = databases[index], let characteristic = database.characteristic(handle) else {
            return false
        }
        return characteristic.descriptors.contains { descriptor in
            guard descriptor.uuid == AttributeTable.extendedProperties,
                case .value(let bytes)? = database.attributes[descriptor.handle]?.content
            else { return false }
            return (bytes.first ?? 0) & 1 != 0
        }
    }

    /// What a program's error becomes for the central (`dbus_error_to_att_ecode`).
    static func code(_ name: String, _ message: String, notPermitted: UInt8) -> UInt8 {
        switch name {
        case "org.bluez.Error.Failed":
            guard let number = number(message) else { return 0x80 }
            return (0x80...0x9F).contains(number) ? UInt8(number) : ATTError.unlikely
        case "org.bluez.Error.NotSupported": return ATTError.requestNotSupported
        case "org.bluez.Error.NotAuthorized": return ATTError.insufficientAuthorization
        case "org.bluez.Error.InvalidValueLength": return ATTError.invalidLength
        case "org.bluez.Error.InvalidOffset": return ATTError.invalidOffset
        case "org.bluez.Error.InProgress": return 0xFE
        case "org.bluez.Error.NotPermitted": return notPermitted
        default: return ATTError.unlikely
        }
    }

    /// As `strtol` reads it, with or without a base; nothing at all reads as 0.
    private static func number(_ text: String) -> Int? {
        if text.isEmpty { return 0 }
        if text.lowercased().hasPrefix("0x") { return Int(text.dropFirst(2), radix: 16) }
        return text.hasPrefix("0") ? Int(text, radix: 8) : Int(text)
    }
}
