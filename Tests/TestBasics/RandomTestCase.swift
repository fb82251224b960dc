import Foundation
public import XCTest

/// A test case with random tests: those that obtain numbers by ``TestRandom/init(_:)``.
///
/// A random test is played once with each of its seeds: those of ``Seeds``, the one of the environment variable `BLUECAP_SEED`,
/// or new ones while the process explores (``Exploration``). Each seed has an instance of its own, with its own `setUp` and
/// stored properties. The other tests of the class run once.
open class RandomTestCase: XCTestCase {
    private let body: XCTestCaseClosure
    /// The instance that XCTest has made, which takes the failures of those that play further seeds.
    private weak var leader: RandomTestCase?
    /// The instance that plays now.
    private weak var player: RandomTestCase?
    /// Whether the test has obtained random numbers.
    private var hasDrawn = false
    /// The first failure of this instance's seed.
    private var failure: String?
    /// The seed of this instance.
    private var seed: UInt64?

    public required init(name: String, testClosure: @escaping XCTestCaseClosure) {
        body = testClosure
        super.init(name: name, testClosure: testClosure)
    }

    /// "test"; XCTest's name for Linux is "Class.test".
    private var method: String { name.split(separator: ".").last.map(String.init) ?? name }

    /// "Module.Class/test", as run-tests and `swift test --filter` take it.
    private var fullName: String { String(reflecting: type(of: self)) + "/" + method }

    /// Returns a new instance of the test.
    func another() -> RandomTestCase { type(of: self).init(name: method, testClosure: body) }

    /// Returns the seed of this instance, and prints the command that repeats the test with it.
    func drawSeed() -> UInt64 {
        let seed = seed ?? Seeds.common
        if !hasDrawn { Announcement.show("Random test: \(command(seed))") }
        hasDrawn = true
        return seed
    }

    private func command(_ seed: UInt64) -> String {
        "\(Announcement.variable)=\(seed) swift test --filter \(fullName)"
    }

    override open func invokeTest() {
        guard leader == nil else { return super.invokeTest() }
        if let exploration = Exploration.current { return explore(exploration) }
        let seeds = Announcement.seed.map { [$0] } ?? Seeds.of(fullName)
        play(self, seeds[0])
        guard hasDrawn else { return }
        for seed in seeds.dropFirst() {
            let test = another()
            test.leader = self
            play(test, seed)
        }
    }

    /// Plays `test`, which is this instance or another one of the same test, with the seed.
    private func play(_ test: RandomTestCase, _ seed: UInt64) {
        test.seed = seed
        player = test
        if test === self { super.invokeTest() } else { test.invokeTest() }
        player = nil
        if test.hasDrawn, test.failure != nil {
            Announcement.show("Failed random test, to repeat it: \(command(seed))")
        }
    }

    private func explore(_ exploration: Exploration) {
        let seed = exploration.newSeed()
        let began = ContinuousClock.now
        play(self, seed)
        let failure = failure.map { ($0, hasDrawn ? command(seed) : "swift test --filter \(fullName)") }
        exploration.note(self, fullName, isRandom: hasDrawn, for: .now - began, failure)
    }

    override open func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        if let leader {
            return leader.recordFailure(
                withDescription: description, inFile: filePath, atLine: lineNumber, expected: expected)
        }
        // What fails after the last seed belongs to it too.
        let player = player ?? self
        player.failure = player.failure ?? description
        let place = player.hasDrawn ? player.seed.map { "seed \($0): " } ?? "" : ""
        super.recordFailure(
            withDescription: place + description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}
