import Foundation

/// Subscriptions to the characteristics of programs, and what comes of them (`src/gatt-database.c`).
extension Daemon {
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
            unsubscribe(object, by: key)
            return nil
        }
        guard value <= 2, value != 1 || characteristic.properties.contains(.notify),
            value != 2 || characteristic.properties.contains(.indicate)
        else { return Self.improperlyConfigured }
        if notifySocket(of: characteristic, for: key) != nil {
            change(object) { $0.subscriptions += 1 }
        } else if characteristic.offersNotifySocket {
            callClient(
                application.owner, object.path, InterfaceName.characteristic, "AcquireNotify",
                [.options(options(key, offset: 0))], form: .socket, timeout: Self.proxyTimeout,
                for: .acquireNotify(object, key))
        } else {
            startNotify(object)
        }
        return nil
    }

    static let improperlyConfigured: UInt8 = 0xFD

    private mutating func startNotify(_ object: ObjectID) {
        guard let application = applications[object.application] else { return }
        callClient(
            application.owner, object.path, InterfaceName.characteristic, "StartNotify", form: .none, for: nil)
        change(object) { $0.subscriptions += 1 }
    }

    mutating func notifySocketAnswered(_ object: ObjectID, _ key: DeviceKey, _ answer: ClientReply) {
        switch answer {
        case .socket(let socket, _):
            // The central that it was asked for may have gone.
            guard isSubscribed(key, to: object) else { return effects.append(.closeSocket(socket)) }
            let isShared = traits.notificationSockets == .shared
            change(object) { characteristic in
                if isShared {
                    for place in characteristic.notifySockets.indices {
                        characteristic.notifySockets[place].isReplaced = true
                    }
                }
                characteristic.notifySockets.append(ServedSocket(id: socket, central: key))
                characteristic.subscriptions += 1
            }
        case .error("org.freedesktop.DBus.Error.NoReply", _), .error("org.bluez.Error.Failed", _): return
        case .error, .objects, .properties, .bytes, .done, .malformed: startNotify(object)
        }
    }

    private func isSubscribed(_ key: DeviceKey, to object: ObjectID) -> Bool {
        guard let application = applications[object.application],
            let characteristic = application.characteristics[object.path],
            let handle = databases[application.adapter]?.configurationHandle(of: characteristic.valueHandle)
        else { return false }
        return serverLinks[key]?.configurations[handle] ?? 0 != 0
    }

    /// The socket that a central's values come from; of no particular central, the oldest (`match_client_att`).
    private func notifySocket(of characteristic: ServedCharacteristicObject, for key: DeviceKey?) -> ServedSocket? {
        characteristic.notifySockets.first { socket in
            traits.notificationSockets == .shared ? !socket.isReplaced : key == nil || socket.central == key
        }
    }

    /// A central's link has ended (`att_disconnected`): unless it is bonded its subscriptions end, then its own sockets.
    mutating func endSubscriptions(over link: ServerLink, _ key: DeviceKey) {
        let handles = link.configurations.filter { $0.value != 0 }.keys.sorted()
        if link.isBonded { bondedConfigurations[key] = link.configurations }
        for handle in handles {
            guard let database = databases[key.adapter],
                case .configuration(let value)? = database.attributes[handle]?.content,
                case .object(let object)? = database.attributes[value]?.content
            else { continue }
            // The version that has a socket per central does not say which one has gone (bluez#1452).
            if !link.isBonded { unsubscribe(object, by: nil) }
        }
        if traits.notificationSockets != .shared { closeSockets(of: key, \.notifySockets) }
        if traits.hasWriteSocketPerCentral { closeSockets(of: key, \.writeSockets) }
    }

    private mutating func closeSockets(
        of key: DeviceKey, _ sockets: WritableKeyPath<ServedCharacteristicObject, [ServedSocket]>
    ) {
        for application in applications.values.sorted(by: { $0.id.number < $1.id.number }) {
            for (path, characteristic) in application.characteristics.sorted(by: { $0.key < $1.key }) {
                for socket in characteristic[keyPath: sockets] where socket.central == key {
                    effects.append(.closeSocket(socket.id))
                }
                change(ObjectID(application: application.id, path: path)) {
                    $0[keyPath: sockets].removeAll { $0.central == key }
                }
            }
        }
    }

    private mutating func unsubscribe(_ object: ObjectID, by key: DeviceKey?) {
        guard let application = applications[object.application],
            let characteristic = application.characteristics[object.path], characteristic.subscriptions > 0
        else { return }
        change(object) { $0.subscriptions -= 1 }
        let isLast = characteristic.subscriptions == 1
        if isLast || traits.notificationSockets != .shared,
            let socket = notifySocket(of: characteristic, for: key)
        {
            change(object) { $0.notifySockets.removeAll { $0.id == socket.id } }
            effects.append(.closeSocket(socket.id))
        } else if isLast {
            callClient(
                application.owner, object.path, InterfaceName.characteristic, "StopNotify", form: .none, for: nil)
        }
    }

    // MARK: Values

    /// A characteristic's `Value` has changed: whoever has subscribed to it gets it, whoever it is for.
    mutating func valueChanged(
        at path: String, of client: String, _ changed: [NamedValue], _ invalidated: [String]
    ) {
        for application in applications.values.sorted(by: { $0.id.number < $1.id.number })
        where application.owner == client {
            guard let characteristic = application.characteristics[path] else { continue }
            let object = ObjectID(application: application.id, path: path)
            for property in changed where property.name == "Value" {
                guard case .bytes(let bytes) = property.value else { continue }
                send(
                    bytes, fromHandle: characteristic.valueHandle, on: application.adapter,
                    confirmation: .call(object))
            }
            for name in invalidated where name == "Value" {
                send(
                    [], fromHandle: characteristic.valueHandle, on: application.adapter, confirmation: .call(object))
            }
        }
    }

    /// To every central of an adapter that has subscribed, or to one of them.
    mutating func send(
        _ bytes: [UInt8], fromHandle handle: UInt16, on index: Int, to central: DeviceKey? = nil,
        confirmation: ServerLink.Confirmation
    ) {
        guard let database = databases[index], let configuration = database.configurationHandle(of: handle) else {
            return
        }
        let indicatesOnly =
            traits.losesNotificationsBesideIndications
            && database.characteristic(withValue: handle)?.flags.contains(.indicate) == true
        for (key, link) in serverLinks.sorted(by: { $0.key < $1.key })
        where key.adapter == index && (central == nil || central == key) {
            let value = link.configurations[configuration] ?? 0
            guard value & (indicatesOnly ? 2 : 3) != 0 else { continue }
            let cut = Array(bytes.prefix(min(ServerExchange.longestValue, link.mtu - 3)))
            guard value & 2 != 0 else {
                deliver(cut, handle, to: key, isIndication: false)
                continue
            }
            serverLinks[key]?.indications.append(
                ServerLink.Indication(handle: handle, bytes: cut, confirmation: confirmation))
            if link.indications.isEmpty { indicate(key) }
        }
    }

    private mutating func deliver(_ bytes: [UInt8], _ handle: UInt16, to key: DeviceKey, isIndication: Bool) {
        guard let link = serverLinks[key] else { return }
        let uuid = databases[key.adapter]?.characteristic(withValue: handle)?.uuid ?? ""
        order(
            .deliver(
                link.end,
                ServedValue(handle: handle, characteristic: uuid, bytes: bytes, isIndication: isIndication)))
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
        switch indication.confirmation {
        case .none: break
        case .call(let object):
            guard let application = applications[object.application] else { break }
            callClient(
                application.owner, object.path, InterfaceName.characteristic, "Confirm", form: .none, for: nil)
        case .packet(let socket): effects.append(.transmit(socket, [1]))
        }
        indicate(key)
    }

    // MARK: Sockets

    /// Packets came out of a socket that a program has given for its values (`sock_io_read`).
    mutating func served(_ packets: [[UInt8]], from id: SocketID) -> Bool {
        guard let object = servedObject(with: id, \.notifySockets),
            let application = applications[object.application],
            let characteristic = application.characteristics[object.path],
            let socket = characteristic.notifySockets.first(where: { $0.id == id })
        else { return false }
        guard !socket.isDeaf else { return true }
        let confirmation: ServerLink.Confirmation =
            switch traits.socketConfirmation {
            case .call: .call(object)
            case .none: .none
            case .packet: .packet(id)
            }
        for bytes in packets.prefix(while: { !$0.isEmpty }) {
            send(
                bytes, fromHandle: characteristic.valueHandle, on: application.adapter,
                to: traits.notificationSockets == .routed ? socket.central : nil, confirmation: confirmation)
        }
        guard packets.contains([]) else { return true }
        change(object) { characteristic in
            for place in characteristic.notifySockets.indices where characteristic.notifySockets[place].id == id {
                characteristic.notifySockets[place].isDeaf = true
            }
        }
        return true
    }

    /// A program has closed its end of a socket; it is asked for another when it is needed.
    mutating func servedSocketClosed(_ id: SocketID) -> Bool {
        for sockets in [\ServedCharacteristicObject.notifySockets, \.writeSockets] {
            guard let object = servedObject(with: id, sockets) else { continue }
            change(object) { $0[keyPath: sockets].removeAll { $0.id == id } }
            return true
        }
        return false
    }

    private func servedObject(
        with id: SocketID, _ sockets: KeyPath<ServedCharacteristicObject, [ServedSocket]>
    ) -> ObjectID? {
        for application in applications.values {
            for (path, characteristic) in application.characteristics
            where characteristic[keyPath: sockets].contains(where: { $0.id == id }) {
                return ObjectID(application: application.id, path: path)
            }
        }
        return nil
    }
}
