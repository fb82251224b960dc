import BlueCapBlueZ
import Foundation
import BlueCapGATT
import BlueCapReactor

/// A beacon that was received, and its estimated distance.
struct RangedBeacon: Equatable {
    let beacon: Beacon
    /// dBm; `nil` if BlueZ has no strength.
    let rssi: Int?
    /// dBm.
    let smoothedRSSI: Double?
    let distance: DistanceEstimate?
}

/// What is averaged of one peripheral that sends beacons. Strengths are those of the transmitter, whichever of its frames
/// contained them.
final class BeaconTrack: Sendable {
    /// The ranging that this belongs to.
    let scan: ScanNumber
    let smoother: SignalSmoother
    let receivedAt: Instant
    /// The measured power for frames that have none of their own: dBm at one metre.
    let measuredPower: Int?

    init(_ scan: ScanNumber, _ smoother: SignalSmoother, receivedAt: Instant, measuredPower: Int?) {
        self.scan = scan
        self.smoother = smoother
        self.receivedAt = receivedAt
        self.measuredPower = measuredPower
    }
}

/// How a scan ranges beacons.
struct Ranging: Equatable {
    /// The filters of the beacons to report; if empty, all are reported.
    let filters: [BeaconFilter]
    let model: DistanceModel
    let timeConstant: TimeInterval

    /// Records the beacons that a peripheral sent. Returns those that the filters accept.
    func received(
        _ beacons: [Beacon], rssi: Int?, at now: Instant, in scan: ScanNumber, track: inout BeaconTrack?
    ) -> [RangedBeacon] {
        if track?.scan != scan { track = nil }
        let wanted = beacons.filter { beacon in filters.isEmpty || filters.contains { $0.accepts(beacon) } }
        // A peripheral without a requested beacon gets no averages, which would use memory in a busy place. Once it has
        // averages, the frames between the requested ones are averaged too.
        guard track != nil || !wanted.isEmpty else { return [] }
        // 127 means that the strength is unknown.
        let rssi = rssi.flatMap { $0 <= 20 ? $0 : nil }
        var smoother = track?.smoother ?? SignalSmoother(timeConstant: timeConstant)
        if let rssi { smoother.add(Double(rssi), after: now.seconds(since: track?.receivedAt ?? now)) }
        let known = beacons.lazy.compactMap(\.measuredPower).first ?? track?.measuredPower
        track = BeaconTrack(scan, smoother, receivedAt: now, measuredPower: known)
        let smoothed = rssi == nil ? nil : smoother.average
        return wanted.map { beacon in
            var distance: DistanceEstimate?
            if let smoothed, let power = beacon.measuredPower ?? known {
                distance = model.distance(rssi: smoothed, measuredPower: Double(power), sightings: smoother.weight)
            }
            return RangedBeacon(beacon: beacon, rssi: rssi, smoothedRSSI: smoothed, distance: distance)
        }
    }
}

extension Beacon {
    /// Returns the beacons in a report of a device: those in the new data, or, if there are no new data, those in the
    /// known data.
    static func all(in device: borrowing Device1, changed fields: Device1.Fields) -> [Beacon] {
        let isAll = fields.isDisjoint(with: [.manufacturerData, .serviceData])
        var beacons: [Beacon] = []
        if isAll || fields.contains(.manufacturerData) {
            device.manufacturerData.forEach { company, data in
                if let beacon = Beacon(company: company, manufacturerData: Data(data)) { beacons.append(beacon) }
            }
        }
        if isAll || fields.contains(.serviceData) {
            device.serviceData.forEach { service, data in
                guard service == Eddystone.service else { return }
                if let beacon = Beacon(service: service, serviceData: Data(data)) { beacons.append(beacon) }
            }
        }
        return beacons
    }
}
