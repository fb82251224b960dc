public import Foundation
public import Futures
public import GATT

/// Ranging beacons: iBeacon, Eddystone and AltBeacon, heard like any other advertisement. No permission is asked for and
/// no region registered; a program hears while it runs.
///
/// ```swift
/// manager.startRangingBeacons([.iBeacon(floor, major: 1)]).onSuccess { sighting in
///     guard let distance = sighting.distance else { return }
///     print(sighting.beacon, sighting.proximity, distance.metres, distance.range)
/// }
/// ```
///
/// Ranging stands beside `startScanning`: either may run, both may, and each is begun and ended without the other. They
/// share BlueZ's one discovery, as do several managers. A manager ranges for one stream at a time.
extension CentralManager {
    /// Whether this manager wants to range: true from `startRangingBeacons` until `stopRangingBeacons` or a failure, also
    /// while the adapter is off or `bluetoothd` away, since it goes on when they return.
    public var isRangingBeacons: Bool { session.core.withLock { $0.state.ranging != nil } }

    /// Reports beacons each time that they are heard, with an estimate of their distance.
    ///
    /// The peripherals that send them are in ``peripherals`` while they are heard, and ``whenPeripheralsExpire()`` tells of
    /// those that fell silent. BlueZ keeps one value of each company's and each service's data, the newest: of several
    /// frames that a beacon sends in turn, one that is overtaken before BlueZ has told it is missed, and comes again.
    ///
    /// - Parameters:
    ///   - filters: what is reported: a beacon that one of them accepts. An empty list asks for all.
    ///   - model: how distance is made of strength; it explains its limits.
    ///   - smoothing: seconds over which strengths are averaged, the time constant of `SignalSmoother`; 0 takes each as it
    ///     comes.
    ///   - capacity: how many sightings the stream keeps for handlers that are added later: the newest.
    /// - Returns: a stream of sightings. It fails with `isPoweredOff`, `unsupported` or `unauthorized` where the state is
    ///   not `poweredOn`, with `isRanging` where this manager ranges already, with `invalidOption`, and with `scanFailed`
    ///   when BlueZ refuses also after the retries. It ends after a failure and with ``stopRangingBeacons()``.
    public func startRangingBeacons(
        _ filters: [BeaconFilter] = [], model: DistanceModel = DistanceModel(), smoothing: TimeInterval = 2,
        capacity: Int = 1_024
    ) -> FutureStream<BeaconSighting> {
        if let refusal = session.problem ?? CentralManagerError(refusing: capacity) { return .failed(refusal) }
        guard smoothing >= 0, smoothing.isFinite else {
            return .failed(
                CentralManagerError.invalidOption("Smoothing takes zero or more seconds, not \(smoothing)."))
        }
        // A stream that kept everything would grow for as long as a beacon sends.
        let promise = StreamPromise<BeaconSighting>(capacity: capacity == .max ? 1_024 : capacity)
        var refusal: CentralManagerError?
        session.decide { core in
            switch core.state.startRanging(
                filters, model: model, timeConstant: smoothing, into: &core.shell.orders)
            {
            case .failure(let error): refusal = error
            case .success(let scan): core.scans.add(.beacons(promise), of: scan)
            }
        }
        return refusal.map { .failed($0) } ?? promise.stream
    }

    /// Ends ranging: its stream ends. A scan that runs beside it goes on. Without ranging it does nothing.
    public func stopRangingBeacons() {
        session.decide { $0.state.stopRanging(into: &$0.shell.orders) }
    }
}
