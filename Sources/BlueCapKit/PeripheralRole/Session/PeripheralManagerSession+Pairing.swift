import BlueCapBlueZ
import Foundation
import BlueCapFutures

/// Pairings, which the centrals begin: answers the requests of BlueZ's agent, and reports what becomes of the devices.
extension PeripheralManagerSession: PairingSession {
    var acceptsIncoming: Bool { true }

    // MARK: The manager; any thread

    /// The properties of the adapter in use; `nil` if there is none.
    var adapter: Adapter1? { core.withLock { $0.shell.adapter }.flatMap { client.daemon.adapter($0) } }

    /// - Parameter timeout: In seconds; `nil` for no limit.
    func setPairable(_ isPairable: Bool, timeout: TimeInterval?) -> Future<Void> {
        let (adapter, state) = core.withLock { ($0.shell.adapter, $0.managerState) }
        guard let adapter else { return failed(PairingError.unavailable(.unusable(state))) }
        let future = Future<Void>()
        // BlueZ's 0 is no limit.
        let seconds = timeout.map { UInt32(min(max($0.rounded(.up), 1), Double(UInt32.max))) } ?? 0
        client.setPairable(isPairable, timeout: seconds, adapter: adapter) { [self] result in
            let error = result.failure.map { PairingError.unavailable(BusError($0)) }
            complete(future, error.map { .failure($0) } ?? .success(()))
        }
        return future
    }

    func removingBond(of device: ObjectKey, isUnderWay: Bool) {
        core.withLock { core in
            if isUnderWay { core.removing.insert(device) } else { core.removing.remove(device) }
        }
    }

    // MARK: Devices; on the loop

    func pairingChanged(of source: ObjectKey, _ fields: Device1.Fields, in tree: borrowing ObjectTree) {
        guard let device = tree[source], source.adapter == core.withLock({ $0.shell.adapter }) else { return }
        if !fields.isDisjoint(with: [.isPaired, .isBonded]), !device.isRefused {
            let isOurs = core.withLock { core in
                let isOurs = core.pairing.contains(source)
                // Up to 5.64 there is no `Bonded`.
                let isNew = fields.contains(.isBonded) || !device.fields.contains(.isBonded)
                core.bondChanged(of: source, isBonded: device.keepsKeys, isOurs: isNew ? isOurs : nil)
                return isOurs
            }
            report(central(source, device), isOurs: isOurs)
        }
        guard fields.contains(.isConnected), !device.isConnected else { return }
        let wasPairing = core.withLock { $0.pairing.remove(source) != nil }
        if wasPairing, !device.isPaired, !device.keepsKeys {
            report(central(source, device), isOurs: true, error: .linkLost)
        }
    }

    /// A device is about to be removed, with its keys; not if `bluetoothd` has ended.
    func pairingEnded(of source: ObjectKey, in tree: borrowing ObjectTree) {
        guard client.availability == .ready, source.adapter == core.withLock({ $0.shell.adapter }),
            let central = tree.read(source, { self.central(source, $0) })
        else { return }
        let isOurs = core.withLock { core in
            core.pairing.remove(source)
            return core.removing.remove(source) != nil
        }
        if central.isPaired || central.isBonded { report(central, isEnded: true, isOurs: isOurs) }
    }

    /// - Parameter isEnded: Whether the device was removed.
    private func report(_ central: Central, isEnded: Bool = false, isOurs: Bool, error: PairingError? = nil) {
        let change = PairingChange(
            isPaired: central.isPaired && !isEnded, isBonded: central.isBonded && !isEnded,
            origin: isOurs ? .application : .elsewhere, error: error)
        log?.note(change, of: central, in: self)
        counts.withLock { counts in
            if error != nil { counts.pairingsFailed += 1 } else if change.isPaired { counts.pairings += 1 }
        }
        complete { self.pairingChanges.success(CentralPairingChange(central: central, change: change)) }
        keepSoon()
    }

    // MARK: Requests of the agent; on the loop

    func claim(_ device: ObjectKey, in tree: borrowing ObjectTree) -> AgentClaim {
        core.withLock { $0.shell.adapter == device.adapter && $0.state.isOffering } ? .asServer : .no
    }

    func isPairingWanted(with device: ObjectKey) -> Bool {
        core.withLock { core in _ = core.pairing.insert(device) }
        return false
    }

    func peer(of device: ObjectKey) -> PairingPeer? { central(of: device).map { .central($0) } }

    func pairingRequestEnded(about device: ObjectKey, _ end: AgentEnd) {
        let error = end == .cancelled ? .cancelled : end.refusal.map { PairingError($0, nil) }
        guard let error, core.withLock({ $0.pairing.remove(device) }) != nil, let central = central(of: device) else {
            return
        }
        report(central, isOurs: true, error: error)
    }
}

extension PeripheralManagerSession.Core: PairingCore {
    func key(of source: ObjectKey, at address: PeripheralKey) -> PeripheralKey { devices[source]?.key ?? address }

    mutating func bondEnded(of key: PeripheralKey) { ownBonds.remove(key) }

    /// Returns the key of a device, which is its first address.
    mutating func identify(_ source: ObjectKey, at address: PeripheralKey) -> PeripheralKey {
        devices[source, default: (key: address, address: address)].address = address
        return devices[source]?.key ?? address
    }

    /// - Parameter isOurs: Whether BlueZ has asked this manager about the bond; `nil` if the bond is not new.
    mutating func bondChanged(of source: ObjectKey, isBonded: Bool, isOurs: Bool?) {
        guard let key = devices[source]?.key else { return }
        if isBonded, isOurs == true { ownBonds.insert(key) }
        if !isBonded || isOurs == false { ownBonds.remove(key) }
    }

    /// BlueZ has removed a device. From now on its bond is known by its present address, as it will be when it returns.
    mutating func forgetDevice(_ source: ObjectKey) {
        guard let device = devices.removeValue(forKey: source) else { return }
        if ownBonds.remove(device.key) != nil { ownBonds.insert(device.address) }
    }

    mutating func forgetDevices() {
        for source in devices.keys { forgetDevice(source) }
    }
}
