/// Random numbers that are the same on every run for the same seed (SplitMix64), so that a simulation can be repeated.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator; `seed` determines its whole sequence.
    public init(seed: UInt64) {
        state = seed
    }

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
    static func fraction(of value: UInt64) -> Double {
        Double(mixed(value &+ 0x9E37_79B9_7F4A_7C15) >> 11) * 0x1p-53
    }
}
