import BlueCapBlueZ
public import Foundation
public import BlueCapFutures

/// Pairing and bonds.
///
/// A manager pairs if its ``CentralManager/pairingPolicy`` is not ``PairingPolicy/reject``.
///
/// ```swift
/// let manager = try CentralManager(configuration: .init(pairingPolicy: .justWorks))
/// // later, with a peripheral of this manager
/// try await peripheral.pair()
/// print(try await peripheral.read(pressure))
/// ```
///
/// Pair before the first operation on a protected value if it is known to be protected. From BlueZ 5.67 on a refused
/// operation can leave the characteristic unusable until BlueZ removes the device.
///
/// A bond replaces a private address of the peripheral: ``address`` changes, and this object and ``identifier`` stay.
extension Peripheral {
    /// Variant of ``pair(trusting:timeout:)->()`` that returns a future of this peripheral, with the time limit in
    /// seconds.
    @discardableResult
    public func pair(trusting isTrusting: Bool = false, timeout: TimeInterval = 60) -> Future<Peripheral> {
        request(.pair(trusting: isTrusting), timeout: timeout)
    }

    /// Cancels the pairing. It fails with ``PairingError/cancelled``, and no bond stays. Does nothing if there is none.
    ///
    /// Of a pairing that BlueZ has begun for an operation, the requests that the application has not answered are rejected.
    public func cancelPairing() { session.decide(key) { $0.cancelPairing(into: &$1) } }

    /// Variant of ``unpair(timeout:)->()`` that returns a future of this peripheral, with the time limit in
    /// seconds.
    @discardableResult
    public func unpair(timeout: TimeInterval = 30) -> Future<Peripheral> { request(.unpair, timeout: timeout) }

    /// Variant of ``repair(timeout:)->()`` that returns a future of this peripheral, with the time limit in
    /// seconds.
    @discardableResult
    public func repair(timeout: TimeInterval = 60) -> Future<Peripheral> { request(.repair, timeout: timeout) }

    /// Returns whether BlueZ has forgotten an operation of the last link, so that its value cannot be used until the device
    /// is removed. Call it after the link has ended; it waits for the replies that BlueZ sends then, and first until no
    /// pairing that was refused or cancelled can leave a bond.
    ///
    /// The next connection of this manager removes the device by itself;
    /// that of another program does not.
    package func hasForgottenOperation() async -> Bool { await session.hasForgottenOperation(key) }

    private func request(_ request: PairingState.Request, timeout: TimeInterval) -> Future<Peripheral> {
        session.operation(on: key, timeout: timeout, yielding: self) {
            $0.pairingAsked(request, $1, timeout: timeout, into: &$2)
        }
    }

    /// Reads from BlueZ's device; false if BlueZ has removed it, with its keys.
    private func readPresent(_ body: (borrowing Device1) -> Bool) -> Bool {
        session.readRecord(key) { $0.present == nil ? nil : $0.read(in: session.client.daemon, body) } ?? false
    }

    /// Whether links to the peripheral can be encrypted, or this one is.
    public var isPaired: Bool { readPresent { $0.hasPaired } }

    /// Whether BlueZ stores the keys of the pairing.
    public var isBonded: Bool { readPresent { $0.keepsKeys } }

    /// Whether this manager is pairing with the peripheral.
    public var isPairing: Bool { session.use(of: key) { $0.state.pairing.isPairing } ?? false }

    /// Whether BlueZ's stored mark "trusted" is set: programs' services may use it, and BlueZ connects the peripheral
    /// when it asks for that. It is independent of pairings, and any program can set it.
    ///
    /// The new value is read after BlueZ has confirmed it; see ``setTrusted(_:)``.
    public var isTrusted: Bool {
        get { readPresent { $0.isTrusted } }
        set { setTrusted(newValue) }
    }

    /// Variant of ``setTrusted(_:)->()`` that returns a future of this peripheral.
    @discardableResult
    public func setTrusted(_ isTrusted: Bool) -> Future<Peripheral> {
        guard let device = session.readRecord(key, { $0.present }) else {
            return session.failed(PairingError.unavailable(.noDevice))
        }
        let future = Future<Peripheral>()
        session.client.setTrusted(isTrusted, device: device) { [self] result in
            let error = result.failure.map { PairingError.trustFailed(BusError($0)) }
            session.complete(future, error.map { .failure($0) } ?? .success(self))
        }
        return future
    }

    /// Returns a stream of the changes of the pairing, whichever program or device makes them. Every call returns the
    /// same stream. It keeps the newest change for handlers that are added later, and ends with the manager or when this
    /// object is released.
    public func whenPairingChanges() -> FutureStream<PairingChange> {
        session.stream(\.changes.ofPairing, of: key, capacity: 1)
    }

    /// How many pairings of this manager have succeeded.
    public var pairingCount: UInt { session.use(of: key) { $0.state.pairing.count } ?? 0 }

    /// How many pairings of this manager have failed.
    public var failedPairingCount: UInt { session.use(of: key) { $0.state.pairing.failureCount } ?? 0 }

    /// When the last pairing of this manager succeeded; `Date.distantPast` if none has.
    public var pairedAt: Date { session.use(of: key) { $0.state.pairing.date } ?? .distantPast }
}
