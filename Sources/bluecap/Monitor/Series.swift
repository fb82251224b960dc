import BlueCapKit
import Foundation

/// A number that a value contains, with its unit.
struct Quantity: Equatable, Sendable {
    var number: Double
    /// Empty if it has none.
    var unit: String

    /// Returns the numbers of a value with the names of their series.
    ///
    /// They are those of the fields that the profile decodes and that begin with a number, such as "72 bpm". A value that no
    /// profile decodes, of one, two, four or eight bytes, is taken for an unsigned number in little-endian order, which
    /// characteristics of GATT use (Core Specification 5.4, volume 3, part G, 2.4).
    ///
    /// - Parameter label: The characteristic's name or UUID.
    static func all(in value: AttributeValue, label: String) -> [(series: String, quantity: Quantity)] {
        guard value.fields.isEmpty else {
            return value.fields.compactMap { field in
                guard let quantity = Quantity(field.text) else { return nil }
                let isAlone = value.isWhole || label.hasPrefix(field.name)
                return (isAlone ? (value.isWhole ? label : field.name) : "\(label) \(field.name)", quantity)
            }
        }
        guard [1, 2, 4, 8].contains(value.data.count) else { return [] }
        let number = value.data.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return [(label, Quantity(number: Double(number), unit: ""))]
    }

    init(number: Double, unit: String) { (self.number, self.unit) = (number, unit) }

    /// Reads "72 bpm", "21.5°C", "-3": a number, and after it nothing but a unit. A date, or a list of numbers, is `nil`.
    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([^\d\s:.,+-][^\s:,]*)?/),
            let number = Double(match.1), number.isFinite
        else { return nil }
        self.init(number: number, unit: match.2.map(String.init) ?? "")
    }

    /// A number in as few digits as it needs: "72", "21.5", "3.142".
    static func text(_ number: Double) -> String {
        guard abs(number) < 1e7 else { return String(format: "%.3g", number) }
        let digits = abs(number) < 10 ? 3 : abs(number) < 100 ? 2 : 1
        var text = String(format: "%.\(digits)f", number)
        while text.last == "0" { text.removeLast() }
        if text.last == "." { text.removeLast() }
        return text == "-0" ? "0" : text
    }

    /// "72 bpm".
    var text: String { Self.text(number) + (unit.isEmpty ? "" : " " + unit) }
}

/// The samples of one number over time. Times are seconds since the command began to monitor.
struct Series: Sendable {
    struct Sample: Equatable, Sendable {
        var time: Double
        var number: Double
    }

    let name: String
    let unit: String
    /// Those that can still be shown, the oldest first.
    private(set) var samples: [Sample] = []
    private(set) var minimum = Double.infinity
    private(set) var maximum = -Double.infinity
    private(set) var count = 0
    private var sum = 0.0

    init(name: String, unit: String) { (self.name, self.unit) = (name, unit) }

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

    mutating func add(_ quantity: Quantity, to name: String, at time: Double) {
        let place = series.firstIndex { $0.name == name } ?? series.count
        if place == series.count { series.append(Series(name: name, unit: quantity.unit)) }
        series[place].add(quantity.number, at: time, showingFrom: time - window)
    }

    mutating func beginGap(at time: Double) {
        guard gaps.last.map({ $0.end != nil }) ?? true else { return }
        gaps.append(Gap(start: time))
    }

    mutating func endGap(at time: Double) {
        guard let last = gaps.indices.last, gaps[last].end == nil else { return }
        gaps[last].end = time
        gaps.removeAll { $0.end.map { $0 < time - window } ?? false }
    }

    func hasGap(from start: Double, to end: Double) -> Bool {
        gaps.contains { $0.start <= end && ($0.end ?? .infinity) >= start }
    }
}
