import BlueZ
import Foundation
import GATT
import Reactor

/// A beacon that was received, and its estimated distance.
struct RangedBeacon: Equatable {
    let beacon: Beacon
    /// dBm; `nil` if BlueZ has no strength.
    let rssi: Int?
    /// dBm.
    let smoothedRSSI: Double?
    let distance: DistanceEstimate?
}

/// The beacons that a manager ranges: filters and averages, as a value.
struct Ranging {
    /// The averages of one peripheral. Strengths are those of the transmitter, whichever of its frames contained them.
    private struct Track {
        var smoother: SignalSmoother
        var receivedAt: Instant
        /// The measured power for frames that have none of their own: dBm at one metre.
        var measuredPower: Int?
    }

    let id: ScanNumber
    /// The filters of the beacons to report; if empty, all are reported.
    let filters: [BeaconFilter]
    let model: DistanceModel
    let timeConstant: TimeInterval
    private var tracks: [PeripheralKey: Track] = [:]

    init(id: ScanNumber, filters: [BeaconFilter], model: DistanceModel, timeConstant: TimeInterval) {
        self.id = id
        self.filters = filters
        self.model = model
        self.timeConstant = timeConstant
    }

    /// The number of peripherals that have averages.
    var trackCount: Int { tracks.count }

    /// Records the beacons that a peripheral sent. Returns those that the filters accept.
    mutating func received(_ key: PeripheralKey, _ beacons: [Beacon], rssi: Int?, at now: Instant) -> [RangedBeacon] {
        var track = tracks[key] ?? Track(smoother: SignalSmoother(timeConstant: timeConstant), receivedAt: now)
        track.measuredPower = beacons.lazy.compactMap(\.measuredPower).first ?? track.measuredPower
        let wanted = beacons.filter { beacon in filters.isEmpty || filters.contains { $0.accepts(beacon) } }
        // A peripheral without a requested beacon gets no averages, which would use memory in a busy place. Once it has
        // averages, the frames between the requested ones are averaged too.
        guard tracks[key] != nil || !wanted.isEmpty else { return [] }
        // 127 means that the strength is unknown.
        let rssi = rssi.flatMap { $0 <= 20 ? $0 : nil }
        if let rssi { track.smoother.add(Double(rssi), after: now.seconds(since: track.receivedAt)) }
        track.receivedAt = now
        tracks[key] = track
        return wanted.map { beacon in
            let smoothed = rssi == nil ? nil : track.smoother.average
            let power = beacon.measuredPower ?? track.measuredPower
            var distance: DistanceEstimate?
            if let smoothed, let power {
                distance = model.distance(
                    rssi: smoothed, measuredPower: Double(power), sightings: track.smoother.weight)
            }
            return RangedBeacon(beacon: beacon, rssi: rssi, smoothedRSSI: smoothed, distance: distance)
        }
    }

    /// Removes a peripheral that has expired or was evicted.
    mutating func forget(_ key: PeripheralKey) { tracks[key] = nil }
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
