import Foundation

/// The calls of devices that wait for a link, for its end or for a pairing (`src/device.c`), and the pairings that peers and
/// protected attributes lead to. Links to peripherals and to centrals are alike.
struct Connections: Sendable {
    /// A call of `Pair` that has no reply yet.
    private struct Bonding: Sendable {
        /// The caller. BlueZ asks the caller's agent, and the default agent if this is nil.
        let client: String?
        /// Nil for a program that is not on the bus, and if there is no reply.
        var call: CallID?
        /// Whether the link is made for it.
        let ownsLink: Bool
        /// Whether it waits for that link.
        var isConnecting: Bool
    }

    var agents = Agents()
    private(set) var connects: [DeviceKey: CallID] = [:]
    private(set) var disconnects: [DeviceKey: [CallID]] = [:]
    /// Calls of `RemoveDevice` for connected devices.
    private(set) var removals: [DeviceKey: [CallID]] = [:]
    private var bondings: [DeviceKey: Bonding] = [:]
    /// The devices that are paired as soon as their services are resolved.
    private(set) var pending: Set<DeviceKey> = []

    /// Whether a call of `Pair` waits for its link.
    func isPairing(_ key: DeviceKey) -> Bool { bondings[key]?.isConnecting == true }

    // MARK: Calls

    mutating func connect(_ key: DeviceKey, call: CallID, _ core: inout Core) throws(DaemonError) {
        guard core.tree.adapters[key.adapter]?.isPowered == true else {
            throw .failed("le-connection-adapter-not-powered")
        }
        guard let device = core.tree.devices[key] else { throw .doesNotExist }
        guard bondings[key] == nil || !core.traits.pairExcludesConnect else { throw .inProgress }
        // Also in the two seconds after Disconnect, although the link then ends.
        if device.isConnected { return core.reply(call) }
        // It becomes permanent, unless it has a private address, which changes by itself.
        if device.addressType == .public || key.address.value >> 46 == 0b11 { core.keep(key) }
        guard connects[key] == nil else { throw core.traits.secondConnect }
        connects[key] = call
        // `Pair` makes the link then.
        if bondings[key] == nil { core.order(.connect(key)) }
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
    private func beginDisconnection(of key: DeviceKey, _ core: inout Core) {
        guard !core.alarms.contains(.dropLink(key)) else { return }
        core.hideBattery(of: key)
        core.alarms.set(.dropLink(key), to: core.now + 2)
    }

    /// Carries out `Pair`; `call` and `client` are nil for a program that is not on the bus.
    mutating func pair(_ key: DeviceKey, call: CallID?, client: String?, _ core: inout Core) throws(DaemonError) {
        guard let device = core.tree.devices[key] else { throw .doesNotExist }
        guard core.tree.adapters[key.adapter]?.isPowered == true else { throw .authenticationFailed }
        core.keep(key)
        let isConnecting = connects[key] != nil
        guard bondings[key] == nil, !isConnecting || !core.traits.pairExcludesConnect else { throw .underWay }
        if device.isBonded {
            guard core.traits.pairsOverWrongBearer else { throw .alreadyExists }
            // BlueZ pages it over BR/EDR, without a response, for 5.12 seconds.
            bondings[key] = Bonding(client: client, call: call, ownsLink: false, isConnecting: false)
            return core.alarms.set(.pageTimeout(key), to: core.now + 5.12)
        }
        let needsLink = !device.isConnected
        bondings[key] = Bonding(client: client, call: call, ownsLink: needsLink, isConnecting: needsLink)
        // If the link is encrypted with keys that are not kept nothing happens, and there is no reply.
        guard !device.isPaired else { return }
        if needsLink {
            if !isConnecting { core.order(.connect(key)) }
        } else {
            let isLinks = core.traits.pairsLinkWithItsCapability
            core.order(.secure(key, .encrypted, isLinks ? nil : agents.capability(of: client)))
        }
    }

    /// Carries out `CancelPairing`. Without a call of `Pair` it deletes the keys in the kernel.
    mutating func cancelPairing(_ key: DeviceKey, call: CallID, _ core: inout Core) throws(DaemonError) {
        guard bondings[key] != nil else {
            if core.tree.devices[key]?.isPaired == true {
                core.order(.forget(key, isStored: false))
                core.order(.disconnect(key))
            }
            throw .doesNotExist
        }
        abort(key, &core)
        core.reply(call)
    }

    /// Ends a call of `Pair`, and its pairing if the kernel does that.
    private mutating func abort(_ key: DeviceKey, _ core: inout Core) {
        guard let bonding = bondings[key] else { return }
        let isAsked = agents.cancelRequest(about: key, &core)
        failPairing(key, .authenticationCanceled, &core)
        if bonding.ownsLink {
            core.order(.disconnect(key))
        } else if isAsked || !core.traits.pairsLinkWithItsCapability {
            core.order(.cancelPairing(key))
        }
    }

    /// The pairings of a client that has left are cancelled, and their links end.
    mutating func clientLeft(_ client: String, _ core: inout Core) {
        for (key, bonding) in bondings.sorted(by: { $0.key < $1.key }) where bonding.client == client {
            abort(key, &core)
            core.order(.disconnect(key))
        }
        agents.clientLeft(client, &core)
    }

    // MARK: Links

    /// BlueZ announces the link and replies to `Connect` before it asks for services. Returns whether a call waits for
    /// the link.
    mutating func linkWentUp(_ key: DeviceKey, mtu: Int, _ core: inout Core) -> Bool {
        guard core.tree.devices[key] != nil, isPairing(key) || connects[key] != nil else {
            core.order(.disconnect(key))
            return false
        }
        core.change(key) { ($0.isConnected, $0.mtu) = (true, mtu) }
        core.alarms.remove(.forget(key))
        if !core.faults.silentConnections[key.address] { core.announce(.connected, of: key) }
        if let call = connects.removeValue(forKey: key) { core.reply(call) }
        return true
    }

    /// Encrypts a link that is up. One that `Pair` has made is paired with the capability of the caller's agent.
    mutating func secure(_ key: DeviceKey, _ core: inout Core) {
        if isPairing(key), let bonding = bondings[key] {
            bondings[key]?.isConnecting = false
            core.order(.secure(key, .encrypted, agents.capability(of: bonding.client)))
        } else if core.tree.devices[key]?.isPaired == true {
            core.order(.secure(key, .encrypted))
        }
    }

    mutating func linkFailed(_ key: DeviceKey, _ core: inout Core) {
        failPairing(key, .pageTimeout, &core)
        var error = DaemonError.failed(core.traits.connectionFailure)
        if core.faults.connect[key.address]?.isEmpty == false {
            error = core.faults.connect[key.address]!.removeFirst()
        }
        if let call = connects.removeValue(forKey: key) { core.fail(call, error) }
        core.forgetLater(key)
    }

    /// The attempts of an adapter to connect fail, because it goes off.
    mutating func endAttempts(of index: Int, _ core: inout Core) {
        for (key, call) in connects.sorted(by: { $0.key < $1.key }) where key.adapter == index {
            connects[key] = nil
            core.order(.disconnect(key))
            core.fail(call, .failed(core.traits.connectionFailure))
        }
        for key in bondings.keys.sorted() where key.adapter == index && isPairing(key) {
            core.order(.disconnect(key))
            failPairing(key, .pageTimeout, &core)
        }
    }

    /// Announces the end of a link, and replies to the calls that wait for it.
    ///
    /// The order is that of the radio tests: the services are not resolved, a waiting `Connect` fails, the reason is
    /// signalled, calls of `Disconnect` succeed, the device is not connected, the agent's question is cancelled, a call of
    /// `Pair` fails. The end of a link to a peripheral is announced in two signals if BlueZ has ended the link, with the
    /// reply between them, and in one otherwise. Keys that are not kept end with the link.
    mutating func linkEnded(_ key: DeviceKey, _ reason: LinkEndCause, asCentral: Bool, _ core: inout Core) {
        core.alarms.remove(.dropLink(key))
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
        core.change(key) { $0.isConnected = false }
        // What was advertised before the link is forgotten with it.
        if asCentral { core.change(key) { ($0.mtu, $0.uuids) = (nil, []) } }
        core.announce(.connected, of: key)
        core.flush()
        agents.cancelRequest(about: key, &core)
        if pending.contains(key) {
            if core.traits.failsPairWithDiscovery { failPairing(key, .failed("Not paired"), &core) }
            conclude(key, &core)
        } else if bondings[key]?.isConnecting == false {
            failPairing(key, .authenticationCanceled, &core)
        }
        guard let device = core.tree.devices[key], !device.isBonded else { return }
        core.set(\.isPaired, to: false, of: key, announcing: .paired)
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

    /// Forgets a device that is removed. BlueZ fails `Pair`, and never replies to the other calls that wait for its link
    /// (`device_free`).
    mutating func forget(_ key: DeviceKey, _ core: inout Core) {
        if connects.removeValue(forKey: key) != nil { core.order(.disconnect(key)) }
        disconnects[key] = nil
        pending.remove(key)
        if isPairing(key) { core.order(.disconnect(key)) }
        failPairing(key, .authenticationCanceled, &core)
    }

    // MARK: Pairings

    /// The kernel asks whether to pair, or for a passkey.
    ///
    /// - Parameter isServed: Whether the device is the central.
    mutating func asked(_ question: PairingProcedure.Question, _ key: DeviceKey, isServed: Bool, _ core: inout Core) {
        let bonding = bondings[key]
        if question == .authorize, agents.capability(of: bonding?.client) != nil {
            // A program that pairs agrees without a question, if there is any agent.
            if bonding != nil { return core.order(.answer(key, .accept)) }
            // `JustWorksRepairing` is `never`. A link that was to be encrypted stays up.
            if let device = core.tree.devices[key], device.isPaired {
                let keepsLink = !isServed && !device.areServicesResolved
                return core.order(.answer(key, .reject, keepsLink: keepsLink))
            }
        }
        let keepsLink = bonding == nil && !isServed && core.traits.stallsAfterRefusal
        agents.ask(question, about: key, of: bonding?.client, keepsLink: keepsLink, &core)
    }

    /// A pairing has succeeded. `Paired` and the reply wait until the services are resolved.
    ///
    /// - Parameter privacy: The identity that a device with a private address has given; its path stays.
    mutating func paired(
        _ key: DeviceKey, isBonded: Bool, _ privacy: VirtualPrivacy?, isServed: Bool, _ core: inout Core
    ) {
        if let privacy {
            core.set(\.identity, to: privacy.identity, of: key, announcing: .address)
            core.flush()
            core.set(\.addressType, to: privacy.identityType, of: key, announcing: .addressType)
            core.flush()
        }
        agents.cancelRequest(about: key, &core)
        core.keep(key)
        if isBonded {
            core.set(\.isBonded, to: true, of: key, announcing: .bonded)
            core.flush()
        }
        pending.insert(key)
        let isResolved = core.tree.devices[key]?.areServicesResolved == true
        if !isResolved, bondings[key]?.ownsLink == false, core.traits.losesReplyOfPairBesideDiscovery {
            bondings[key]?.call = nil
        }
        if isServed || isResolved { conclude(key, &core) }
    }

    /// The services of a device are resolved.
    mutating func conclude(_ key: DeviceKey, _ core: inout Core) {
        guard pending.remove(key) != nil else { return }
        core.set(\.isPaired, to: true, of: key, announcing: .paired)
        core.flush()
        if let call = bondings.removeValue(forKey: key)?.call { core.reply(call) }
    }

    mutating func pairingFailed(_ failure: PairingFailure, _ key: DeviceKey, _ core: inout Core) {
        agents.cancelRequest(about: key, &core)
        let isCanceled = failure == .timedOut || failure == .cancelled
        failPairing(key, isCanceled ? .authenticationCanceled : .authenticationFailed, &core)
    }

    /// Fails a call of `Pair`, if there is one. The device is temporary again if it is neither paired nor trusted.
    mutating func failPairing(_ key: DeviceKey, _ error: DaemonError, _ core: inout Core) {
        core.alarms.remove(.pageTimeout(key))
        guard let bonding = bondings.removeValue(forKey: key) else { return }
        if let call = bonding.call { core.fail(call, error) }
        guard let device = core.tree.devices[key], !device.isPaired, !device.isBonded, !device.isTrusted else { return }
        core.change(key) { $0.isTemporary = true }
        if !device.isConnected { core.forgetLater(key) }
    }
}

extension DaemonError {
    static let authenticationFailed = bluez("AuthenticationFailed", "Authentication Failed")
    static let authenticationCanceled = bluez("AuthenticationCanceled", "Authentication Canceled")
    static let pageTimeout = bluez("ConnectionAttemptFailed", "Page Timeout")
}

extension Core {
    mutating func hideBattery(of key: DeviceKey) {
        guard let device = tree.devices[key], device.batteryLevel != nil else { return }
        flush()
        change(key) { $0.batteryLevel = nil }
        emit(.interfacesRemoved(path: device.path, interfaces: [InterfaceName.battery]))
    }
}
