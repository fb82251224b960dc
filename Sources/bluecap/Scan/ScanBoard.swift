import Foundation

/// The peripherals of a scan, in the order of the table, those that have expired last.
///
/// Signals jitter by several dB from packet to packet. The order follows a smoothed strength, in steps, and a row moves only
/// when it has clearly left its step: rows that move all the time cannot be read.
struct ScanBoard: Sendable {
    /// What the rows are sorted by.
    enum Order: String, CaseIterable, Sendable {
        /// The strongest first.
        case strength
        /// In alphabetical order; those without a name last.
        case name
        /// The newest sighting first, in steps of some seconds.
        case lastHeard = "last heard"
    }

    struct Row: Sendable {
        var sighting: Sighting
        var firstSeen: Double
        var lastSeen: Double
        var hasExpired = false
        var sightings = 0
        var history = StrengthHistory()
        /// The mean seconds from one sighting to the next; `nil` if there was only one.
        var interval: Double? { sightings > 1 ? (lastSeen - firstSeen) / Double(sightings - 1) : nil }
        fileprivate var strength: Double?
        fileprivate var step = ScanBoard.unknownStep
        fileprivate var number: Int
        /// What a filter is compared with, in lower case.
        fileprivate var words = ""
    }

    /// Below every strength that a radio can report.
    private static let unknownStep = -100
    /// In dB.
    private static let stepHeight = 6.0
    /// How far, in steps, a strength must be from the middle of its step to leave it; 0.5 would be its edge.
    private static let stickiness = 0.8
    /// The share of a new value in the smoothed strength.
    private static let freshShare = 0.3
    /// In seconds: sightings of one step count as equally new.
    private static let moment = 5.0

    /// For how many seconds a row is kept after the last sighting of a peripheral that has expired, which a connected one does not.
    /// A device with a new random address every few minutes would otherwise leave rows for days.
    var memory = 600.0
    /// When rows are looked for that are older, in seconds since the scan began.
    private var nextSweep = 0.0
    private var discoveries = 0
    var order = Order.strength
    /// Only peripherals whose name, address, services or makers contain this text are rows.
    var filter = "" { didSet { filter = filter.lowercased() } }

    private var rowsByIdentifier: [UUID: Row] = [:]
    private var newest: UUID?

    var count: Int { rowsByIdentifier.count }

    /// The row of the peripheral that was discovered last.
    var newestRow: Row? { newest.flatMap { rowsByIdentifier[$0] } }

    var rows: [Row] {
        rowsByIdentifier.values.filter { filter.isEmpty || $0.words.contains(filter) }.sorted { left, right in
            if left.hasExpired != right.hasExpired { return right.hasExpired }
            switch order {
            case .strength: if left.step != right.step { return left.step > right.step }
            case .name:
                let (names, others) = (left.sighting.name ?? "", right.sighting.name ?? "")
                if names != others { return others.isEmpty || (!names.isEmpty && names < others) }
            case .lastHeard:
                let (moment, other) = (Int(left.lastSeen / Self.moment), Int(right.lastSeen / Self.moment))
                if moment != other { return moment > other }
            }
            return left.number < right.number
        }
    }

    subscript(identifier: UUID) -> Row? { rowsByIdentifier[identifier] }

    /// Records a sighting; times are seconds since the scan began.
    mutating func see(_ sighting: Sighting, at now: Double) -> ScanEvent {
        if now >= nextSweep {
            nextSweep = now + memory / 10
            rowsByIdentifier = rowsByIdentifier.filter { !$0.value.hasExpired || now - $0.value.lastSeen < memory }
        }
        let earlier = rowsByIdentifier[sighting.identifier]
        var row = earlier ?? Row(sighting: sighting, firstSeen: now, lastSeen: now, number: discoveries)
        row.sighting = sighting
        row.lastSeen = now
        row.hasExpired = false
        row.sightings += 1
        let isNews = earlier.map { $0.hasExpired || sighting.isNews(after: $0.sighting) } ?? true
        if isNews { row.words = sighting.words }
        if let rssi = sighting.rssi { row.history.add(rssi, at: now) }
        if let rssi = sighting.rssi.map(Double.init) {
            let strength = row.strength.map { $0 + (rssi - $0) * Self.freshShare } ?? rssi
            row.strength = strength
            let exact = strength / Self.stepHeight
            if abs(exact - Double(row.step)) > Self.stickiness { row.step = Int(exact.rounded()) }
        }
        rowsByIdentifier[sighting.identifier] = row
        guard earlier == nil else { return .updated(sighting, isNews: isNews) }
        newest = sighting.identifier
        discoveries += 1
        return .discovered(sighting)
    }

    /// Records that a peripheral has been silent for long; `nil` if it is unknown, or has expired already.
    mutating func expire(_ identifier: UUID) -> ScanEvent? {
        guard let row = rowsByIdentifier[identifier], !row.hasExpired else { return nil }
        rowsByIdentifier[identifier]?.hasExpired = true
        return .expired(row.sighting)
    }
}

/// The strengths of a peripheral over the last minutes, in steps of equal length.
struct StrengthHistory: Equatable, Sendable {
    /// In seconds.
    static let step = 5.0
    private static let mostSteps = 60

    private var last = 0
    /// The strongest of each step, in dBm, up to `last`; `nil` of a step without a sighting.
    private var strengths: [Int8?] = []

    mutating func add(_ rssi: Int, at now: Double) {
        let (present, strength) = (Int(now / Self.step), Int8(clamping: rssi))
        if strengths.isEmpty { last = present - 1 }
        if present > last {
            strengths += Array(repeating: nil, count: min(present - last, Self.mostSteps))
            strengths.removeFirst(max(0, strengths.count - Self.mostSteps))
            last = present
        }
        let newest = strengths.count - 1
        strengths[newest] = max(strengths[newest] ?? strength, strength)
    }

    /// The strengths of the steps until now, the newest last.
    func newest(_ count: Int, at now: Double) -> [Int?] {
        let silent = max(0, Int(now / Self.step) - last)
        let all = strengths.map { $0.map(Int.init) } + Array(repeating: nil, count: min(silent, Self.mostSteps))
        return Array(all.suffix(count))
    }
}
