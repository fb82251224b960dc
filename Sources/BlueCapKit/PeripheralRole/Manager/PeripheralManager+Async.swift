import Foundation
import BlueCapFutures
public import BlueCapGATT

/// Services and advertisements in an `async` function. Outside of one, the functions with the same names return futures.
///
/// ```swift
/// try await manager.add(battery)
/// try await manager.startAdvertising("Battery", uuids: [battery.uuid], timeout: .seconds(5))
/// ```
///
/// `timeout` limits the time from the call to the success, including the wait for `poweredOn`. With `nil` there is no limit, and
/// with zero or less a function fails unless it succeeds at once.
///
/// If the task is cancelled, the function throws `CancellationError`. A service or an advertisement that has not succeeded until then
/// is withdrawn. Of all other requests only the wait ends, and BlueZ executes them nevertheless.
extension PeripheralManager {
    /// Offers a service to centrals, as it is now. Returns when BlueZ has registered it, at once if it was added before.
    ///
    /// A service that was added remains added while the adapter is off or `bluetoothd` away, and is offered again with
    /// its handles when they return. Generic Access (1800) and Generic Attribute (1801) belong to BlueZ and cannot be
    /// added. A second call for a service that is being added shares the outcome and the time limit of the first.
    ///
    /// The request is repeated only after errors that are known to be temporary, such as `org.bluez.Error.InProgress`;
    /// after any other error `add` fails at once. If `add` fails, the service is not offered: it is unregistered, even
    /// if `bluetoothd` registers it later. It can be added again.
    ///
    /// If the task is cancelled before that, the service is removed as by ``remove(_:)``, unless another call waits for it too.
    /// - Throws: When the time limit has passed, ``PeripheralManagerError/notPoweredOn(_:)`` if the manager is not `poweredOn`,
    ///   ``PeripheralManagerError/servicesNotSupported`` if the adapter cannot offer services,
    ///   ``PeripheralManagerError/serviceRefused(_:)`` if BlueZ was asked again after an error, and otherwise
    ///   ``PeripheralManagerError/serviceTimeout``. Before, ``PeripheralManagerError/serviceRefused(_:)``,
    ///   ``PeripheralManagerError/serviceInUse`` if the service belongs to another manager,
    ///   ``PeripheralManagerError/invalidService(_:)``, ``PeripheralManagerError/serviceRemoved``,
    ///   ``PeripheralManagerError/invalidOption(_:)``.
    public func add(_ service: MutableService, timeout: Duration? = defaultTimeout) async throws {
        try await awaiting { session.add(service, timeout: timeout.seconds) }
    }

    /// Advertises a name (empty for none) and services. Returns when the advertisement is being sent.
    ///
    /// The name is in the scan response and may have 29 bytes of UTF-8. The advertisement has space for a single long
    /// UUID, or for twelve short ones. Repetitions after errors, and a late success, are as with ``add(_:timeout:)-(_,Duration?)``.
    /// - Throws: ``PeripheralManagerError/isAdvertising`` if a name or a region is being advertised already,
    ///   ``PeripheralManagerError/advertisementTooLong(field:by:)`` at once,
    ///   ``PeripheralManagerError/tooManyAdvertisements(_:)``, ``PeripheralManagerError/advertisementRefused(_:)``,
    ///   ``PeripheralManagerError/advertisingStopped``, ``PeripheralManagerError/invalidOption(_:)``. When the time limit has
    ///   passed, ``PeripheralManagerError/notPoweredOn(_:)`` if the manager is not `poweredOn`,
    ///   ``PeripheralManagerError/advertisingNotSupported`` if the adapter cannot advertise,
    ///   ``PeripheralManagerError/advertisementRefused(_:)`` if BlueZ was asked again after an error, and otherwise
    ///   ``PeripheralManagerError/startAdvertisingTimeout``.
    public func startAdvertising(
        _ name: String, uuids: [CBUUID]? = nil, timeout: Duration? = defaultTimeout
    ) async throws {
        _ = try await start(AdvertisingData(name: name, uuids: uuids), isMain: true, timeout)
    }

    /// Advertises as an iBeacon, to which centrals cannot connect. Returns when the advertisement is being sent.
    /// - Throws: As ``startAdvertising(_:uuids:timeout:)-(_,_,Duration?)``.
    public func startAdvertising(_ region: BeaconRegion, timeout: Duration? = defaultTimeout) async throws {
        _ = try await start(AdvertisingData(region.beacon), isMain: true, timeout)
    }

    /// Advertises this data in addition to the present advertisements: as many at once as the adapter has instances
    /// (``advertisingLimits(timeout:)-(Duration?)``), each for its own time. Returns when the advertisement is being sent.
    ///
    /// All fields of ``AdvertisingData`` are sent. A field that needs a later BlueZ or extended advertising fails if it
    /// does not fit, and is listed in ``RunningAdvertisement/notes`` if BlueZ ignores it. BlueZ's `Data`, `Includes` of
    /// `appearance` and `local-name`, `DiscoverableTimeout` and `ScanResponseSolicitUUIDs` are not supported.
    /// - Throws: As ``startAdvertising(_:uuids:timeout:)-(_,_,Duration?)``, except `isAdvertising`; and
    ///   ``PeripheralManagerError/invalidAdvertisement(_:)``.
    @discardableResult
    public func startAdvertising(
        _ data: AdvertisingData, timeout: Duration? = defaultTimeout
    ) async throws -> RunningAdvertisement {
        try await start(data, isMain: false, timeout)
    }

    private func start(_ data: AdvertisingData, isMain: Bool, _ timeout: Duration?) async throws -> RunningAdvertisement
    {
        try await awaiting { session.startAdvertising(data, isMain: isMain, timeout: timeout.seconds) }
    }

    /// Ends all advertisements; a start that is under way fails with ``PeripheralManagerError/advertisingStopped``. Returns when
    /// BlueZ has confirmed the end.
    /// - Throws: ``PeripheralManagerError/stopAdvertisingTimeout``.
    public func stopAdvertising(timeout: Duration? = .seconds(10)) async throws {
        try await session.stopAdvertising(nil, timeout: timeout.seconds).value
    }

    /// Returns what the adapter can advertise now, within a day at most.
    /// - Throws: ``PeripheralManagerError/notPoweredOn(_:)`` at once if there is no adapter,
    ///   ``PeripheralManagerError/advertisingNotSupported``, ``PeripheralManagerError/advertisingLimitsTimeout``.
    public func advertisingLimits(timeout: Duration? = defaultTimeout) async throws -> AdvertisingLimits {
        try await session.advertisingLimits(timeout: timeout.seconds).value
    }

    /// Sets ``isPairable``, for all programs that use the adapter. While it is false, centrals with a bond can connect and use
    /// protected values, and no other central can pair.
    /// - Parameters:
    ///   - isPairable: Whether the adapter accepts new bonds.
    ///   - timeout: The time after which BlueZ resets it, rounded up to seconds, at least one; `nil` for no limit. BlueZ keeps
    ///     the value as ``pairableTimeout``, and does not use it if `isPairable` is false.
    /// - Throws: ``PairingError/unavailable(_:)``.
    public func setPairable(_ isPairable: Bool, timeout: Duration? = nil) async throws {
        try await session.setPairable(isPairable, timeout: timeout?.seconds).value
    }

    /// Ends the link to the device of a bond, and removes the bond and the device from BlueZ. The device keeps its keys: a central
    /// that has keys and is refused must remove them before it can pair again.
    /// - Throws: A ``PairingError``.
    public func forget(_ bond: Bond) async throws { try await session.forget(bond).value }

    /// Removes the bonds that this manager has made, one after the other, and returns them.
    /// - Throws: The ``PairingError`` of the first bond that cannot be removed.
    @discardableResult
    public func forgetBonds() async throws -> [Bond] { try await session.forgetBonds().value }
}

extension RunningAdvertisement {
    /// Ends the advertisement. Returns when BlueZ has confirmed the end, and at once if the advertisement had ended before. If the
    /// task is cancelled, it stops waiting, and the advertisement ends nevertheless.
    /// - Throws: ``PeripheralManagerError/stopAdvertisingTimeout``.
    public func stop(timeout: Duration? = .seconds(10)) async throws {
        let stopped: Future<Void> = stop(timeout: timeout.seconds)
        try await stopped.value
    }

    /// Waits for the end of the advertisement, and returns how it has ended. If the task is cancelled, it stops waiting.
    public func whenEnded() async throws -> AdvertisingEnd { try await endPromise.future.value }
}

extension MutableCharacteristic {
    /// Waits until no update waits any more, because each was sent or dropped. If the task is cancelled, it stops waiting.
    /// - Throws: ``MutableCharacteristicError/unconfigured`` if the characteristic is not offered.
    public func whenUpdatesSent() async throws {
        let sent: Future<Void> = whenUpdatesSent()
        try await sent.value
    }
}
