public import Foundation

/// The strength of a peripheral over time, in dBm.
///
/// A course is a function of time alone: the same course has the same strength at the same second on every run,
/// whatever was read before. Strengths are from -127 to 20 dBm, as in the specification, and what is outside becomes the
/// nearest bound; `127` stands for "not available", and is not changed.
public enum RSSICourse: Hashable, Sendable {
    /// The same strength always.
    case constant(Int)
    /// One strength after another: each from its second until the next one's, the first also before its second.
    case steps([Step])
    /// A random walk around a strength, never further from it than `spread` (0 to 147 dB, or else the nearest bound);
    /// `seed` determines it. It has a new value every half second.
    case walk(around: Int, spread: Int, seed: UInt64)

    /// From `after` seconds on, `rssi` dBm.
    public struct Step: Hashable, Sendable, Codable {
        /// Seconds since the simulator began.
        public var after: TimeInterval
        /// In dBm.
        public var rssi: Int

        /// Creates a step.
        public init(after: TimeInterval, rssi: Int) {
            self.after = after
            self.rssi = rssi
        }
    }

    /// Returns the strength at a time in seconds since the simulator began.
    public func rssi(at seconds: TimeInterval) -> Int {
        switch self {
        case .constant(let rssi):
            return Self.nearest(to: rssi)
        case .steps(let steps):
            let ordered = steps.sorted { $0.after < $1.after }
            return Self.nearest(
                to: (ordered.last { $0.after <= seconds } ?? ordered.first)?.rssi ?? Self.notAvailable)
        case .walk(let around, let spread, let seed):
            // Smooth noise rather than a sum of steps: each second can be computed alone, and never leaves the spread.
            let place = Limits.seconds.nearest(to: seconds) * 2
            let slow = Self.noise(place / 6, seed: seed)
            let quick = Self.noise(place.rounded(.down), seed: seed &+ 1)
            let distance = Double(Limits.spread.nearest(to: spread)) * (0.7 * slow + 0.3 * quick)
            return Limits.rssi.nearest(to: Limits.rssi.nearest(to: around) + Int(distance.rounded()))
        }
    }

    /// What a controller reports if it did not measure: `127`.
    public static let notAvailable = 127

    /// Returns the nearest strength that a controller can report.
    static func nearest(to rssi: Int) -> Int { rssi == notAvailable ? rssi : Limits.rssi.nearest(to: rssi) }

    /// Returns a strength after a loss in dB; nil if a controller receives nothing of it.
    static func weakened(_ rssi: Int, by loss: Int) -> Int? {
        guard rssi != notAvailable else { return rssi }
        return rssi - loss < Limits.sensitivity ? nil : rssi - loss
    }

    /// Returns a value in -1 ... 1 that changes smoothly with `place`.
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

    private enum WalkKey: String, CodingKey, CaseIterable { case around, spread, seed }

    public init(from decoder: any Decoder) throws {
        guard (try? decoder.container(keyedBy: FileKey.self)) != nil else {
            self = .constant(try Self.constant(from: decoder))
            return
        }
        let container = try decoder.strictContainer(keyedBy: Key.self)
        if let steps = try container.decodeIfPresent([Step].self, forKey: .steps) {
            self = .steps(steps)
        } else {
            guard container.contains(.walk) else {
                throw DecodingError.keyNotFound(Key.walk, .init(codingPath: container.codingPath, debugDescription: ""))
            }
            let walk = try container.superDecoder(forKey: .walk).strictContainer(keyedBy: WalkKey.self)
            self = .walk(
                around: try walk.required(Limits.rssi, forKey: .around),
                spread: try walk.required(Limits.spread, forKey: .spread),
                seed: try walk.number(0...UInt64.max, forKey: .seed) ?? 0)
        }
    }

    private static func constant(from decoder: any Decoder) throws -> Int {
        let rssi = try? Int(from: decoder)
        if let rssi, Limits.rssi.contains(rssi) || rssi == notAvailable { return rssi }
        let number = rssi.map { "\($0)" } ?? (try? Double(from: decoder)).map(NumberWording.text)
        throw decoder.failure(
            NumberWording.refusal(number ?? "the value", Limits.rssi, notAvailable)
                + ", nor an object with steps or walk")
    }

    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .constant(let rssi): try rssi.encode(to: encoder)
        case .steps(let steps):
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(steps, forKey: .steps)
        case .walk(let around, let spread, let seed):
            var container = encoder.container(keyedBy: Key.self)
            var walk = container.nestedContainer(keyedBy: WalkKey.self, forKey: .walk)
            try walk.encode(around, forKey: .around)
            try walk.encode(spread, forKey: .spread)
            try walk.encode(seed, forKey: .seed)
        }
    }
}

extension RSSICourse.Step {
    private enum Key: String, CodingKey, CaseIterable { case after, rssi }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        self.init(
            after: try container.required(Limits.seconds, forKey: .after),
            rssi: try container.required(Limits.rssi, or: RSSICourse.notAvailable, forKey: .rssi))
    }
}

/// Random numbers that are the same on every run for the same seed (SplitMix64), so that a simulation can be repeated.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator; `seed` determines its whole sequence.
    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// Returns a well-mixed number that follows from `value` alone.
    static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a fraction in 0 ..< 1 that follows from `value` alone.
    static func fraction(of value: UInt64) -> Double { Double(mixed(value &+ 0x9E37_79B9_7F4A_7C15) >> 11) * 0x1p-53 }
}
