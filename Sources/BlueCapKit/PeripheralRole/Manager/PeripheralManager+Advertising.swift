public import Foundation
public import BlueCapFutures
public import BlueCapGATT

extension PeripheralManager {
    /// Whether anything is being advertised or requested: from `startAdvertising` until `stopAdvertising`, the end of
    /// the advertisement or a failure. This includes the time while the adapter is off or `bluetoothd` away, because
    /// advertising continues when they return.
    public var isAdvertising: Bool { session.isAdvertising }

    /// Advertises a name and services.
    ///
    /// The time-out is ``defaultTimeout``; ``startAdvertising(_:uuids:timeout:)`` has a parameter for it and describes
    /// the outcome.
    ///
    /// - Parameters:
    ///   - name: The name that centrals receive.
    ///   - uuids: The UUIDs of the services that centrals receive; `nil` for none.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil) -> Future<Void> {
        startAdvertising(name, uuids: uuids, timeout: Self.defaultTimeout)
    }

    /// Advertises a name and services, and fails if the start takes longer than `timeout`.
    ///
    /// The name is in the scan response and may have 29 bytes of UTF-8. The advertisement has space for a single long
    /// UUID, or for twelve short ones. A request is repeated only after errors that are known to be temporary; after
    /// any other error the start fails at once. If the start fails, the advertisement is not sent: it is unregistered,
    /// even if `bluetoothd` registers it later.
    ///
    /// - Parameters:
    ///   - name: The name that centrals receive.
    ///   - uuids: The UUIDs of the services that centrals receive; `nil` for none.
    ///   - timeout: The time-out in seconds, from the call to the success, including the wait for `poweredOn`. With 0
    ///     or less the start fails unless it succeeds at once; `.infinity` sets no limit. It does not limit how long
    ///     the advertisement is sent.
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
        // As in Core Bluetooth, an empty name means no name.
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

    /// Advertises as an iBeacon, and fails if the start takes longer than `timeout`.
    ///
    /// - Parameters:
    ///   - region: The beacon's identifiers.
    ///   - timeout: The time-out in seconds, as in ``startAdvertising(_:uuids:timeout:)``.
    /// - Returns: As ``startAdvertising(_:uuids:timeout:)``.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion, timeout: TimeInterval) -> Future<Void> {
        session.startAdvertising(AdvertisingData(region.beacon), isMain: true, timeout: timeout)
            .map(context: ImmediateContext()) { _ in }
    }

    /// Advertises this data in addition to the present advertisements: as many at once as the adapter has instances
    /// (``advertisingLimits()``), each for its own time.
    ///
    /// All fields of ``AdvertisingData`` are sent. A field that needs a later BlueZ or extended advertising fails if it
    /// does not fit, and is listed in ``RunningAdvertisement/notes`` if BlueZ ignores it. BlueZ's `Data`, `Includes` of
    /// `appearance` and `local-name`, `DiscoverableTimeout` and `ScanResponseSolicitUUIDs` are not supported.
    ///
    /// - Returns: The advertisement, once it is being sent. It fails as ``startAdvertising(_:uuids:)`` does, except
    ///   with `isAdvertising`; and with ``PeripheralManagerError/invalidAdvertisement(_:)``. The fields that BlueZ
    ///   ignores without an error are in ``RunningAdvertisement/notes``.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData) -> Future<RunningAdvertisement> {
        startAdvertising(data, timeout: Self.defaultTimeout)
    }

    /// Advertises this data, and fails if the start takes longer than `timeout`.
    ///
    /// - Parameters:
    ///   - data: The data to advertise.
    ///   - timeout: The time-out of the start in seconds, as in ``startAdvertising(_:uuids:timeout:)``. How long BlueZ
    ///     then advertises is ``AdvertisingData/timeout``.
    /// - Returns: As the method without `timeout`.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData, timeout: TimeInterval) -> Future<RunningAdvertisement> {
        session.startAdvertising(data, isMain: false, timeout: timeout)
    }

    /// The advertisements that are being sent or requested, in the order of the calls.
    public var advertisements: [RunningAdvertisement] { session.advertisements }

    /// Ends all advertisements. A start that is under way fails with ``PeripheralManagerError/advertisingStopped``.
    ///
    /// - Parameter timeout: The time-out in seconds.
    /// - Returns: Succeeds when BlueZ has confirmed the end, and at once if nothing is advertised; fails with
    ///   ``PeripheralManagerError/stopAdvertisingTimeout`` if the confirmation takes longer.
    @discardableResult
    public func stopAdvertising(timeout: TimeInterval = 10.0) -> Future<Void> {
        session.stopAdvertising(nil, timeout: timeout)
    }

    /// Returns what the adapter can advertise now, within ``defaultTimeout``.
    ///
    /// - Returns: As ``advertisingLimits(timeout:)``.
    public func advertisingLimits() -> Future<AdvertisingLimits> { advertisingLimits(timeout: Self.defaultTimeout) }

    /// Returns what the adapter can advertise now.
    ///
    /// - Parameter timeout: The time-out in seconds; more than a day counts as a day.
    /// - Returns: It fails with ``PeripheralManagerError/notPoweredOn(_:)`` at once if there is no adapter, with
    ///   ``PeripheralManagerError/advertisingNotSupported`` if it cannot advertise, and with
    ///   ``PeripheralManagerError/advertisingLimitsTimeout`` if `bluetoothd` does not reply in time.
    @_disfavoredOverload  // as with `add(_:timeout:)`
    public func advertisingLimits(timeout: TimeInterval) -> Future<AdvertisingLimits> {
        session.advertisingLimits(timeout: timeout)
    }
}
