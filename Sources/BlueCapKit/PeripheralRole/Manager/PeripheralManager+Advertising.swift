public import Foundation
public import Futures
public import GATT

extension PeripheralManager {
    /// Whether anything is being advertised, or shall be: from `startAdvertising` until `stopAdvertising`, its end or a
    /// failure, also while the adapter is off or `bluetoothd` away, since it goes on when they return.
    public var isAdvertising: Bool { session.isAdvertising }

    /// Advertises a name, and services.
    ///
    /// The name goes into the scan response and may have 29 bytes of UTF-8; of services there is room for a single long UUID,
    /// or twelve short ones.
    ///
    /// - Parameters:
    ///   - name: The name that others see.
    ///   - uuids: The services that they see; `nil` for none.
    /// - Returns: Succeeds when it is on the air. It fails with ``PeripheralManagerError/isAdvertising`` where a name or a
    ///   region is being advertised already, with ``PeripheralManagerError/advertisementTooLong(field:by:)`` at once, with
    ///   ``PeripheralManagerError/notPoweredOn(_:)`` where the manager is not `poweredOn` within 10 seconds, with
    ///   ``PeripheralManagerError/tooManyAdvertisements(_:)``, ``PeripheralManagerError/advertisementRefused(_:)``,
    ///   ``PeripheralManagerError/advertisingNotSupported``, ``PeripheralManagerError/advertisingStopped``,
    ///   ``PeripheralManagerError/invalidOption(_:)``.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil) -> Future<Void> {
        // As Core Bluetooth takes it: a name of no letters is none.
        let data = AdvertisingData(localName: name.isEmpty ? nil : name, serviceUUIDs: uuids ?? [])
        return session.startAdvertising(data, isMain: true).map(context: ImmediateContext()) { _ in }
    }

    /// Pretends to be an iBeacon. It needs no services, and nobody can connect to it.
    ///
    /// - Returns: As ``startAdvertising(_:uuids:)``.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion) -> Future<Void> {
        session.startAdvertising(AdvertisingData(region.beacon), isMain: true).map(context: ImmediateContext()) { _ in }
    }

    /// Advertises whatever BlueZ can, beside what is being advertised already: as many at once as the adapter has room for
    /// (``advertisingLimits()``), each for its own time.
    ///
    /// - Returns: The advertisement, once it is on the air. It fails as ``startAdvertising(_:uuids:)`` does, but for
    ///   `isAdvertising`; and with ``PeripheralManagerError/invalidAdvertisement(_:)``. What BlueZ silently ignores is
    ///   listed in ``RunningAdvertisement/notes``.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData) -> Future<RunningAdvertisement> {
        session.startAdvertising(data, isMain: false)
    }

    /// What is being advertised, or shall be, in the order of the calls.
    public var advertisements: [RunningAdvertisement] { session.advertisements }

    /// Ends all that is being advertised. A start that is under way fails with
    /// ``PeripheralManagerError/advertisingStopped``.
    ///
    /// - Parameter timeout: In seconds.
    /// - Returns: Succeeds when BlueZ has confirmed it, and at once where nothing is advertised; fails with
    ///   ``PeripheralManagerError/stopAdvertisingTimeout`` where that takes longer.
    @discardableResult
    public func stopAdvertising(timeout: TimeInterval = 10.0) -> Future<Void> {
        session.stopAdvertising(nil, timeout: timeout)
    }

    /// What the adapter can advertise now.
    ///
    /// - Returns: It fails with ``PeripheralManagerError/notPoweredOn(_:)`` where there is no adapter, and with
    ///   ``PeripheralManagerError/advertisingNotSupported`` where it cannot advertise.
    public func advertisingLimits() -> Future<AdvertisingLimits> { session.advertisingLimits() }
}
