public import Foundation
public import Futures
public import GATT

extension PeripheralManager {
    /// Whether anything is being advertised or requested: from `startAdvertising` until `stopAdvertising`, its end or a
    /// failure. This includes the time while the adapter is off or `bluetoothd` away, since advertising continues when
    /// they return.
    public var isAdvertising: Bool { session.isAdvertising }

    /// Advertises a name, and services.
    ///
    /// The time-out is ``defaultTimeout``; ``startAdvertising(_:uuids:timeout:)`` takes another one and describes the outcome.
    ///
    /// - Parameters:
    ///   - name: The name that others see.
    ///   - uuids: The services that they see; `nil` for none.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil) -> Future<Void> {
        startAdvertising(name, uuids: uuids, timeout: Self.defaultTimeout)
    }

    /// Advertises a name, and services, unless the start takes longer than `timeout`.
    ///
    /// The name goes into the scan response and may have 29 bytes of UTF-8; of services a single long UUID fits, or
    /// twelve short ones. BlueZ is asked again only after errors that are known to pass; every other one fails at once.
    /// If the start fails, the advertisement is not sent: it is unregistered, even if `bluetoothd` registers it later.
    ///
    /// - Parameters:
    ///   - name: The name that others see.
    ///   - uuids: The services that they see; `nil` for none.
    ///   - timeout: In seconds, from the call to the success, the wait for `poweredOn` included. 0 or less fails what does
    ///     not succeed at once; `.infinity` sets no limit. How long it is advertised is not limited.
    /// - Returns: Succeeds when it is on the air. It fails with ``PeripheralManagerError/isAdvertising`` if a name or a
    ///   region is being advertised already, with ``PeripheralManagerError/advertisementTooLong(field:by:)`` at once,
    ///   with ``PeripheralManagerError/tooManyAdvertisements(_:)``,
    ///   ``PeripheralManagerError/advertisementRefused(_:)``, ``PeripheralManagerError/advertisingStopped``,
    ///   ``PeripheralManagerError/invalidOption(_:)``. When the time-out has passed it fails with
    ///   ``PeripheralManagerError/notPoweredOn(_:)`` if the manager is not `poweredOn`, with
    ///   ``PeripheralManagerError/advertisingNotSupported`` if the adapter cannot advertise, with
    ///   ``PeripheralManagerError/advertisementRefused(_:)`` if BlueZ was asked again after an error, and otherwise
    ///   with ``PeripheralManagerError/startAdvertisingTimeout``.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil, timeout: TimeInterval) -> Future<Void> {
        // As Core Bluetooth takes it: a name of no letters is none.
        let data = AdvertisingData(localName: name.isEmpty ? nil : name, serviceUUIDs: uuids ?? [])
        return session.startAdvertising(data, isMain: true, timeout: timeout).map(context: ImmediateContext()) { _ in }
    }

    /// Advertises as an iBeacon. A beacon needs no services, and centrals cannot connect to it.
    ///
    /// - Returns: As ``startAdvertising(_:uuids:)``.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion) -> Future<Void> {
        startAdvertising(region, timeout: Self.defaultTimeout)
    }

    /// Advertises as an iBeacon, unless the start takes longer than `timeout`.
    ///
    /// - Parameters:
    ///   - region: The beacon's identifiers.
    ///   - timeout: In seconds, as that of ``startAdvertising(_:uuids:timeout:)``.
    /// - Returns: As ``startAdvertising(_:uuids:timeout:)``.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion, timeout: TimeInterval) -> Future<Void> {
        session.startAdvertising(AdvertisingData(region.beacon), isMain: true, timeout: timeout)
            .map(context: ImmediateContext()) { _ in }
    }

    /// Advertises this data in addition to what is being advertised already: as many at once as the adapter has
    /// instances (``advertisingLimits()``), each for its own time.
    ///
    /// All fields of ``AdvertisingData`` are sent. What needs a later BlueZ or extended advertising fails if it does not fit, and
    /// is listed in ``RunningAdvertisement/notes`` if BlueZ ignores it. BlueZ's `Data`, `Includes` of `appearance` and
    /// `local-name`, `DiscoverableTimeout` and `ScanResponseSolicitUUIDs` are not offered.
    ///
    /// - Returns: The advertisement, once it is on the air. It fails as ``startAdvertising(_:uuids:)`` does, but for
    ///   `isAdvertising`; and with ``PeripheralManagerError/invalidAdvertisement(_:)``. What BlueZ silently ignores is
    ///   listed in ``RunningAdvertisement/notes``.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData) -> Future<RunningAdvertisement> {
        startAdvertising(data, timeout: Self.defaultTimeout)
    }

    /// Advertises this data, unless the start takes longer than `timeout`.
    ///
    /// - Parameters:
    ///   - data: What is advertised.
    ///   - timeout: For the start, in seconds, as that of ``startAdvertising(_:uuids:timeout:)``. How long BlueZ then
    ///     advertises is ``AdvertisingData/timeout``.
    /// - Returns: As the method without `timeout`.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData, timeout: TimeInterval) -> Future<RunningAdvertisement> {
        session.startAdvertising(data, isMain: false, timeout: timeout)
    }

    /// The advertisements that are sent or requested, in the order of the calls.
    public var advertisements: [RunningAdvertisement] { session.advertisements }

    /// Ends all that is being advertised. A start that is under way fails with
    /// ``PeripheralManagerError/advertisingStopped``.
    ///
    /// - Parameter timeout: In seconds.
    /// - Returns: Succeeds when BlueZ has confirmed it, and at once if nothing is advertised; fails with
    ///   ``PeripheralManagerError/stopAdvertisingTimeout`` if that takes longer.
    @discardableResult
    public func stopAdvertising(timeout: TimeInterval = 10.0) -> Future<Void> {
        session.stopAdvertising(nil, timeout: timeout)
    }

    /// What the adapter can advertise now, within ``defaultTimeout``.
    ///
    /// - Returns: As ``advertisingLimits(timeout:)``.
    public func advertisingLimits() -> Future<AdvertisingLimits> { advertisingLimits(timeout: Self.defaultTimeout) }

    /// What the adapter can advertise now.
    ///
    /// - Parameter timeout: In seconds; at most a day counts.
    /// - Returns: It fails with ``PeripheralManagerError/notPoweredOn(_:)`` at once if there is no adapter, with
    ///   ``PeripheralManagerError/advertisingNotSupported`` if it cannot advertise, and with
    ///   ``PeripheralManagerError/advertisingLimitsTimeout`` if `bluetoothd` does not answer in time.
    @_disfavoredOverload  // as with `add(_:timeout:)`
    public func advertisingLimits(timeout: TimeInterval) -> Future<AdvertisingLimits> {
        session.advertisingLimits(timeout: timeout)
    }
}
