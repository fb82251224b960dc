import XCTest

/// Plays the random tests of a process with new seeds: what `make explore` runs.
///
/// The environment says how long: `BLUECAP_EXPLORE_SECONDS` for all tests together, or `BLUECAP_EXPLORE_SEEDS` for each of
/// them; with both, whichever is reached first. At first each test of the process runs once, which shows which of them are
/// random. Then these play on in turn: next is the test that has taken the least time, so that they share it evenly. A seed
/// that fails is printed, and the test plays on with others, so that it is seen how many of them fail. The status is 1 if a seed
/// failed.
///
/// - Note: Unchecked: XCTest runs the tests one after another on the main thread.
final class Exploration: NSObject, XCTestObservation, @unchecked Sendable {
    /// A random test of this process.
    private struct Subject {
        var test: RandomTestCase
        var played = 0
        var time = Duration.zero
    }

    /// The exploration of this process; `nil` if it plays the seeds of the tree.
    static let current: Exploration? = {
        let seconds = number("BLUECAP_EXPLORE_SECONDS")
        let seeds = number("BLUECAP_EXPLORE_SEEDS")
        guard seconds != nil || seeds != nil else { return nil }
        guard Announcement.seed == nil else {
            fatalError("\(Announcement.variable) names one seed; unset it to explore new ones.")
        }
        let exploration = Exploration(seconds: seconds, seeds: seeds)
        XCTestObservationCenter.shared.addTestObserver(exploration)
        return exploration
    }()

    private static func number(_ variable: String) -> Int? {
        guard let text = ProcessInfo.processInfo.environment[variable] else { return nil }
        guard let number = Int(text), number > 0 else {
            fatalError("\(variable) is \"\(text)\"; it must be a whole number, at least 1.")
        }
        return number
    }

    private let began = ContinuousClock.now
    private let end: ContinuousClock.Instant?
    private let seeds: Int
    private var numbers: TestRandom
    private var subjects: [String: Subject] = [:]
    private var failures = 0
    private var shown = ContinuousClock.now

    private init(seconds: Int?, seeds: Int?) {
        end = seconds.map { [began] in began + .seconds($0) }
        self.seeds = seeds ?? .max
        var system = SystemRandomNumberGenerator()
        numbers = TestRandom(state: system.next())
    }

    func newSeed() -> UInt64 { numbers.next() }

    /// Notes that a test has played one seed.
    ///
    /// - Parameter failure: what failed, and the command that repeats it.
    func note(
        _ test: RandomTestCase, _ name: String, isRandom: Bool, for time: Duration, _ failure: (String, String)?
    ) {
        if isRandom {
            var subject = subjects[name] ?? Subject(test: test)
            subject.played += 1
            subject.time += time
            subjects[name] = subject
        }
        if let (description, command) = failure {
            failures += 1
            let line = description.split(separator: "\n").first.map(String.init) ?? ""
            Announcement.show("Explore: failed: \(command)\nExplore:   \(line.prefix(300))")
        } else if shown.duration(to: .now) > .seconds(10) {
            showSum("so far ")
        }
    }

    /// The test that plays next.
    private var next: RandomTestCase? {
        if let end, ContinuousClock.now >= end { return nil }
        return subjects.filter { $0.value.played < seeds }.min { ($0.value.time, $0.key) < ($1.value.time, $1.key) }?
            .value.test
    }

    private func showSum(_ when: String) {
        shown = .now
        let played = subjects.values.reduce(0) { $0 + $1.played }
        let passed = began.duration(to: .now) / .seconds(1)
        Announcement.show(
            "Explore: \(when)\(played) seeds, \(subjects.count) random tests, \(String(format: "%.1f", passed)) s, "
                + "\(Int(Double(played) * 60 / passed)) a minute; \(failures) failed")
    }

    // The last call before the process ends: the second and further seeds are played here, after all tests of the process.
    func testBundleDidFinish(_ testBundle: Bundle) {
        while let test = next { test.another().run() }
        for (name, subject) in subjects.sorted(by: { $0.key < $1.key }) {
            Announcement.show(
                "Explore: \(subject.played) × \(name), \(String(format: "%.1f", subject.time / .seconds(1))) s")
        }
        showSum("")
        exit(failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE)
    }
}
