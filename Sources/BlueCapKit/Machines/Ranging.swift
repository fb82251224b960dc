import BlueZ
import Foundation
import GATT
import Reactor

/// A beacon that was heard, and where it may be.
struct RangedBeacon: Equatable {
    let beacon: Beacon
    /// dBm; `nil` where BlueZ does not know.
    let rssi: Int?
    /// dBm.
    let smoothedRSSI: Double?
    let distance: DistanceEstimate?
}

/// The beacons that a manager ranges: filters and averages, as a value.
struct Ranging {
    /// What is remembered of one peripheral. Strengths are the transmitter's, whichever of its frames they come with.
    private struct Track {
        var smoother: SignalSmoother
        var heardAt: Instant
        /// What the frames that have no measured power of their own are measured by: dBm at one metre.
        var measuredPower: Int?
    }

    let id: ScanNumber
    /// What is reported; nothing here is everything.
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

    /// How many peripherals are being followed.
    var trackCount: Int { tracks.count }

    /// A peripheral that sends these beacons was heard; answers those that are asked for.
    mutating func heard(_ key: PeripheralKey, _ beacons: [Beacon], rssi: Int?, at now: Instant) -> [RangedBeacon] {
        var track = tracks[key] ?? Track(smoother: SignalSmoother(timeConstant: timeConstant), heardAt: now)
        track.measuredPower = beacons.lazy.compactMap(\.measuredPower).first ?? track.measuredPower
        let wanted = beacons.filter { beacon in filters.isEmpty || filters.contains { $0.accepts(beacon) } }
        // A peripheral that sends something else is not followed, or a busy place would be remembered for nothing; one
        // that is followed goes on being averaged between the frames that were asked for.
        guard tracks[key] != nil || !wanted.isEmpty else { return [] }
        // 127 says that there is no strength.
        let rssi = rssi.flatMap { $0 <= 20 ? $0 : nil }
        if let rssi { track.smoother.add(Double(rssi), after: now.seconds(since: track.heardAt)) }
        track.heardAt = now
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

    /// A peripheral has expired or made room.
    mutating func forget(_ key: PeripheralKey) { tracks[key] = nil }
}

extension Beacon {
    /// The beacons in what was just heard of a device: in the data that came, or, where none did, in what is known.
    static func all(in device: borrowing Device1, heard fields: Device1.Fields) -> [Beacon] {
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

extension CentralState {
    /// Begins to range beacons. Returns the number of the scan, or the reason why there is none.
    mutating func startRanging(
        _ filters: [BeaconFilter], model: DistanceModel, timeConstant: TimeInterval, into orders: inout Orders
    ) -> Result<ScanNumber, CentralManagerError> {
        guard ranging == nil else { return .failure(.isRanging) }
        if let refusal = scanRefusal { return .failure(refusal) }
        let id = makeScanNumber()
        ranging = Ranging(id: id, filters: filters, model: model, timeConstant: timeConstant)
        var request = ScanRequest()
        request.allowsDuplicates = true
        orders.append(.startScan(id, request))
        orders.append(.startTimer(.expirySweep, Self.sweepInterval))
        return .success(id)
    }

    mutating func stopRanging(into orders: inout Orders) { endRanging(nil, into: &orders) }

    mutating func endRanging(_ error: CentralManagerError?, into orders: inout Orders) {
        guard let id = ranging?.id else { return }
        ranging = nil
        orders.append(.stopScan(id))
        if scan == nil { orders.append(.cancelTimer(.expirySweep)) }
        orders.append(.finishScan(id, error))
    }

    /// A device was received.
    mutating func range(
        _ key: PeripheralKey, _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields,
        at now: Instant, date: () -> Date, into orders: inout Orders
    ) {
        guard let id = ranging?.id else { return }
        let beacons = Beacon.all(in: device, heard: fields)
        guard !beacons.isEmpty, let ranged = ranging?.heard(key, beacons, rssi: device.rssi, at: now),
            !ranged.isEmpty
        else { return }
        // A listed peripheral stays marked as reported by the scan that runs at the same time.
        if peripherals.read(key, { $0.isListed }) != true {
            let evicted = peripherals.list(key, reportedBy: nil, device: source, at: now, date: date())
            for key in evicted { drop(key, into: &orders) }
        }
        for beacon in ranged { orders.append(.ranged(key, id, beacon)) }
    }
}
