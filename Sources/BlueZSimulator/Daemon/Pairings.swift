import Foundation

/// The pairings of devices: those that programs ask for with `Pair`, and those that peers and protected attributes lead to
/// (`src/device.c`).
struct Pairings: Sendable {
    /// A call of `Pair` that has no reply yet.
    private struct Bonding: Sendable {
        /// The caller. BlueZ asks the caller's agent, and the default agent if this is nil.
        let client: String?
        /// Nil for a program that is not on the bus, and if there is no reply.
        var call: CallID?
        /// Whether it waits for the link that it makes.
        var isConnecting: Bool
        /// Whether the link was made for it.
        var ownsLink: Bool
    }

    private var bondings: [DeviceKey: Bonding] = [:]
    /// The devices that are paired as soon as their services are resolved.
    private(set) var pending: Set<DeviceKey> = []

    mutating func reset() {
        bondings = [:]
        pending = []
    }

    /// Whether a call of `Pair` is under way.
    func isPairing(_ key: DeviceKey) -> Bool { bondings[key] != nil }

    /// Whether a call of `Pair` waits for its link.
    func isConnecting(_ key: DeviceKey) -> Bool { bondings[key]?.isConnecting == true }

    // MARK: Calls

    /// Carries out `Pair`; `call` is nil for a program that is not on the bus.
    mutating func pair(
        _ key: DeviceKey, call: CallID?, client: String?, isConnecting: Bool, _ agents: Agents, _ core: inout Core
    ) throws(DaemonError) {
        guard let device = core.tree.devices[key] else { throw .doesNotExist }
        guard core.tree.adapters[key.adapter]?.isPowered == true else { throw .authenticationFailed }
        core.keep(key)
        guard bondings[key] == nil, !isConnecting || !core.traits.pairExcludesConnect else { throw .underWay }
        if device.isBonded {
            guard core.traits.pairsOverWrongBearer else { throw .alreadyExists }
            // BlueZ pages it over BR/EDR, without a response.
            bondings[key] = Bonding(client: client, call: call, isConnecting: false, ownsLink: false)
            return core.alarms.set(.pageTimeout(key), to: core.now + Self.pageTimeout)
        }
        bondings[key] = Bonding(
            client: client, call: call, isConnecting: !device.isConnected, ownsLink: !device.isConnected)
        // If the link is encrypted with keys that are not kept nothing happens, and there is no reply.
        guard !device.isPaired else { return }
        guard device.isConnected else {
            if !isConnecting { core.order(.connect(key)) }
            return
        }
        let isLinks = core.traits.pairsLinkWithItsCapability
        core.order(.secure(key, .encrypted, isLinks ? nil : agents.capability(of: client)))
    }

    /// Seconds.
    private static let pageTimeout: TimeInterval = 5.12

    /// Carries out `CancelPairing`. Without a call of `Pair` it deletes the keys in the kernel.
    mutating func cancel(
        _ key: DeviceKey, call: CallID, _ agents: inout Agents, _ core: inout Core
    ) throws(DaemonError) {
        guard bondings[key] != nil else {
            if core.tree.devices[key]?.isPaired == true {
                core.order(.forget(key, isStored: false))
                core.order(.disconnect(key))
            }
            throw .doesNotExist
        }
        abort(key, &agents, &core)
        core.reply(call)
    }

    /// Ends a call of `Pair`, and its pairing if the kernel does that.
    private mutating func abort(_ key: DeviceKey, _ agents: inout Agents, _ core: inout Core) {
        guard let bonding = bondings[key] else { return }
        let isAsked = agents.cancelRequest(about: key, &core)
        fail(key, .authenticationCanceled, &core)
        if bonding.isConnecting || bonding.ownsLink {
            core.order(.disconnect(key))
        } else if isAsked || !core.traits.pairsLinkWithItsCapability {
            core.order(.cancelPairing(key))
        }
    }

    /// The pairings of a client that has left are cancelled, and their links end.
    mutating func clientLeft(_ client: String, _ agents: inout Agents, _ core: inout Core) {
        for (key, bonding) in bondings.sorted(by: { $0.key < $1.key }) where bonding.client == client {
            abort(key, &agents, &core)
            core.order(.disconnect(key))
        }
    }

    // MARK: Links

    /// The link that `Pair` makes is up: it is paired with the capability of the caller's agent.
    mutating func linkWentUp(_ key: DeviceKey, _ agents: Agents, _ core: inout Core) {
        guard let bonding = bondings[key], bonding.isConnecting else { return }
        bondings[key]?.isConnecting = false
        core.order(.secure(key, .encrypted, agents.capability(of: bonding.client)))
    }

    mutating func linkFailed(_ key: DeviceKey, _ core: inout Core) {
        if bondings[key] != nil { fail(key, .pageTimeout, &core) }
    }

    /// The attempts of an adapter to connect fail, because it goes off.
    mutating func endAttempts(of index: Int, _ core: inout Core) {
        for key in bondings.keys.filter({ $0.adapter == index && isConnecting($0) }).sorted() {
            core.order(.disconnect(key))
            linkFailed(key, &core)
        }
    }

    /// A link has ended, and its end is announced: calls `Cancel` of the agent, then fails a call of `Pair`, in the order of the
    /// radio tests. Keys that are not kept end with the link.
    mutating func linkEnded(_ key: DeviceKey, _ agents: inout Agents, _ core: inout Core) {
        core.flush()
        agents.cancelRequest(about: key, &core)
        if pending.contains(key) {
            if core.traits.failsPairWithDiscovery { fail(key, .failed("Not paired"), &core) }
            conclude(key, &core)
        } else if bondings[key]?.isConnecting == false {
            fail(key, .authenticationCanceled, &core)
        }
        guard let device = core.tree.devices[key], device.isPaired, !device.isBonded else { return }
        core.set(\.isPaired, to: false, of: key, announcing: .paired)
    }

    /// A device is removed, or paging it has failed.
    mutating func end(_ key: DeviceKey, _ error: DaemonError, _ core: inout Core) {
        pending.remove(key)
        core.alarms.remove(.pageTimeout(key))
        if isConnecting(key) { core.order(.disconnect(key)) }
        fail(key, error, &core)
    }

    // MARK: Events

    /// The kernel asks whether to pair, or for a passkey.
    ///
    /// - Parameter isServed: Whether the device is the central.
    mutating func asked(
        _ question: PairingProcedure.Question, _ key: DeviceKey, isServed: Bool, _ agents: inout Agents,
        _ core: inout Core
    ) {
        let bonding = bondings[key]
        let keepsLink = bonding == nil && !isServed && core.traits.stallsAfterRefusal
        if question == .authorize, agents.capability(of: bonding?.client) != nil {
            // A program that pairs agrees without a question, if there is any agent.
            if bonding != nil { return core.order(.answer(key, .accept)) }
            // `JustWorksRepairing` is `never`. A link that was to be encrypted stays up.
            if let device = core.tree.devices[key], device.isPaired {
                let keepsLink = !isServed && !device.areServicesResolved
                return core.order(.answer(key, .reject, keepsLink: keepsLink))
            }
        }
        let reception = agents.ask(question, about: key, of: bonding?.client, keepsLink: keepsLink, &core)
        if case .answered(let answer) = reception { core.order(.answer(key, answer, keepsLink: keepsLink)) }
    }

    /// A pairing has succeeded. `Paired` and the reply wait until the services are resolved.
    mutating func paired(
        _ key: DeviceKey, isBonded: Bool, isServed: Bool, _ agents: inout Agents, _ core: inout Core
    ) {
        agents.cancelRequest(about: key, &core)
        core.keep(key)
        if isBonded {
            core.set(\.isBonded, to: true, of: key, announcing: .bonded)
            core.flush()
        }
        pending.insert(key)
        let isDiscovering = core.tree.devices[key]?.areServicesResolved == false && bondings[key]?.ownsLink == false
        if isDiscovering, core.traits.losesReplyOfPairBesideDiscovery { bondings[key]?.call = nil }
        if isServed || core.tree.devices[key]?.areServicesResolved == true { conclude(key, &core) }
    }

    /// The services of a device are resolved.
    mutating func conclude(_ key: DeviceKey, _ core: inout Core) {
        guard pending.remove(key) != nil else { return }
        core.set(\.isPaired, to: true, of: key, announcing: .paired)
        core.flush()
        if let call = bondings.removeValue(forKey: key)?.call { core.reply(call) }
    }

    mutating func failed(_ failure: PairingFailure, _ key: DeviceKey, _ agents: inout Agents, _ core: inout Core) {
        agents.cancelRequest(about: key, &core)
        switch failure {
        case .timedOut, .linkLost, .cancelled: fail(key, .authenticationCanceled, &core)
        case .passkeyEntryFailed, .authenticationRequirements, .confirmValueFailed, .pairingNotSupported,
            .numericComparisonFailed:
            fail(key, .authenticationFailed, &core)
        }
    }

    /// Fails a call of `Pair`. The device is temporary again if it is neither paired nor trusted.
    private mutating func fail(_ key: DeviceKey, _ error: DaemonError, _ core: inout Core) {
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
