public import Foundation
public import Futures
public import GATT

/// Services can be added and removed at any time. That changes neither the other services nor their subscriptions, and
/// ends no advertisement.
extension PeripheralManager {
    /// The services that were added, in the order of the calls, in which centrals find them.
    public var services: [MutableService] { session.services }

    /// The first of them with this UUID.
    public func service(_ uuid: CBUUID) -> MutableService? { services.first { $0.uuid == uuid } }

    /// Offers a service to centrals, as it is now.
    ///
    /// A service that was added stays so while the adapter is off or `bluetoothd` away, and is offered again with its
    /// handles when they return. Generic Access (1800) and Generic Attribute (1801) are BlueZ's own and cannot be
    /// added.
    ///
    /// The time-out is ``defaultTimeout``; ``add(_:timeout:)`` takes another one and describes the outcome.
    @discardableResult
    public func add(_ service: MutableService) -> Future<Void> { add(service, timeout: Self.defaultTimeout) }

    /// Offers a service to centrals, as it is now, unless that takes longer than `timeout`.
    ///
    /// BlueZ is asked again only after errors that are known to pass, such as `org.bluez.Error.InProgress`; every other
    /// one fails at once. If `add` fails, the service is not offered: it is unregistered, even if `bluetoothd`
    /// registers it later. It can be added again.
    ///
    /// - Parameters:
    ///   - service: A service of no manager, or of this one. A call while another one for it is under way shares the outcome
    ///     and the time-out of that one.
    ///   - timeout: In seconds, from the call to the success, the wait for `poweredOn` included. 0 or less fails what does
    ///     not succeed at once; `.infinity` sets no limit.
    /// - Returns: Succeeds when BlueZ has registered it, at once if it was added before. When the time-out has passed it
    ///   fails with ``PeripheralManagerError/notPoweredOn(_:)`` if the manager is not `poweredOn`, with
    ///   ``PeripheralManagerError/servicesNotSupported`` if the adapter cannot offer services, with
    ///   ``PeripheralManagerError/serviceRefused(_:)`` if BlueZ was asked again after an error, and otherwise with
    ///   ``PeripheralManagerError/serviceTimeout``. Before, it fails with ``PeripheralManagerError/serviceRefused(_:)``,
    ///   ``PeripheralManagerError/serviceInUse`` if the service belongs to another manager,
    ///   ``PeripheralManagerError/invalidService(_:)``, ``PeripheralManagerError/serviceRemoved``,
    ///   ``PeripheralManagerError/invalidOption(_:)``.
    @discardableResult
    @_disfavoredOverload  // `manager.add` without a call is the method that is documented
    public func add(_ service: MutableService, timeout: TimeInterval) -> Future<Void> {
        session.add(service, timeout: timeout)
    }

    /// Removes a service: its streams of requests end, its waiting updates are dropped, and its subscribers are
    /// removed. An `add` that is under way fails with ``PeripheralManagerError/serviceRemoved``.
    ///
    /// Nothing happens if it is not one of this manager's.
    public func remove(_ service: MutableService) { session.remove(service) }

    /// Removes all services.
    public func removeAllServices() { session.removeAllServices() }
}
