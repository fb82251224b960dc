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
                characteristic.isDeaf = false
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
                guard !characteristic.isDeaf else { return true }
                let object = ObjectID(application: application.id, path: path)
                for bytes in packets.prefix(while: { !$0.isEmpty }) {
                    send(bytes, fromHandle: characteristic.valueHandle, on: application.adapter, object: object)
                }
                if packets.contains([]) { change(object) { $0.isDeaf = true } }
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
}
