import Foundation

/// The peripherals of a scan in the order in which people want to see them: the strongest first, the gone ones last.
///
/// Signals jitter by several dB from packet to packet. The order follows a smoothed strength, in steps, and a row
/// changes its place only when it has clearly left its step: rows that dance cannot be read.
struct ScanBoard: Sendable {
    struct Row: Sendable {
        var sighting: Sighting
        var firstSeen: Double
        var lastSeen: Double
        /// False once it has expired.
        var isAbout = true
        fileprivate var strength: Double?
        fileprivate var step = ScanBoard.unknownStep
        fileprivate var number: Int
    }

    /// Below every strength that a radio can report.
    private static let unknownStep = -100
    /// dB.
    private static let stepHeight = 6.0
    /// How far, in steps, a strength must be from the middle of its step to leave it; 0.5 would be its edge.
    private static let stickiness = 0.8
    /// The share of a new value in the smoothed strength.
    private static let freshShare = 0.3

    private var rowsByIdentifier: [UUID: Row] = [:]

    var count: Int { rowsByIdentifier.count }

    /// Who came last.
    private(set) var newest: UUID?

    var newestRow: Row? { newest.flatMap { rowsByIdentifier[$0] } }

    /// All rows in their order.
    var rows: [Row] {
        rowsByIdentifier.values.sorted { left, right in
            if left.isAbout != right.isAbout { return left.isAbout }
            if left.step != right.step { return left.step > right.step }
            return left.number < right.number
        }
    }

    mutating func apply(_ event: ScanEvent, at now: Double) {
        switch event {
        case .discovered(let sighting), .updated(let sighting, _): see(sighting, at: now)
        case .expired(let sighting): rowsByIdentifier[sighting.identifier]?.isAbout = false
        case .finished: break
        }
    }

    private mutating func see(_ sighting: Sighting, at now: Double) {
        if rowsByIdentifier[sighting.identifier] == nil { newest = sighting.identifier }
        var row =
            rowsByIdentifier[sighting.identifier]
            ?? Row(sighting: sighting, firstSeen: now, lastSeen: now, number: rowsByIdentifier.count)
        row.sighting = sighting
        row.lastSeen = now
        row.isAbout = true
        if let rssi = sighting.rssi.map(Double.init) {
            let strength = row.strength.map { $0 + (rssi - $0) * Self.freshShare } ?? rssi
            row.strength = strength
            let exact = strength / Self.stepHeight
            if abs(exact - Double(row.step)) > Self.stickiness { row.step = Int(exact.rounded()) }
        }
        rowsByIdentifier[sighting.identifier] = row
    }
}
