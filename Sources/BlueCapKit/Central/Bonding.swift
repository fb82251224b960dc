import BlueCapBlueZ
import BlueCapFutures

/// The bonds of the adapter.
extension PairingSession {
    func unpair(_ key: PeripheralKey) -> Future<Void>? { nil }
    func removingBond(of device: ObjectKey, isUnderWay: Bool) {}

    /// The bonds of the adapter in use, in the order of their addresses. Any thread.
    func bonds() -> [Bond] {
        let daemon = client.daemon
        let bonds = core.withLock { core -> [Bond] in
            guard let adapter = core.shell.adapter else { return [] }
            var bonds: [Bond] = []
            daemon.forEachDevice(on: adapter) { source, device in
                guard device.keepsKeys else { return }
                let key = core.key(of: source, at: PeripheralKey(device))
                bonds.append(
                    Bond(
                        identifier: key.identifier, address: device.address, addressType: device.addressType,
                        name: device.name, isTrusted: device.isTrusted, isConnected: device.isConnected,
                        isOurs: core.ownBonds.contains(key)))
            }
            return bonds
        }
        return bonds.ordered { $0.address < $1.address }
    }

    /// Ends the link to the device of a bond, and removes the bond. Any thread.
    func forget(_ bond: Bond) -> Future<Void> {
        let address = PeripheralKey(bond.address, bond.addressType)
        let (adapter, state) = core.withLock { ($0.shell.adapter, $0.managerState) }
        guard let adapter else { return failed(PairingError.unavailable(.unusable(state))) }
        var source: ObjectKey?
        client.daemon.forEachDevice(on: adapter) { key, device in
            if PeripheralKey(device) == address, device.keepsKeys { source = key }
        }
        guard let source else {
            // While bluetoothd is away, its devices are not known.
            let isKnown = state == .poweredOn || state == .poweredOff
            return failed(PairingError.unavailable(isKnown ? .noDevice : .unusable(state)))
        }
        let key = core.withLock { $0.key(of: source, at: address) }
        if let unpaired = unpair(key) { return unpaired }
        let future = Future<Void>()
        removingBond(of: source, isUnderWay: true)
        client.removeDevice(source) { [self] result in
            let error = PairingError(ofRemoval: result)
            if case .failure = result { removingBond(of: source, isUnderWay: false) }
            if error == nil {
                core.withLock { core in for each in [key, address] { core.bondEnded(of: each) } }
            }
            keepSoon()
            complete(future, error.map { .failure($0) } ?? .success(()))
        }
        return future
    }

    /// Removes the bonds that this manager has made, one after the other. Any thread.
    func forgetBonds() -> Future<[Bond]> {
        let bonds = bonds().filter(\.isOurs)
        return bonds.reduce(settled(.success(()))) { previous, bond in
            previous.flatMap(context: ImmediateContext()) { [self] in forget(bond) }
        }.map(context: ImmediateContext()) { bonds }
    }
}

extension PairingError {
    /// Creates the error of the removal of a device; `nil` if it was removed. One that no longer exists counts as removed.
    init?(ofRemoval result: Result<Void, BlueZError>) {
        guard case .failure(let error) = result, error.cause != .doesNotExist, error.cause != .unknownObject else {
            return nil
        }
        switch error.cause {
        case .notReady, .blocked, .serviceGone, .disconnected: self = .unavailable(BusError(error))
        default: self = .removalFailed(BusError(error))
        }
    }
}
