public import Foundation

// Names from BlueCap's latest sources (February 2020), in addition to those of its documents.

extension CentralManager {
    /// The peripherals of ``peripherals`` by their identifiers.
    public var discoveredPeripherals: [UUID: Peripheral] {
        Dictionary(peripherals.map { ($0.identifier, $0) }) { first, _ in first }
    }

    /// The discovered services of all ``peripherals``, in the order of the peripherals.
    public var services: [Service] { peripherals.flatMap(\.services) }

    /// Removes a peripheral from ``peripherals``. An active scan discovers it again when it advertises.
    ///
    /// A connection and the operations on it continue as long as the application holds the `Peripheral`. To end them,
    /// call ``Peripheral/terminate()``, which also removes the peripheral. Does nothing if the peripheral is not
    /// listed.
    public func removePeripheral(withIdentifier identifier: UUID) {
        remove { $0.address.identifier(type: $0.addressType) == identifier }
    }

    /// Removes all peripherals from ``peripherals``, as ``removePeripheral(withIdentifier:)`` does with one.
    public func removeAllPeripherals() { remove { _ in true } }

    /// Removes peripherals from the list. Active operations on them continue.
    private func remove(where isRemoved: (PeripheralKey) -> Bool) {
        session.decide { core in
            for (key, _) in core.state.peripherals.listed({ _ in }) where isRemoved(key) {
                core.state.forget(key, into: &core.shell.orders)
            }
        }
    }

    /// Ends the streams that this manager has returned, and starts over as ``reset()`` does.
    ///
    /// The streams of `startScanning`, ``startRangingBeacons(_:model:smoothing:capacity:)``, ``whenStateChanges()``,
    /// ``whenPeripheralsExpire()`` and ``whenScanningRestarts()`` end, so that their handlers are not called any more.
    /// The manager remains usable: later calls return new streams, and the one of ``whenStateChanges()`` begins with
    /// the current state. Connections, subscriptions and the operations on them continue.
    public func invalidate() { session.invalidate() }
}
