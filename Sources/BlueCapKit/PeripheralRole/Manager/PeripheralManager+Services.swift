public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// Services can be added and removed at any time. Doing so neither changes other services or their subscriptions, nor
/// ends an advertisement.
extension PeripheralManager {
    /// The services that were added, in the order of the calls, which is the order in which centrals find them.
    public var services: [MutableService] { session.services }

    /// Returns the first of ``services`` with this UUID.
    public func service(_ uuid: CBUUID) -> MutableService? { services.first { $0.uuid == uuid } }

    /// Variant of ``add(_:timeout:)-(_,Duration?)`` that returns a future. Its time limit is ``defaultTimeout``.
    @discardableResult
    public func add(_ service: MutableService) -> Future<Void> { add(service, timeout: Self.defaultTimeout.seconds) }

    /// Variant of ``add(_:timeout:)-(_,Duration?)`` that returns a future. The time limit is in seconds; `.infinity` sets none.
    @discardableResult
    @_disfavoredOverload  // `manager.add` without a call is the method that is documented
    public func add(_ service: MutableService, timeout: TimeInterval) -> Future<Void> {
        session.add(service, timeout: timeout)
    }

    /// Removes a service: its streams of requests end, its waiting updates are dropped, and its subscribers are
    /// removed. An `add` that is under way fails with ``PeripheralManagerError/serviceRemoved``.
    ///
    /// Does nothing if the service does not belong to this manager.
    public func remove(_ service: MutableService) { session.remove(service) }

    /// Removes all services.
    public func removeAllServices() { session.removeAllServices() }
}
