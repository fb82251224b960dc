public import Foundation

/// How strongly a peripheral is heard, over time, in dBm.
///
/// A course is a function of time alone: the same course gives the same strength at the same second on every run,
/// whatever was asked before. `127` stands for "not available", as in the specification, and is passed on as it is.
public enum RSSICourse: Hashable, Sendable {
    /// The same strength always.
    case constant(Int)
    /// One strength after another: each holds from its second until the next one's. Before the first, the first holds.
    case steps([Step])
    /// Wandering around a strength, never further from it than `spread`, in a way that `seed` decides; a new value
    /// every half second.
    case walk(around: Int, spread: Int, seed: UInt64)

    /// From `after` seconds on, `rssi` dBm.
    public struct Step: Hashable, Sendable, Codable {
        /// Seconds since the simulator began.
        public var after: TimeInterval
        /// In dBm.
        public var rssi: Int

        public init(after: TimeInterval, rssi: Int) {
            self.after = after
            self.rssi = rssi
        }
    }

    /// The strength at a time in seconds since the simulator began.
    public func rssi(at seconds: TimeInterval) -> Int {
        switch self {
        case .constant(let rssi):
            return rssi
        case .steps(let steps):
            let ordered = steps.sorted { $0.after < $1.after }
            return (ordered.last { $0.after <= seconds } ?? ordered.first)?.rssi ?? Self.notAvailable
        case .walk(let around, let spread, let seed):
            // Smooth noise rather than a summed walk: any second can be asked for at once, and it never leaves the spread.
            let place = max(0, seconds) * 2
            let slow = Self.noise(place / 6, seed: seed)
            let quick = Self.noise(place.rounded(.down), seed: seed &+ 1)
            return around + Int((Double(spread) * (0.7 * slow + 0.3 * quick)).rounded())
        }
    }

    /// What a controller says when it did not measure: `127`.
    public static let notAvailable = 127

    /// A value in -1 ... 1 that changes smoothly with `place`.
    private static func noise(_ place: Double, seed: UInt64) -> Double {
        let floor = place.rounded(.down)
        let step = UInt64(floor)
        let left = SeededGenerator.fraction(of: seed &* 0x1_0001 &+ step) * 2 - 1
        let right = SeededGenerator.fraction(of: seed &* 0x1_0001 &+ step &+ 1) * 2 - 1
        let part = place - floor
        return left + (right - left) * part * part * (3 - 2 * part)
    }
}

extension RSSICourse: ExpressibleByIntegerLiteral {
    public init(integerLiteral rssi: Int) { self = .constant(rssi) }
}

/// In JSON: `-60`, or `{"steps": [{"after": 0, "rssi": -80}, …]}`, or `{"walk": {"around": -60, "spread": 6, "seed": 7}}`.
extension RSSICourse: Codable {
    private enum Key: String, CodingKey, CaseIterable { case steps, walk }

    private struct Walk: Codable {
        var around: Int
        var spread: Int
        var seed: UInt64?
    }

    public init(from decoder: any Decoder) throws {
        if let constant = try? decoder.singleValueContainer().decode(Int.self) {
            self = .constant(constant)
            return
        }
        let container = try decoder.strictContainer(keyedBy: Key.self)
        if let steps = try container.decodeIfPresent([Step].self, forKey: .steps) {
            self = .steps(steps)
        } else {
            let walk = try container.decode(Walk.self, forKey: .walk)
            self = .walk(around: walk.around, spread: walk.spread, seed: walk.seed ?? 0)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .constant(let rssi):
            var container = encoder.singleValueContainer()
            try container.encode(rssi)
        case .steps(let steps):
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(steps, forKey: .steps)
        case .walk(let around, let spread, let seed):
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(Walk(around: around, spread: spread, seed: seed), forKey: .walk)
        }
    }
}
