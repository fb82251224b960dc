import Foundation

/// The calls that wait for a link or for its end, for links to peripherals and to centrals alike.
struct Connections: Sendable {
    private(set) var connects: [DeviceKey: CallID] = [:]
    private(set) var disconnects: [DeviceKey: [CallID]] = [:]
    /// Calls of `RemoveDevice` for connected devices.
    private(set) var removals: [DeviceKey: [CallID]] = [:]
    /// The errors of the next attempts to connect.
    var failures: [VirtualAddress: [DaemonError]] = [:]
    /// Devices whose `Connected` turns true without a signal.
    var silentConnections: Set<VirtualAddress> = []

    mutating func reset() {
        connects = [:]
        disconnects = [:]
        removals = [:]
    }

    // MARK: Calls

    /// Carries out `Connect`.
    ///
    /// - Parameter isPairing: Whether `Pair` of the device is under way.
    mutating func connect(
        _ key: DeviceKey, call: CallID, isPairing: Bool, _ core: inout Core
    ) throws(DaemonError) {
        guard core.tree.adapters[key.adapter]?.isPowered == true else {
            throw .failed("le-connection-adapter-not-powered")
        }
        guard let device = core.tree.devices[key] else { throw .doesNotExist }
        guard !isPairing || !core.traits.pairExcludesConnect else { throw .inProgress }
        // Also in the two seconds after Disconnect, although the link then ends.
        if device.isConnected { return core.reply(call) }
        core.makePermanent(key)
        guard connects[key] == nil else { throw core.traits.secondConnect }
        connects[key] = call
        // `Pair` makes the link then.
        if !isPairing { core.order(.connect(key)) }
    }

    mutating func disconnect(_ key: DeviceKey, call: CallID, _ core: inout Core) {
        if let connect = connects.removeValue(forKey: key) {
            core.order(.disconnect(key))
            core.fail(connect, .failed(core.traits.connectionCancelled))
        }
        guard core.tree.devices[key]?.isConnected == true else { return core.reply(call) }
        disconnects[key, default: []].append(call)
        beginDisconnection(of: key, &core)
    }

    /// Disconnects a device that is to be removed when its link has ended.
    mutating func remove(_ key: DeviceKey, call: CallID, _ core: inout Core) {
        removals[key, default: []].append(call)
        beginDisconnection(of: key, &core)
    }

    /// BlueZ ends the services first, and the link two seconds later (`DISCONNECT_TIMER`).
    private mutating func beginDisconnection(of key: DeviceKey, _ core: inout Core) {
        guard core.tree.devices[key]?.isDisconnecting == false else { return }
        core.change(key) { $0.isDisconnecting = true }
        core.hideBattery(of: key)
        core.alarms.set(.dropLink(key), to: core.now + 2)
    }

    // MARK: Events

    /// BlueZ announces the link and replies to `Connect` before it asks for services. Returns whether a call waits for
    /// the link.
    ///
    /// - Parameter isPairing: Whether `Pair` has made the link.
    mutating func linkWentUp(_ key: DeviceKey, mtu: Int, isPairing: Bool, _ core: inout Core) -> Bool {
        guard core.tree.devices[key] != nil, isPairing || connects[key] != nil else {
            core.order(.disconnect(key))
            return false
        }
        core.change(key) { device in
            device.isConnected = true
            device.mtu = mtu
        }
        core.alarms.remove(.forget(key))
        if !silentConnections.contains(key.address) { core.announce(.connected, of: key) }
        if let call = connects.removeValue(forKey: key) { core.reply(call) }
        return true
    }

    mutating func linkFailed(_ key: DeviceKey, _ core: inout Core) {
        var error = DaemonError.failed(core.traits.connectionFailure)
        if failures[key.address]?.isEmpty == false { error = failures[key.address]!.removeFirst() }
        if let call = connects.removeValue(forKey: key) { core.fail(call, error) }
        core.forgetLater(key)
    }

    /// Announces the end of a link, and replies to the calls that wait for it.
    ///
    /// The order is that of the radio tests: the services are not resolved, a waiting `Connect` fails, the reason is
    /// signalled, calls of `Disconnect` succeed, the device is not connected. The end of a link to a peripheral is
    /// announced in two signals if BlueZ has ended the link, with the reply between them, and in one otherwise.
    mutating func linkEnded(_ key: DeviceKey, _ reason: LinkEndCause, asCentral: Bool, _ core: inout Core) {
        core.alarms.remove(.dropLink(key))
        core.change(key) { $0.isDisconnecting = false }
        core.hideBattery(of: key)
        core.set(\.areServicesResolved, to: false, of: key, announcing: .servicesResolved)
        if asCentral {
            if reason == .local { core.flush() }
            if let call = connects.removeValue(forKey: key) {
                core.fail(call, .failed(core.traits.connectionCancelled))
            }
        }
        signalEnd(of: key, reason, &core)
        for call in disconnects.removeValue(forKey: key) ?? [] { core.reply(call) }
        core.change(key) { device in
            device.isConnected = false
            // What was advertised before the link is forgotten with it.
            if asCentral {
                device.mtu = nil
                device.uuids = []
            }
        }
        core.announce(.connected, of: key)
    }

    private func signalEnd(of key: DeviceKey, _ reason: LinkEndCause, _ core: inout Core) {
        guard core.traits.signalsDisconnections, let device = core.tree.devices[key] else { return }
        core.flush()
        if core.traits.hasBearers {
            core.emit(.disconnected(path: device.path, interface: InterfaceName.bearer, reason))
        }
        core.emit(.disconnected(path: device.path, interface: InterfaceName.device, reason))
    }

    /// Replies to the calls of `RemoveDevice` after the end of a link. Returns whether the device is to be removed.
    mutating func concludeRemoval(of key: DeviceKey, _ core: inout Core) -> Bool {
        guard let calls = removals.removeValue(forKey: key) else { return false }
        if core.traits.diesOfRemovingConnected {
            core.perform(.die)
            return false
        }
        for call in calls { core.reply(call) }
        return true
    }

    /// The attempts of an adapter to connect fail, because it goes off.
    mutating func endAttempts(of index: Int, _ core: inout Core) {
        for key in connects.keys.filter({ $0.adapter == index }).sorted() {
            core.order(.disconnect(key))
            if let call = connects.removeValue(forKey: key) {
                core.fail(call, .failed(core.traits.connectionFailure))
            }
        }
    }

    /// Forgets a device that is removed; BlueZ never replies to the calls that wait for its link (`device_free`).
    mutating func forget(_ key: DeviceKey, _ core: inout Core) {
        if connects.removeValue(forKey: key) != nil { core.order(.disconnect(key)) }
        disconnects[key] = nil
    }
}

extension Core {
    mutating func hideBattery(of key: DeviceKey) {
        guard let device = tree.devices[key], device.batteryLevel != nil else { return }
        flush()
        change(key) { $0.batteryLevel = nil }
        emit(.interfacesRemoved(path: device.path, interfaces: [InterfaceName.battery]))
    }
}
