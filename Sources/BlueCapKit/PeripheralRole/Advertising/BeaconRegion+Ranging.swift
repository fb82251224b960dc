public import Foundation
public import Futures
public import GATT

extension CentralManager {
    /// Ranges the beacons of a region: ``startRangingBeacons(_:model:smoothing:capacity:)`` with the region's filter and
    /// capacity, where `Int.max` keeps the newest 1 024 sightings.
    public func startRangingBeacons(
        in region: BeaconRegion, model: DistanceModel = DistanceModel(), smoothing: TimeInterval = 2
    ) -> FutureStream<BeaconSighting> {
        startRangingBeacons(
            [region.filter], model: model, smoothing: smoothing,
            capacity: region.capacity == .max ? 1_024 : region.capacity)
    }
}
