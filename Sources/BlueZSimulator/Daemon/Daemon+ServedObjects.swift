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
            packetAnswered(packet, .error(code(name, message, notPermitted: ATTError.readNotPermitted)))
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
        let isPerCentral = traits.hasWriteSocketPerCentral
        if let socket = characteristic.writeSockets.first(where: { !isPerCentral || $0.central == key }) {
            effects.append(.transmit(socket.id, bytes))
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
            packetAnswered(packet, .error(code(name, message, notPermitted: ATTError.writeNotPermitted)))
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
            application.owner, object.path, InterfaceName.characteristic, "AcquireWrite",
            [.options(options(key, offset: 0))], form: .socket, timeout: Self.proxyTimeout,
            for: .acquireWrite(object, packet, key))
        return nil
    }

    mutating func writeSocketAnswered(
        _ object: ObjectID, _ packet: PacketID, _ key: DeviceKey, _ answer: ClientReply
    ) {
        guard let waiting = applications[object.application]?.characteristics[object.path]?.waitingForSocket else {
            if case .socket(let socket, _) = answer { effects.append(.closeSocket(socket)) }
            return
        }
        switch answer {
        case .socket(let socket, _):
            change(object) { characteristic in
                characteristic.writeSockets.append(ServedSocket(id: socket, central: key))
                characteristic.waitingForSocket = []
            }
            for write in waiting {
                effects.append(.transmit(socket, write.bytes))
                packetAnswered(write.packet, .bytes([]))
            }
        case .error(let name, let message):
            let code = self.code(name, message, notPermitted: ATTError.writeNotPermitted)
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

    // MARK: Steps

    mutating func change(_ object: ObjectID, _ body: (inout ServedCharacteristicObject) -> Void) {
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
        databases[index]?.characteristic(withValue: handle)?.flags.contains(.reliableWrite) == true
    }

    /// What a program's error becomes for the central (`dbus_error_to_att_ecode`).
    func code(_ name: String, _ message: String, notPermitted: UInt8) -> UInt8 {
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
        case "org.bluez.Error.ImproperlyConfigured" where traits.passesImproperlyConfigured:
            return Self.improperlyConfigured
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
