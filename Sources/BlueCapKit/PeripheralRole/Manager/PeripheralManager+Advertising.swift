public import Foundation
public import BlueCapFutures
public import BlueCapGATT

extension PeripheralManager {
    /// Whether anything is being advertised or requested: from `startAdvertising` until `stopAdvertising`, the end of
    /// the advertisement or a failure. This includes the time while the adapter is off or `bluetoothd` away, because
    /// advertising continues when they return.
    public var isAdvertising: Bool { session.isAdvertising }

    /// Variant of ``startAdvertising(_:uuids:timeout:)-(_,_,Duration?)`` with ``defaultTimeout`` that returns a future.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil) -> Future<Void> {
        startAdvertising(name, uuids: uuids, timeout: Self.defaultTimeout.seconds)
    }

    /// Variant of ``startAdvertising(_:uuids:timeout:)-(_,_,Duration?)`` that returns a future. The time limit is in seconds; `.infinity`
    /// sets none.
    @discardableResult
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil, timeout: TimeInterval) -> Future<Void> {
        session.startAdvertising(AdvertisingData(name: name, uuids: uuids), isMain: true, timeout: timeout)
            .map(context: ImmediateContext()) { _ in }
    }

    /// Variant of ``startAdvertising(_:timeout:)-(BeaconRegion,Duration?)`` with ``defaultTimeout`` that returns a future.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion) -> Future<Void> {
        startAdvertising(region, timeout: Self.defaultTimeout.seconds)
    }

    /// Variant of ``startAdvertising(_:timeout:)-(BeaconRegion,Duration?)`` that returns a future. The time limit is in seconds;
    /// `.infinity` sets none.
    @discardableResult
    public func startAdvertising(_ region: BeaconRegion, timeout: TimeInterval) -> Future<Void> {
        session.startAdvertising(AdvertisingData(region.beacon), isMain: true, timeout: timeout)
            .map(context: ImmediateContext()) { _ in }
    }

    /// Variant of ``startAdvertising(_:timeout:)-(AdvertisingData,Duration?)`` with ``defaultTimeout`` that returns a future.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData) -> Future<RunningAdvertisement> {
        startAdvertising(data, timeout: Self.defaultTimeout.seconds)
    }

    /// Variant of ``startAdvertising(_:timeout:)-(AdvertisingData,Duration?)`` that returns a future. The time limit is in seconds;
    /// `.infinity` sets none.
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData, timeout: TimeInterval) -> Future<RunningAdvertisement> {
        session.startAdvertising(data, isMain: false, timeout: timeout)
    }

    /// The advertisements that are being sent or requested, in the order of the calls.
    public var advertisements: [RunningAdvertisement] { session.advertisements }

    /// Variant of ``stopAdvertising(timeout:)-(Duration?)`` that returns a future.
    /// - Parameter timeout: The time limit in seconds; `.infinity` sets none.
    @discardableResult
    public func stopAdvertising(timeout: TimeInterval = 10.0) -> Future<Void> {
        session.stopAdvertising(nil, timeout: timeout)
    }

    /// Variant of ``advertisingLimits(timeout:)-(Duration?)`` that returns a future. Its time limit is ``defaultTimeout``.
    public func advertisingLimits() -> Future<AdvertisingLimits> {
        advertisingLimits(timeout: Self.defaultTimeout.seconds)
    }

    /// Variant of ``advertisingLimits(timeout:)-(Duration?)`` that returns a future.
    /// - Parameter timeout: The time limit in seconds; more than a day counts as a day.
    @_disfavoredOverload  // as with `add(_:timeout:)`
    public func advertisingLimits(timeout: TimeInterval) -> Future<AdvertisingLimits> {
        session.advertisingLimits(timeout: timeout)
    }
}

extension AdvertisingData {
    /// Creates the data of an advertisement with a name. As in Core Bluetooth, an empty name means no name.
    init(name: String, uuids: [CBUUID]?) { self.init(localName: name.isEmpty ? nil : name, serviceUUIDs: uuids ?? []) }
}
