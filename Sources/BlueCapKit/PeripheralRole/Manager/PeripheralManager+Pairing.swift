import BlueCapBlueZ
public import Foundation
public import BlueCapFutures

/// Pairing with centrals, and the bonds of the adapter.
///
/// A characteristic requires a pairing by its permissions and properties, such as
/// `CBAttributePermissions.readEncryptionRequired`. The central pairs, and BlueZ asks the agent of this process if that is the
/// machine's default agent. The first agent that is registered becomes the default one; ``PairingPolicy/asDefaultAgent()``
/// makes this one the default.
///
/// ```swift
/// let policy = PairingPolicy.ask(.displayYesNo).asDefaultAgent()
/// let manager = try PeripheralManager(configuration: .init(pairingPolicy: policy))
/// for try await request in manager.whenPairingIsRequested() {
///     switch request.kind {
///     case .confirm(let passkey): ask("Is it \(passkey.digits)?") { $0 ? request.confirm() : request.reject() }
///     default: request.reject()
///     }
/// }
/// ```
extension PeripheralManager {
    /// What this manager replies when a central pairs; that of the configuration,
    /// ``PairingPolicy/reject`` by default.
    ///
    /// Set it before services are added and advertisements started: these wait until BlueZ has registered the agent, because
    /// a link keeps the capability that the agent had when the central connected. A central that connected before pairs
    /// without a number, whatever the policy's capability is.
    ///
    /// With ``PairingPolicy/reject`` this process has no agent, unless another manager needs one. BlueZ then asks the agent
    /// of another program, such as a desktop's, if there is one; ``PairingPolicy/asDefaultAgent()`` prevents that.
    public var pairingPolicy: PairingPolicy {
        get { session.policy }
        set { session.setPolicy(newValue) }
    }

    /// Returns a stream of the requests that the policy ``PairingPolicy/ask`` gives to the application, each with the central
    /// that pairs.
    ///
    /// Every call returns the same stream. It never fails, and ends with the manager. Without a handler a request is
    /// rejected at once: it is not kept for handlers that are added later.
    public func whenPairingIsRequested() -> FutureStream<PairingRequest> { session.pairingRequests.stream }

    /// Returns a stream of the changes of the pairings with devices of the adapter in use, whichever program has allowed
    /// them, and of the failures of pairings that this manager was asked about.
    ///
    /// A new bond is reported as bonded first and as paired when BlueZ reports that, which can be later. A pairing without a
    /// reported failure that ends with the link has the error ``PairingError/linkLost``: BlueZ does not report a wrong
    /// passkey to a peripheral.
    ///
    /// Every call returns the same stream. It keeps no changes for handlers that are added later, never fails, and ends with
    /// the manager.
    public func whenPairingChanges() -> FutureStream<CentralPairingChange> { session.pairingChanges.stream }

    /// Whether the adapter accepts new bonds; false if there is no adapter. BlueZ sets it when a first agent is registered on
    /// the machine, and resets it when the last one ends. Every program can set it.
    public var isPairable: Bool { session.adapter?.isPairable ?? false }

    /// The time for which the adapter accepts new bonds after ``isPairable`` was set; `nil` for no limit, and if there is no
    /// adapter.
    public var pairableTimeout: Duration? {
        session.adapter.flatMap { $0.pairableTimeout == 0 ? nil : .seconds($0.pairableTimeout) }
    }

    /// Variant of ``setPairable(_:timeout:)-(_,Duration?)`` that returns a future. The time is in seconds.
    @discardableResult
    public func setPairable(_ isPairable: Bool, timeout: TimeInterval? = nil) -> Future<Void> {
        session.setPairable(isPairable, timeout: timeout)
    }

    /// Returns the bonds of the adapter in use, whichever program made them, in the order of their addresses. Those that this
    /// manager was asked about have ``Bond/isOurs``; with a restore identifier also those of earlier managers with it.
    public func bonds() -> [Bond] { session.bonds() }

    /// Variant of ``forget(_:)->()`` that returns a future.
    @discardableResult
    public func forget(_ bond: Bond) -> Future<Void> { session.forget(bond) }

    /// Variant of ``forgetBonds()->[Bond]`` that returns a future.
    @discardableResult
    public func forgetBonds() -> Future<[Bond]> { session.forgetBonds() }
}

/// A change of the pairing with a central.
public struct CentralPairingChange: Hashable, Sendable {
    /// The central, as it is after the change.
    public let central: Central
    /// What has changed.
    public let change: PairingChange
}
