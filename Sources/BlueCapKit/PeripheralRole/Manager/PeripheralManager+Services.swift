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

    /// Offers a service to centrals, as it is now.
    ///
    /// A service that was added remains added while the adapter is off or `bluetoothd` away, and is offered again with
    /// its handles when they return. Generic Access (1800) and Generic Attribute (1801) belong to BlueZ and cannot be
    /// added.
    ///
    /// The time-out is ``defaultTimeout``; ``add(_:timeout:)`` has a parameter for it and describes the outcome.
    @discardableResult
    public func add(_ service: MutableService) -> Future<Void> { add(service, timeout: Self.defaultTimeout) }

    /// Offers a service to centrals, as it is now, and fails if that takes longer than `timeout`.
    ///
    /// The request is repeated only after errors that are known to be temporary, such as `org.bluez.Error.InProgress`;
    /// after any other error `add` fails at once. If `add` fails, the service is not offered: it is unregistered, even
    /// if `bluetoothd` registers it later. It can be added again.
    ///
    /// - Parameters:
    ///   - service: A service of no manager, or of this one. A second call for a service shares the outcome and the
    ///     time-out of the call that is under way.
    ///   - timeout: The time-out in seconds, from the call to the success, including the wait for `poweredOn`. With 0
    ///     or less `add` fails unless it succeeds at once; `.infinity` sets no limit.
    /// - Returns: Succeeds when BlueZ has registered it, at once if it was added before. When the time-out has passed
    ///   it fails with ``PeripheralManagerError/notPoweredOn(_:)`` if the manager is not `poweredOn`, with
    ///   ``PeripheralManagerError/servicesNotSupported`` if the adapter cannot offer services, with
    ///   ``PeripheralManagerError/serviceRefused(_:)`` if BlueZ was asked again after an error, and otherwise with
    ///   ``PeripheralManagerError/serviceTimeout``. Before, it fails with
    ///   ``PeripheralManagerError/serviceRefused(_:)``, ``PeripheralManagerError/serviceInUse`` if the service belongs
    ///   to another manager, ``PeripheralManagerError/invalidService(_:)``, ``PeripheralManagerError/serviceRemoved``,
    ///   ``PeripheralManagerError/invalidOption(_:)``.
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
