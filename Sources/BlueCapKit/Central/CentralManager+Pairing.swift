import BlueCapBlueZ
public import BlueCapFutures

/// The policy of pairings, and the bonds of the adapter.
extension CentralManager {
    /// What this manager replies when a pairing needs an answer; that of the configuration,
    /// ``PairingPolicy/reject`` by default.
    ///
    /// Set it before the manager connects: a link keeps the capability that BlueZ had when it was made, and
    /// ``Peripheral/pair(trusting:timeout:)`` may have to end it and make another one.
    public var pairingPolicy: PairingPolicy {
        get { session.policy }
        set { session.setPolicy(newValue) }
    }

    /// Returns a stream of the requests that the policy ``PairingPolicy/ask`` gives to the application.
    ///
    /// Every call returns the same stream. It never fails, and ends with the manager. Without a handler a request is
    /// rejected at once: it is not kept for handlers that are added later.
    public func whenPairingIsRequested() -> FutureStream<PairingRequest> { session.streams.pairingRequests.stream }

    /// Returns the bonds of the adapter in use, whichever program made them, in the order of their addresses.
    public func bonds() -> [Bond] { session.bonds() }

    /// Removes a bond as ``Peripheral/unpair(timeout:)->()`` does, or throws a ``PairingError``. A cancelled task only stops waiting.
    public func forget(_ bond: Bond) async throws { try await awaiting { session.forget(bond) } }

    /// Removes the bonds that this manager has made, one by one, and returns them. A cancelled task only stops waiting.
    /// - Throws: The ``PairingError`` of the first bond that cannot be removed.
    @discardableResult
    public func forgetBonds() async throws -> [Bond] { try await awaiting { session.forgetBonds() } }

    /// Variant of ``forget(_:)->()`` that returns a future.
    @discardableResult
    public func forget(_ bond: Bond) -> Future<Void> { session.forget(bond) }

    /// Variant of ``forgetBonds()->[Bond]`` that returns a future.
    @discardableResult
    public func forgetBonds() -> Future<[Bond]> { session.forgetBonds() }
}
