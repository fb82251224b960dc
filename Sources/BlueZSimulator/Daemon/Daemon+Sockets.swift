import Foundation

/// `AcquireNotify` and `AcquireWrite`: packets over a socket in the place of messages over the bus.
extension Daemon {
    // MARK: Notifications

    mutating func acquireNotify(_ key: AttributeKey, by client: String, call: CallID) throws(DaemonError) {
        guard let characteristic = characteristic(key) else { throw .doesNotExist }
        guard links[key.device] != nil else { throw .notConnected }
        guard characteristic.notifySocket == nil else { throw .notPermitted("Notify acquired") }
        guard characteristic.clients.isEmpty else { throw .underWay }
        let flags = characteristic.laid.flags
        guard flags.contains(.notify) || traits.acquiresIndications && flags.contains(.indicate) else {
            throw .notSupported
        }
        change(key) { characteristic in
            characteristic.clients.append(NotifyClient(owner: client, isArmed: false))
            characteristic.notifySocket = .pending
            characteristic.isConfigured = true
        }
        countSubscriber(client, 1)
        configure(key, bits: flags.contains(.notify) ? 1 : 2, .acquire(handle: key.handle, owner: client, call: call))
    }

    /// The subscription is in effect, or was refused. What came before this moment is lost, as with BlueZ.
    mutating func acquired(_ key: AttributeKey, owner: String, call: CallID, _ result: AttributeResult) {
        guard case .pending? = characteristic(key)?.notifySocket else { return fail(call, .failed("Operation failed")) }
        guard case .bytes = result else {
            // The characteristic stays acquired until the link ends (`register_notify_io_cb`).
            guard traits.answersRefusedAcquisitions || links[key.device] == nil else { return }
            countSubscriber(owner, -1)
            change(key) { characteristic in
                characteristic.clients.removeAll { $0.owner == owner }
                characteristic.notifySocket = nil
                characteristic.isConfigured = false
            }
            if case .error(let code) = result { fail(call, .attribute(code)) }
            return
        }
        let socket = nextSocket()
        change(key) { characteristic in
            characteristic.notifySocket = .open(socket)
            for index in characteristic.clients.indices { characteristic.clients[index].isArmed = true }
        }
        open(socket, saying: .notifyAcquired, of: key, call: call)
    }

    private mutating func open(
        _ socket: SocketID, saying property: CharacteristicProperty, of key: AttributeKey, call: CallID
    ) {
        outbox.changed(.characteristic(property), of: .attribute(key))
        flush()
        effects.append(.openSocket(socket, call, mtu: links[key.device]?.mtu ?? 23))
    }

    mutating func closeNotifySocket(_ key: AttributeKey) {
        guard let socket = characteristic(key)?.notifySocket else { return }
        change(key) { $0.notifySocket = nil }
        guard let id = socket.id else { return }
        effects.append(.closeSocket(id))
        outbox.changed(.characteristic(.notifyAcquired), of: .attribute(key))
    }

    // MARK: Writing

    mutating func acquireWrite(_ key: AttributeKey, call: CallID) throws(DaemonError) {
        guard let characteristic = characteristic(key) else { throw .doesNotExist }
        guard !isClaimed(key) else { throw .notAuthorized }
        guard links[key.device] != nil else { throw .notConnected }
        guard characteristic.writeSocket == nil else { throw .notPermitted("Write acquired") }
        guard characteristic.laid.flags.contains(.writeWithoutResponse) else { throw .notSupported }
        let socket = nextSocket()
        change(key) { $0.writeSocket = .open(socket) }
        open(socket, saying: .writeAcquired, of: key, call: call)
    }

    /// Packets have come from a client, each a write command; what does not fit one is dropped without a word.
    mutating func packetsCame(_ packets: [[UInt8]], from socket: SocketID) {
        if served(packets, from: socket) { return }
        guard let key = owner(of: socket), let handle = characteristic(key)?.laid.valueHandle,
            let longest = links[key.device].map({ $0.mtu - 3 })
        else { return }
        for bytes in packets where !bytes.isEmpty && bytes.count <= longest {
            order(
                .request(
                    key.device,
                    AttributeRequest(
                        id: nextRequest(), kind: .write(handle: handle, offset: 0, bytes: bytes, type: .command))))
        }
    }

    // MARK: Ending

    /// The client has closed its end.
    mutating func socketClosed(_ socket: SocketID, now: TimeInterval) {
        self.now = now
        if servedSocketClosed(socket) { return }
        guard let key = owner(of: socket), let characteristic = characteristic(key) else { return }
        if characteristic.writeSocket?.id == socket {
            closeWriteSocket(key)
        } else if let client = characteristic.clients.first {
            leave(client.owner, key)
        }
        refreshWatches()
    }

    private mutating func closeWriteSocket(_ key: AttributeKey) {
        guard let socket = characteristic(key)?.writeSocket?.id else { return }
        change(key) { $0.writeSocket = nil }
        effects.append(.closeSocket(socket))
        outbox.changed(.characteristic(.writeAcquired), of: .attribute(key))
    }

    /// Without the link, which stays.
    mutating func loseSockets(of address: VirtualAddress) {
        for key in tables.keys.filter({ $0.address == address }).sorted(by: { $0.adapter < $1.adapter }) {
            closeSockets(of: key)
        }
        flush()
        refreshWatches()
    }

    /// With the link its sockets end, and do not come back with the next one.
    mutating func closeSockets(of key: DeviceKey) {
        for handle in tables[key]?.characteristics.keys.sorted() ?? [] {
            let attribute = AttributeKey(device: key, handle: handle)
            closeWriteSocket(attribute)
            guard let characteristic = characteristic(attribute), characteristic.notifySocket != nil else { continue }
            for client in characteristic.clients { countSubscriber(client.owner, -1) }
            change(attribute) { $0.clients = [] }
            closeNotifySocket(attribute)
        }
    }

    private func owner(of socket: SocketID) -> AttributeKey? {
        for (device, table) in tables {
            for (handle, characteristic) in table.characteristics
            where characteristic.notifySocket?.id == socket || characteristic.writeSocket?.id == socket {
                return AttributeKey(device: device, handle: handle)
            }
        }
        return nil
    }
}
