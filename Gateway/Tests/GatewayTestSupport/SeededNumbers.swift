internal import Foundation

/// A generator with a fixed sequence (SplitMix64).
public struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    public init(_ seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func time(_ range: ClosedRange<Double>) -> Double { .random(in: range, using: &self) }

    public mutating func chance(_ probability: Double) -> Bool { time(0...1) < probability }

    /// `BLUECAP_SEED`, or 29.
    public static var seed: UInt64 { ProcessInfo.processInfo.environment["BLUECAP_SEED"].flatMap(UInt64.init) ?? 29 }
}
