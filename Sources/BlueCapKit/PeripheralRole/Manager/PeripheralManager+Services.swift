public import Futures
public import GATT

/// Services, as many as are wanted, added and removed at any time: none of that disturbs the others, nor who has subscribed
/// to them, and nothing of it ends an advertisement.
extension PeripheralManager {
    /// The services that were added, in the order of the calls, which is the one in which centrals find them.
    public var services: [MutableService] { session.services }

    /// The first of them with this UUID.
    public func service(_ uuid: CBUUID) -> MutableService? { services.first { $0.uuid == uuid } }

    /// Offers a service to centrals, as it is now.
    ///
    /// A service that was added stays so while the adapter is off or `bluetoothd` away, and is back with them, with its
    /// handles. Generic Access (1800) and Generic Attribute (1801) are BlueZ's own and cannot be added.
    ///
    /// - Returns: Succeeds when BlueZ has registered it, at once where it was added before. It fails with
    ///   ``PeripheralManagerError/notPoweredOn(_:)`` where the manager is not `poweredOn` within 10 seconds, with
    ///   ``PeripheralManagerError/serviceRefused(_:)``, ``PeripheralManagerError/serviceInUse`` where it belongs to another
    ///   manager, ``PeripheralManagerError/invalidService(_:)``, ``PeripheralManagerError/serviceRemoved``,
    ///   ``PeripheralManagerError/invalidOption(_:)``. A service whose `add` has failed is in nobody's way, and can be
    ///   added again.
    @discardableResult
    public func add(_ service: MutableService) -> Future<Void> { session.add(service) }

    /// Offers a service no more: its streams of requests end, its updates that wait are given up, its subscribers are gone.
    /// An `add` that is under way fails with ``PeripheralManagerError/serviceRemoved``.
    ///
    /// Nothing happens where it is not one of this manager's.
    public func remove(_ service: MutableService) { session.remove(service) }

    /// Offers no service any more.
    public func removeAllServices() { session.removeAllServices() }
}
