import Foundation
import Futures
import GATT
import Reactor

/// Ranging beacons beside the manager's scan.
extension CentralSession {
    // MARK: Any thread

    var isRangingBeacons: Bool { core.withLock { $0.state.ranging != nil } }

    func startRanging(
        _ filters: [BeaconFilter], model: DistanceModel, smoothing: TimeInterval, capacity: Int
    ) -> FutureStream<BeaconSighting> {
        if let problem = options.problem { return .failed(problem) }
        guard smoothing >= 0, smoothing.isFinite else {
            return .failed(
                CentralManagerError.invalidOption("Smoothing takes zero or more seconds, not \(smoothing)."))
        }
        guard capacity >= 0 else {
            return .failed(
                CentralManagerError.invalidOption("A stream's capacity is zero or more elements, not \(capacity)."))
        }
        // A stream that kept everything would grow for as long as a beacon sends.
        let promise = StreamPromise<BeaconSighting>(capacity: capacity == .max ? 1_024 : capacity)
        var refusal: CentralManagerError?
        decide { core in
            switch core.state.startRanging(filters, model: model, timeConstant: smoothing, into: &core.orders) {
            case .failure(let error): refusal = error
            case .success(let scan): core.rangings[scan] = promise
            }
        }
        return refusal.map { .failed($0) } ?? promise.stream
    }

    func stopRanging() { decide { $0.state.stopRanging(into: &$0.orders) } }

    // MARK: On the loop

    func report(_ ranged: RangedBeacon, from key: PeripheralKey, to ranging: ScanNumber) {
        let found = core.withLock { core in
            core.rangings[ranging].map { ($0, core.handles.hold(key) { Peripheral(session: self, key: key) }) }
        }
        // It may have been stopped since; then nobody wants to hear of it.
        guard let (promise, peripheral) = found else { return }
        let sighting = BeaconSighting(
            peripheral: peripheral, beacon: ranged.beacon, rssi: ranged.rssi, smoothedRSSI: ranged.smoothedRSSI,
            distance: ranged.distance, date: loop.date)
        complete { promise.success(sighting) }
    }
}
