public import Foundation

// BlueCap's names, as at its head, beside those of the documents.

extension CentralManager {
    /// The peripherals of ``peripherals`` by their identifiers.
    public var discoveredPeripherals: [UUID: Peripheral] {
        Dictionary(peripherals.map { ($0.identifier, $0) }) { first, _ in first }
    }

    /// The services that were discovered of ``peripherals``, in the order of these.
    public var services: [Service] { peripherals.flatMap(\.services) }

    /// Removes a peripheral from ``peripherals``. A scan that is running discovers it again when it advertises.
    ///
    /// A connection and the operations on it stay, for as long as the application holds the `Peripheral`: to end them, call
    /// ``Peripheral/terminate()``, which removes the peripheral, too. Does nothing where the peripheral is not listed.
    public func removePeripheral(withIdentifier identifier: UUID) {
        remove { $0.address.identifier(type: $0.addressType) == identifier }
    }

    /// Removes all peripherals from ``peripherals``, as ``removePeripheral(withIdentifier:)`` does with one.
    public func removeAllPeripherals() { remove { _ in true } }

    /// Takes peripherals off the list. What is under way with them continues.
    private func remove(where isRemoved: (PeripheralKey) -> Bool) {
        session.decide { core in
            for (key, _) in core.state.peripherals.listed({ _ in }) where isRemoved(key) {
                core.state.forget(key, into: &core.shell.orders)
            }
        }
    }

    /// Ends the streams that this manager has handed out, and starts over as ``reset()`` does.
    ///
    /// The streams of `startScanning`, ``startRangingBeacons(_:model:smoothing:capacity:)``, ``whenStateChanges()``,
    /// ``whenPeripheralsExpire()`` and ``whenScanningRestarts()`` end, so that handlers added to them are not called any
    /// more. The manager itself remains usable: later calls return new streams, and the one of ``whenStateChanges()``
    /// begins with the present state. Connections, subscriptions and whatever is under way on them stay.
    public func invalidate() { session.invalidate() }
}
