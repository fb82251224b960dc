public import Foundation
public import BlueCapGATT

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
            for (key, _) in core.state.peripherals.listed where isRemoved(key) {
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

extension Characteristic {
    /// Whether the value can be read: the properties contain `read`.
    public var canRead: Bool { propertyEnabled(.read) }

    /// Whether the value can be written: the properties contain `write` or `writeWithoutResponse`.
    public var canWrite: Bool { propertyEnabled([.write, .writeWithoutResponse]) }

    /// The number of reads of this characteristic that have not completed, including the active one.
    public var pendingReadCount: Int { pendingCount { if case .read = $0 { true } else { false } } }

    /// The number of writes of this characteristic that have not completed, including the active one.
    public var pendingWriteCount: Int { pendingCount { if case .read = $0 { false } else { true } } }

    /// Returns a value as readable text, converted by the characteristic's profile.
    ///
    /// - Parameter data: The bytes of the value.
    /// - Returns: The texts of the value's parts; `nil` if there are no bytes, or if they are not a valid value of the
    ///   profile.
    public func stringValue(_ data: Data?) -> [String: String]? { data.flatMap { profile.stringValue($0) } }

    /// Returns the bytes of a value that was entered as text, converted by the characteristic's profile.
    ///
    /// - Parameter stringValue: The texts of the value's parts.
    /// - Returns: The bytes; `nil` if the texts are not a valid value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }

    private func pendingCount(_ isCounted: (AttributeState.Request) -> Bool) -> Int {
        session.use(of: peripheral.key) { $0.state.attributes.pendingCount(on: id, where: isCounted) } ?? 0
    }
}

extension PeripheralManager {
    /// The characteristics of all added services, in the order of the services.
    public var characteristics: [MutableCharacteristic] { services.flatMap(\.characteristics) }

    /// Returns the added services with this UUID; `nil` if there is none.
    public func service(withUUID uuid: CBUUID) -> [MutableService]? {
        services.filter { $0.uuid == uuid }.nonEmpty
    }

    /// Returns the characteristics of the added services with this UUID; `nil` if there is none.
    public func characteristics(withUUID uuid: CBUUID) -> [MutableCharacteristic]? {
        characteristics.filter { $0.uuid == uuid }.nonEmpty
    }
}

extension MutableCharacteristic {
    /// Returns the bytes of a value that was entered as text, converted by the characteristic's profile.
    ///
    /// - Returns: The bytes; `nil` if the texts are not a valid value of the profile.
    public func data(fromString stringValue: [String: String]) -> Data? { profile.data(fromString: stringValue) }
}
