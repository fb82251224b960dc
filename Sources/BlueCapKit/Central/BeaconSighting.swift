public import Foundation
public import GATT

/// A beacon that was heard, what it said, and how far away it may be.
public struct BeaconSighting: Sendable {
    /// Who sends: the same object as in ``CentralManager/peripherals``. Many beacons change their address every quarter of
    /// an hour, and are another peripheral then; what stays is in ``beacon``.
    public let peripheral: Peripheral
    /// What it said.
    public let beacon: Beacon
    /// The strength of this sighting in dBm; `nil` where BlueZ does not know it.
    public let rssi: Int?
    /// The strength averaged over the last seconds in dBm (`SignalSmoother`); `nil` where this sighting has none.
    public let smoothedRSSI: Double?
    /// How far away it may be, in metres and with a factor of uncertainty (`DistanceModel`); `nil` without a strength, and
    /// for telemetry as long as the peripheral has not said its measured power in another frame.
    public let distance: DistanceEstimate?
    /// When it was heard.
    public let date: Date

    /// How near it is, in Core Location's words.
    public var proximity: BeaconProximity { BeaconProximity(distance) }
}

extension BeaconSighting: CustomStringConvertible {
    public var description: String {
        let distance = distance.map { String(format: "%.1f m, give or take a factor of %.1f", $0.metres, $0.factor) }
        return "BeaconSighting(\(beacon.kind.rawValue) at \(peripheral.address), \(distance ?? "distance unknown"))"
    }
}
