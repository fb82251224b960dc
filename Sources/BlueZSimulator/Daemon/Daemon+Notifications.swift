import Foundation

/// Subscriptions: one for each client and characteristic, one configuration for all of them.
extension Daemon {
    mutating func startNotify(_ key: AttributeKey, by client: String, call: CallID) throws(DaemonError) {
        guard let characteristic = characteristic(key) else { throw .doesNotExist }
        guard characteristic.laid.canNotify else { throw .notSupported }
        guard characteristic.notifySocket == nil else { throw .notPermitted("Notify acquired") }
        if let session = characteristic.clients.first(where: { $0.owner == client }) {
            guard session.isArmed else { throw .underWay }
            return reply(call)
        }
        let isConnected = links[key.device] != nil
        change(key) { $0.clients.append(NotifyClient(owner: client, isArmed: false)) }
        countSubscriber(client, 1)
        // Without a link it is taken down, and put into effect when there is one.
        guard isConnected else { return reply(call) }
        arm(client, at: key, call: call)
    }

    mutating func stopNotify(_ key: AttributeKey, by client: String, call: CallID) throws(DaemonError) {
        guard characteristic(key)?.clients.contains(where: { $0.owner == client }) == true else {
            throw .failed("No notify session started")
        }
        leave(client, key)
        reply(call)
    }

    /// A client's session goes, with its wish or with its connection.
    mutating func leave(_ client: String, _ key: AttributeKey) {
        change(key) { $0.clients.removeAll { $0.owner == client } }
        countSubscriber(client, -1)
        closeNotifySocket(key)
        guard let characteristic = characteristic(key), !characteristic.clients.contains(where: \.isArmed) else {
            return
        }
        if characteristic.isConfigured, links[key.device] != nil {
            change(key) { $0.isConfigured = false }
            configure(key, bits: 0, .unsubscribe(handle: key.handle))
        }
        setNotifying(false, key)
    }

    mutating func endSubscriptions(of client: String) {
        for (device, table) in tables.sorted(by: { $0.key < $1.key }) {
            for (handle, characteristic) in table.characteristics.sorted(by: { $0.key < $1.key })
            where characteristic.clients.contains(where: { $0.owner == client }) {
                leave(client, AttributeKey(device: device, handle: handle))
            }
        }
    }

    // MARK: Putting into effect

    /// The first client's subscription is written to the peer; those after it need no more than that.
    private mutating func arm(_ client: String, at key: AttributeKey, call: CallID?) {
        guard let characteristic = characteristic(key) else { return }
        let purpose = HostRequest.subscribe(handle: key.handle, owner: client, call: call)
        let isBeingConfigured = links[key.device]?.requests.values.contains { other in
            if case .subscribe(key.handle, _, _) = other { true } else { false }
        }
        if characteristic.isConfigured, isBeingConfigured != true {
            return subscribed(key, owner: client, call: call, .bytes([]))
        }
        change(key) { $0.isConfigured = true }
        // Another that asks meanwhile writes the same again: the answers come in order.
        configure(key, bits: characteristic.laid.flags.contains(.notify) ? 1 : 2, purpose)
    }

    mutating func configure(_ key: AttributeKey, bits: UInt8, _ purpose: HostRequest) {
        send(
            purpose,
            AttributeRequest(id: nextRequest(), kind: .configure(characteristic: key.handle, bits: bits)), key.device)
    }

    mutating func subscribed(_ key: AttributeKey, owner: String, call: CallID?, _ result: AttributeResult) {
        guard characteristic(key)?.clients.contains(where: { $0.owner == owner }) == true else {
            // It has stopped in the meantime.
            if let call { reply(call) }
            return
        }
        guard case .bytes = result else {
            countSubscriber(owner, -1)
            change(key) { characteristic in
                characteristic.clients.removeAll { $0.owner == owner }
                if !characteristic.clients.contains(where: \.isArmed) { characteristic.isConfigured = false }
            }
            if case .error(let code) = result, let call { fail(call, .attribute(code)) }
            return
        }
        change(key) { characteristic in
            for index in characteristic.clients.indices where characteristic.clients[index].owner == owner {
                characteristic.clients[index].isArmed = true
            }
        }
        if characteristic(key)?.clients.contains(where: \.isArmed) == true { setNotifying(true, key) }
        if let call { reply(call) }
    }

    /// At the end of a link sessions stay, without effect. `Notifying` stays too: BlueZ does not look at it then.
    mutating func forgetSubscriptions(of key: DeviceKey) {
        for handle in (tables[key]?.characteristics.keys).map(Array.init) ?? [] {
            change(AttributeKey(device: key, handle: handle)) { characteristic in
                characteristic.isConfigured = false
                for index in characteristic.clients.indices { characteristic.clients[index].isArmed = false }
            }
        }
    }

    /// On a new link they come back by themselves, the earliest first.
    mutating func rearmSubscriptions(of key: DeviceKey) {
        for handle in (tables[key]?.characteristics.keys.sorted()) ?? [] {
            let attribute = AttributeKey(device: key, handle: handle)
            for client in characteristic(attribute)?.clients ?? [] where !client.isArmed {
                arm(client.owner, at: attribute, call: nil)
            }
        }
    }

    // MARK: Values

    /// A notification or an indication. 5.66 tells it once for each session, so that with two of them every client on
    /// the bus sees it twice.
    mutating func valueCame(_ bytes: [UInt8], from handle: UInt16, of device: DeviceKey) {
        let key = AttributeKey(device: device, handle: handle)
        guard let characteristic = characteristic(key) else { return }
        if let level = bytes.first, characteristic.laid.uuid == Self.batteryLevel, devices[device]?.batteryLevel != nil
        {
            setBatteryLevel(level, of: device)
        }
        switch characteristic.notifySocket {
        case .open(let socket): effects.append(.transmit(socket, bytes))
        case .pending: break
        case nil: for client in characteristic.clients where client.isArmed { setValue(bytes, of: key) }
        }
    }

    // MARK: Steps

    func characteristic(_ key: AttributeKey) -> RemoteCharacteristic? {
        tables[key.device]?.characteristics[key.handle]
    }

    mutating func change(_ key: AttributeKey, _ body: (inout RemoteCharacteristic) -> Void) {
        guard tables[key.device]?.characteristics[key.handle] != nil else { return }
        body(&tables[key.device]!.characteristics[key.handle]!)
    }

    private mutating func setNotifying(_ isNotifying: Bool, _ key: AttributeKey) {
        guard let characteristic = characteristic(key), characteristic.isNotifying != isNotifying else { return }
        change(key) { $0.isNotifying = isNotifying }
        outbox.changed(.characteristic(.notifying), of: .attribute(key))
    }

    /// Keeps count of each client's sessions, for which it must be watched.
    mutating func countSubscriber(_ client: String, _ difference: Int) {
        let count = (subscribers[client] ?? 0) + difference
        subscribers[client] = count > 0 ? count : nil
    }
}
