public import Foundation
public import BlueCapGATT

/// A beacon that was received, with its data and an estimate of its distance.
public struct BeaconSighting: Sendable {
    /// The peripheral that sent the beacon: the same object as in ``CentralManager/peripherals``.
    ///
    /// Many beacons change their address every quarter of an hour, and each address is a different peripheral. The
    /// identity that stays the same is in ``beacon``.
    public let peripheral: Peripheral
    /// The data of the beacon.
    public let beacon: Beacon
    /// The signal strength of this sighting in dBm; `nil` if BlueZ did not report one.
    public let rssi: Int?
    /// The signal strength in dBm, averaged over the last seconds (`SignalSmoother`); `nil` if this sighting has none.
    public let smoothedRSSI: Double?
    /// The estimated distance in metres, with a factor of uncertainty (`DistanceModel`).
    ///
    /// It is `nil` without a signal strength. For telemetry it is `nil` until the peripheral has sent its measured
    /// power in another frame.
    public let distance: DistanceEstimate?
    /// When the beacon was received.
    public let date: Date

    init?(_ sighting: Scans.Stream.Sighting) {
        guard case .beacon(let ranged, let date)? = sighting.data else { return nil }
        (peripheral, beacon, self.date) = (sighting.peripheral, ranged.beacon, date)
        (rssi, smoothedRSSI, distance) = (ranged.rssi, ranged.smoothedRSSI, ranged.distance)
    }

    /// How near the beacon is, in the categories of Core Location.
    public var proximity: BeaconProximity { BeaconProximity(distance) }
}

extension BeaconSighting: CustomStringConvertible {
    public var description: String {
        let distance = distance.map { String(format: "%.1f m, give or take a factor of %.1f", $0.metres, $0.factor) }
        return "BeaconSighting(\(beacon.kind.rawValue) at \(peripheral.address), \(distance ?? "distance unknown"))"
    }
}
