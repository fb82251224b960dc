import BlueZ
public import Futures
import GATT

/// The policy of pairings, and the bonds of the adapter.
extension CentralManager {
    /// What this manager replies when a pairing needs an answer; ``PairingPolicy/reject`` unless
    /// ``CentralManagerOptionPairingPolicyKey`` is set.
    ///
    /// Set it before the manager connects: a link keeps the capability that BlueZ had when it was made, and
    /// ``Peripheral/pair(trusting:timeout:)`` may have to end it and make another one.
    public var pairingPolicy: PairingPolicy {
        get { session.pairing.desk.policy }
        set { session.pairing.policyChanged(to: newValue) }
    }

    /// Returns a stream of the requests that the policy ``PairingPolicy/ask`` gives to the application.
    ///
    /// Every call returns the same stream. It never fails, and ends with the manager. Without a handler a request is
    /// rejected at once: it is not kept for handlers that are added later.
    public func whenPairingIsRequested() -> FutureStream<PairingRequest> { session.streams.pairingRequests.stream }

    /// Returns the bonds of the adapter in use, whichever program made them, in the order of their addresses.
    public func bonds() -> [Bond] {
        guard let adapter = session.core.withLock({ $0.shell.adapter }) else { return [] }
        var bonded: [(source: ObjectKey, device: Device1)] = []
        session.client.daemon.forEachDevice(on: adapter) { source, device in
            if device.keepsKeys { bonded.append((source, copy device)) }
        }
        let bonds = session.core.withLock { core in
            bonded.map { source, device in
                let key = core.state.key(of: source, at: PeripheralKey(device))
                return Bond(
                    identifier: key.identifier, address: device.address, addressType: device.addressType,
                    name: device.name, isTrusted: device.isTrusted, isConnected: device.isConnected,
                    isOurs: core.state.ownBonds.contains(key))
            }
        }
        return bonds.sorted { $0.address < $1.address }
    }

    /// Removes a bond as ``Peripheral/unpair(timeout:)`` does.
    /// - Returns: A future that fails with a ``PairingError``.
    @discardableResult
    public func forget(_ bond: Bond) -> Future<Void> {
        let address = PeripheralKey(bond.address, bond.addressType)
        guard let adapter = session.core.withLock({ $0.shell.adapter }) else {
            return session.failed(PairingError.unavailable(.noAdapter))
        }
        var source: ObjectKey?
        session.client.daemon.forEachDevice(on: adapter) { key, device in
            if PeripheralKey(device) == address, device.keepsKeys { source = key }
        }
        guard let source else { return session.failed(PairingError.unavailable(.noDevice)) }
        let key = session.core.withLock { $0.state.key(of: source, at: address) }
        if session.core.withLock({ $0.state.hasState(of: key) }) {
            return session.operation(on: key, yielding: ()) {
                $0.pairingAsked(.unpair, $1, timeout: 30, into: &$2)
            }
        }
        let future = Future<Void>()
        session.client.removeDevice(source) { [session] result in
            session.core.withLock { $0.state.bondEnded(of: key) }
            session.keepSoon()
            let error = PairingError(ofRemoval: result)
            session.complete { future.complete(error.map { .failure($0) } ?? .success(())) }
        }
        return future
    }

    /// Removes the bonds that this manager has made, one after the other.
    /// - Returns: The removed bonds. The future fails with the ``PairingError`` of the first bond that cannot be removed.
    @discardableResult
    public func forgetBonds() -> Future<[Bond]> {
        let bonds = bonds().filter(\.isOurs)
        return bonds.reduce(session.settled(.success(()))) { previous, bond in
            previous.flatMap(context: ImmediateContext()) { [self] in forget(bond) }
        }.map(context: ImmediateContext()) { bonds }
    }
}
