/// The samples of one number over time. Times are seconds since the command began to monitor.
struct Series: Sendable {
    struct Sample: Equatable, Sendable {
        var time: Double
        var number: Double
    }

    let name: String
    let unit: String
    /// The number of the peripheral.
    let owner: Int
    /// Whether a number holds until the next one. A strength does not: out of range there is none.
    var isHeld: Bool { unit != "dBm" }
    /// Those that can still be shown, the oldest first.
    private(set) var samples: [Sample] = []
    private(set) var minimum = Double.infinity
    private(set) var maximum = -Double.infinity
    private(set) var count = 0
    private var sum = 0.0

    init(name: String, unit: String, owner: Int) { (self.name, self.unit, self.owner) = (name, unit, owner) }

    /// The board makes a series with its first sample.
    var latest: Double { samples.last?.number ?? .nan }

    /// Of all samples.
    var mean: Double { sum / Double(count) }

    /// - Parameter start: Samples that are older than the last one before this time are forgotten.
    mutating func add(_ number: Double, at time: Double, showingFrom start: Double) {
        samples.append(Sample(time: time, number: number))
        // One sample before the first that is shown is kept: the line begins there.
        let hidden = samples.prefix { $0.time < start }.count
        if hidden > 64 { samples.removeFirst(hidden - 1) }
        (count, sum) = (count + 1, sum + number)
        (minimum, maximum) = (min(minimum, number), max(maximum, number))
    }
}

/// All that a monitor shows, as a value.
struct MonitorBoard: Sendable {
    /// A time without values, because the link was lost.
    struct Gap: Equatable, Sendable {
        let owner: Int
        var start: Double
        /// `nil` while it lasts.
        var end: Double?
    }

    /// What is monitored.
    let title: String
    /// In seconds: how much time the plots show.
    let window: Double
    /// In the order of their first samples.
    private(set) var series: [Series] = []
    private(set) var gaps: [Gap] = []

    init(title: String = "", window: Double) { (self.title, self.window) = (title, window) }

    var count: Int { series.reduce(0) { $0 + $1.count } }

    mutating func add(_ quantity: Quantity, to name: String, of owner: Int = 0, at time: Double) {
        let place = series.firstIndex { $0.name == name } ?? series.count
        if place == series.count { series.append(Series(name: name, unit: quantity.unit, owner: owner)) }
        series[place].add(quantity.number, at: time, showingFrom: time - window)
    }

    mutating func beginGap(of owner: Int = 0, at time: Double) {
        guard !gaps.contains(where: { $0.owner == owner && $0.end == nil }) else { return }
        gaps.append(Gap(owner: owner, start: time))
    }

    mutating func endGap(of owner: Int = 0, at time: Double) {
        guard let last = gaps.lastIndex(where: { $0.owner == owner && $0.end == nil }) else { return }
        gaps[last].end = time
        gaps.removeAll { $0.end.map { $0 < time - window } ?? false }
    }

    func gap(of owner: Int, from start: Double, to end: Double) -> Gap? {
        gaps.first { $0.owner == owner && $0.start <= end && ($0.end ?? .infinity) >= start }
    }
}
