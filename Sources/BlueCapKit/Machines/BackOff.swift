import Foundation

/// How long to wait before one more attempt: 0.1, 0.25, 0.5, 1, 2, then 4 seconds each time, every wait a quarter
/// shorter or longer by chance.
///
/// Most refusals of BlueZ are cured by asking once more a moment later; those that are not should cost neither radio
/// nor battery. The chance keeps several programs, or several peripherals, from meeting on the air again and again.
struct BackOff: Equatable {
    /// In seconds.
    static let steps: [TimeInterval] = [0.1, 0.25, 0.5, 1, 2, 4]
    /// How far a wait may be from its step, as a part of it.
    static let jitter = 0.25

    private var generator: SplitMix

    /// Equal seeds wait equally long.
    init(seed: UInt64) { generator = SplitMix(state: seed) }

    /// The seconds to wait after `failures` failures in a row; none after none.
    mutating func delay(after failures: Int) -> TimeInterval {
        guard failures > 0 else { return 0 }
        let step = Self.steps[min(failures, Self.steps.count) - 1]
        return step * Double.random(in: 1 - Self.jitter...1 + Self.jitter, using: &generator)
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: small, and good enough for waits.
private struct SplitMix: RandomNumberGenerator, Equatable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
