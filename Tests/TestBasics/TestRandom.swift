/// The random numbers of a test (SplitMix64). No other generator is used in the tests; `make lint` checks it.
///
///     func testAnyBytesAreReadOrRefused() {
///         var random = TestRandom(self)
///         for round in 0..<1_000 { XCTAssertNil(failure(of: random.bytes(random.below(40))), "round \(round)") }
///     }
///
/// The test's class inherits from ``RandomTestCase``, which plays the test with each of its seeds. The command that repeats the
/// test with its seed is printed when the test obtains its numbers, and again when the test has failed.
///
/// Obtain the numbers once per test: a second `TestRandom` of the same test returns the same numbers. For a second, independent
/// sequence, such as that of another thread, use ``split()``.
public struct TestRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Starts the random numbers of `test`, and prints the command that repeats it with the same numbers.
    public init(_ test: RandomTestCase) { state = test.drawSeed() }

    init(state: UInt64) { self.state = state }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a generator that is seeded with the next number of this one.
    public mutating func split() -> TestRandom { TestRandom(state: next()) }

    /// Returns a number from 0 up to, but not including, `bound`.
    ///
    /// - Parameter bound: at least 1.
    public mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    /// Returns `count` bytes.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
