public import BlueCapFutures
public import BlueCapGATT

/// Ranges beacons: iBeacon, Eddystone and AltBeacon.
///
/// Beacons are received like any other advertisement. Ranging needs no permission and no registered region, and works
/// while the program runs.
///
/// ```swift
/// for try await sighting in manager.startRangingBeacons([.iBeacon(floor, major: 1)]) {
///     guard let distance = sighting.distance else { continue }
///     print(sighting.beacon, sighting.proximity, distance.metres, distance.range)
/// }
/// ```
///
/// Ranging is independent of `startScanning`: each is started and stopped without the other, and both may run at the
/// same time. They share one BlueZ discovery, as several managers do. A manager has one ranging stream at a time.
extension CentralManager {
    /// Whether ranging is active.
    ///
    /// The value is true from `startRangingBeacons` until `stopRangingBeacons` or a failure. It stays true while the
    /// adapter is off or `bluetoothd` is not running, since ranging continues when they return.
    public var isRangingBeacons: Bool { session.core.withLock { $0.state.scan(ranging: true) != nil } }

    /// Starts ranging, and returns a stream of beacon sightings with an estimate of their distance.
    ///
    /// Each sighting of a beacon is reported. The peripherals that send the beacons are in ``peripherals`` while they
    /// are received, and ``whenPeripheralsExpire()`` reports those that are no longer received. BlueZ keeps only the
    /// newest value of each company's and each service's data. If a beacon sends several frames in turn, a frame that
    /// is replaced before BlueZ has reported it is missed until the beacon sends it again.
    ///
    /// - Parameters:
    ///   - filters: The beacons to report: those that at least one filter accepts. An empty list accepts all beacons.
    ///   - model: How a distance is computed from a signal strength; `DistanceModel` explains its limits.
    ///   - smoothing: The time over which signal strengths are averaged, the time constant of `SignalSmoother`; zero uses
    ///     each strength as it is received.
    ///   - capacity: How many sightings, the newest ones, the stream keeps for handlers that are added later.
    /// - Returns: A stream of sightings. It fails with `isPoweredOff`, `unsupported` or `unauthorized` if the state is
    ///   not `poweredOn`, with `isRanging` if this manager is already ranging, with `invalidOption`, and with
    ///   `scanFailed` if BlueZ still refuses after the retries. It ends after a failure and with
    ///   ``stopRangingBeacons()``.
    public func startRangingBeacons(
        _ filters: [BeaconFilter] = [], model: DistanceModel = DistanceModel(), smoothing: Duration = .seconds(2),
        capacity: Int = 1_024
    ) -> FutureStream<BeaconSighting> {
        scan(
            capacity, .infinity,
            {
                guard smoothing >= .zero else {
                    throw CentralManagerError.invalidOption("Smoothing takes zero or more seconds, not \(smoothing).")
                }
                var request = ScanRequest()
                request.allowsDuplicates = true
                request.ranging = Ranging(filters: filters, model: model, timeConstant: smoothing.seconds)
                return request
            }, { BeaconSighting($0) })
    }

    /// Stops ranging and ends its stream. A scan that runs at the same time continues. Does nothing if ranging is not
    /// active.
    public func stopRangingBeacons() {
        session.decide { $0.state.stopScan(ranging: true, into: &$0.shell.orders) }
    }
}
