import Foundation

/// Links: `Connect`, `Disconnect`, and what comes of them.
extension Daemon {
    mutating func connect(_ key: DeviceKey, call: CallID) throws(DaemonError) {
        guard adapters[key.adapter]?.isPowered == true else { throw .failed("le-connection-adapter-not-powered") }
        guard let device = devices[key] else { throw .doesNotExist }
        // Also within the two seconds in which a Disconnect waits: the link then falls all the same.
        if device.isConnected { return reply(call) }
        makePermanent(key)
        guard connects[key] == nil else { throw traits.secondConnect }
        connects[key] = call
        order(.connect(key))
    }

    mutating func disconnect(_ key: DeviceKey, call: CallID) {
        cancelConnect(key)
        guard devices[key]?.isConnected == true else { return reply(call) }
        disconnects[key, default: []].append(call)
        beginDisconnection(of: key)
    }

    /// A connection that is being tried is given up: its caller is told so.
    private mutating func cancelConnect(_ key: DeviceKey) {
        guard let connect = connects.removeValue(forKey: key) else { return }
        order(.cancelConnection(key))
        fail(connect, .failed(traits.connectionCancelled))
    }

    /// Services first, the link two seconds later (`DISCONNECT_TIMER`).
    mutating func beginDisconnection(of key: DeviceKey) {
        guard !disconnecting.contains(key) else { return }
        disconnecting.insert(key)
        hideBattery(of: key)
        alarms.set(.dropLink(key), to: now + Self.disconnectDelay)
    }

    static let disconnectDelay: TimeInterval = 2

    // MARK: What the air says

    mutating func take(_ event: AirEvent, now: TimeInterval) {
        self.now = now
        switch event {
        case .linkUp(let key, let link): linkWentUp(key, link)
        case .linkFailed(let key): linkFailed(key)
        case .linkDown(let key, let reason): linkWentDown(key, reason)
        case .discovered(let key, let services, let identity): discovered(services, identity, of: key)
        case .servicesChanged(let key): servicesChanged(of: key)
        case .centralCame(let key, let identity): centralCame(key, identity)
        case .centralLeft(let key, let reason): centralLeft(key, reason)
        case .asked(let key, let request): serve(request, over: key)
        case .hostDiscovered(let key, let host):
            discovered(servedTable(of: host), AirIdentity(name: adapters[host]?.hardware.name), of: key)
        case .response(let key, let id, let result): responded(key, id, result)
        case .value(let key, let characteristic, let bytes):
            // By the hundred thousand: nothing here changes who must be watched.
            return valueCame(bytes, from: characteristic, of: key)
        case .central: break
        }
        refreshWatches()
    }

    /// BlueZ hears of the link from the kernel, tells of it, and answers `Connect` before it asks for services.
    private mutating func linkWentUp(_ key: DeviceKey, _ link: VirtualLink) {
        guard devices[key] != nil, let call = connects.removeValue(forKey: key) else {
            return order(.disconnect(key))
        }
        links[key] = HostLink(mtu: link.mtu, exportDelay: link.exportDelay)
        devices[key]?.isConnected = true
        alarms.remove(.forget(key))
        if !untoldConnections.contains(key.address) { outbox.changed(.device(.connected), of: .device(key)) }
        reply(call)
        rearmSubscriptions(of: key)
        order(.discover(key))
    }

    /// One word for every failure of its own.
    private mutating func linkFailed(_ key: DeviceKey) {
        var failures = connectFailures[key.address] ?? []
        let error = failures.isEmpty ? DaemonError.failed(traits.connectionFailure) : failures.removeFirst()
        connectFailures[key.address] = failures.isEmpty ? nil : failures
        if let call = connects.removeValue(forKey: key) { fail(call, error) }
        forgetLater(key)
    }

    /// The order of the radio lab: the services are not resolved, a `Connect` that waits is answered, the reason is
    /// said, those who wait for the end of the link are answered, the device is not connected, and what was asked over the link fails. A link that we end is told in two signals, with
    /// the reply between them; one that the peer ends in one.
    mutating func linkWentDown(_ key: DeviceKey, _ reason: LinkEndCause) {
        guard let link = links.removeValue(forKey: key) else { return }
        for alarm in [Alarm.dropLink(key), .requestTimeout(key), .export(key)] { alarms.remove(alarm) }
        for service in tables[key]?.services ?? [] {
            alarms.remove(.exportService(AttributeKey(device: key, handle: service.handle)))
        }
        disconnecting.remove(key)
        forgetSubscriptions(of: key)
        hideBattery(of: key)
        if devices[key]?.areServicesResolved == true {
            devices[key]?.areServicesResolved = false
            outbox.changed(.device(.servicesResolved), of: .device(key))
        }
        if reason == .local { flush() }
        if let call = connects.removeValue(forKey: key) { fail(call, .failed(traits.connectionCancelled)) }
        sayDisconnected(key, reason)
        for call in disconnects.removeValue(forKey: key) ?? [] { reply(call) }
        devices[key]?.isConnected = false
        // What was advertised before the link is forgotten with it.
        devices[key]?.uuids = []
        outbox.changed(.device(.connected), of: .device(key))
        failRequests(of: link, at: key)
        closeSockets(of: key)
        exported(key)
        forgetLater(key)
        guard let calls = removals.removeValue(forKey: key) else { return }
        if traits.diesOfRemovingConnected { return effects.append(.die) }
        for call in calls { reply(call) }
        remove(key)
    }

    /// Says why a link has ended, between `ServicesResolved` and `Connected`.
    mutating func sayDisconnected(_ key: DeviceKey, _ reason: LinkEndCause) {
        guard traits.signalsDisconnections, let device = devices[key] else { return }
        flush()
        if traits.hasBearers { emit(.disconnected(path: device.path, interface: InterfaceName.bearer, reason)) }
        emit(.disconnected(path: device.path, interface: InterfaceName.device, reason))
    }

    /// A temporary device has its half minute again.
    private mutating func forgetLater(_ key: DeviceKey) {
        guard devices[key]?.isTemporary == true else { return }
        alarms.set(.forget(key), to: now + Self.temporaryTimeout)
    }

    /// Every link of an adapter falls and every attempt ends, as when its power goes.
    mutating func endLinks(of index: Int) {
        for key in connects.keys.filter({ $0.adapter == index }).sorted() {
            order(.cancelConnection(key))
            if let call = connects.removeValue(forKey: key) { fail(call, .failed(traits.connectionFailure)) }
        }
        for key in links.keys.filter({ $0.adapter == index }).sorted() {
            order(.disconnect(key))
            linkWentDown(key, .unknown)
        }
        for key in serverLinks.keys.filter({ $0.adapter == index }).sorted() { endServerLink(key, .unknown) }
    }

    // MARK: Battery

    /// The interface that BlueZ adds to a device whose battery service it has read.
    mutating func hideBattery(of key: DeviceKey) {
        guard let device = devices[key], device.batteryLevel != nil else { return }
        flush()
        devices[key]?.batteryLevel = nil
        emit(.interfacesRemoved(path: device.path, interfaces: [InterfaceName.battery]))
    }
}
