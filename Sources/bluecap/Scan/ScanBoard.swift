import Foundation

/// The peripherals of a scan, in the order of the table: the strongest first, those that have expired last.
///
/// Signals jitter by several dB from packet to packet. The order follows a smoothed strength, in steps, and a row moves only
/// when it has clearly left its step: rows that move all the time cannot be read.
struct ScanBoard: Sendable {
    struct Row: Sendable {
        var sighting: Sighting
        var firstSeen: Double
        var lastSeen: Double
        var hasExpired = false
        var sightings = 0
        /// The mean seconds from one sighting to the next; `nil` if there was only one.
        var interval: Double? { sightings > 1 ? (lastSeen - firstSeen) / Double(sightings - 1) : nil }
        fileprivate var strength: Double?
        fileprivate var step = ScanBoard.unknownStep
        fileprivate var number: Int
    }

    /// Below every strength that a radio can report.
    private static let unknownStep = -100
    /// In dB.
    private static let stepHeight = 6.0
    /// How far, in steps, a strength must be from the middle of its step to leave it; 0.5 would be its edge.
    private static let stickiness = 0.8
    /// The share of a new value in the smoothed strength.
    private static let freshShare = 0.3

    private var rowsByIdentifier: [UUID: Row] = [:]
    private var newest: UUID?

    var count: Int { rowsByIdentifier.count }

    /// The row of the peripheral that was discovered last.
    var newestRow: Row? { newest.flatMap { rowsByIdentifier[$0] } }

    var rows: [Row] {
        rowsByIdentifier.values.sorted { left, right in
            if left.hasExpired != right.hasExpired { return right.hasExpired }
            if left.step != right.step { return left.step > right.step }
            return left.number < right.number
        }
    }

    /// Records a sighting; times are seconds since the scan began.
    mutating func see(_ sighting: Sighting, at now: Double) -> ScanEvent {
        let earlier = rowsByIdentifier[sighting.identifier]
        var row = earlier ?? Row(sighting: sighting, firstSeen: now, lastSeen: now, number: count)
        row.sighting = sighting
        row.lastSeen = now
        row.hasExpired = false
        row.sightings += 1
        if let rssi = sighting.rssi.map(Double.init) {
            let strength = row.strength.map { $0 + (rssi - $0) * Self.freshShare } ?? rssi
            row.strength = strength
            let exact = strength / Self.stepHeight
            if abs(exact - Double(row.step)) > Self.stickiness { row.step = Int(exact.rounded()) }
        }
        rowsByIdentifier[sighting.identifier] = row
        guard let earlier else {
            newest = sighting.identifier
            return .discovered(sighting)
        }
        return .updated(sighting, isNews: earlier.hasExpired || sighting.isNews(after: earlier.sighting))
    }

    /// Records that a peripheral has been silent for long; `nil` if it is unknown, or has expired already.
    mutating func expire(_ identifier: UUID) -> ScanEvent? {
        guard let row = rowsByIdentifier[identifier], !row.hasExpired else { return nil }
        rowsByIdentifier[identifier]?.hasExpired = true
        return .expired(row.sighting)
    }
}
