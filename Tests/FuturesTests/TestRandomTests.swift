import TestBasics
import XCTest

@testable import TestBasics

/// The random numbers of the tests, tested by running ``SeedProbe`` in a process of its own.
final class TestRandomTests: RandomTestCase, StartsPrograms {
    func testTheSeedOfTheEnvironmentDecidesTheNumbersAndIsShown() throws {
        let first = try probe(["BLUECAP_SEED": "42"])
        let again = try probe(["BLUECAP_SEED": "42"])
        let other = try probe(["BLUECAP_SEED": "43"])

        XCTAssertEqual(commands(first), ["BLUECAP_SEED=42 swift test --filter FuturesTests.SeedProbe/testNumbers"])
        XCTAssertEqual(numbers(first).count, 8, first)
        XCTAssertEqual(numbers(first), numbers(again))
        XCTAssertNotEqual(numbers(first), numbers(other))
    }

    func testWithoutASeedATestPlaysEachOfItsSeedsInAnInstanceOfItsOwn() throws {
        let first = try probe([:])

        XCTAssertEqual(
            commands(first),
            [Seeds.common, 1, 2].map { "BLUECAP_SEED=\($0) swift test --filter FuturesTests.SeedProbe/testNumbers" })
        XCTAssertEqual(numbers(first).count, 24, first)
        XCTAssertEqual(Set(numbers(first)).count, 24, first)
        XCTAssertEqual(
            lines(first, "instance ").map(\.last), ["0", "0", "0"], "an instance has the properties of another one")
        XCTAssertEqual(numbers(first), numbers(try probe([:])), "two processes differ")
        XCTAssertEqual(numbers(first).suffix(8), numbers(try probe(["BLUECAP_SEED": "2"]))[...])
    }

    func testEachSeedThatFailedIsShownAgainAndNoOther() throws {
        let failed = try probe(["SEED_PROBE": "fail 1"])
        let command = "BLUECAP_SEED=1 swift test --filter FuturesTests.SeedProbe/testNumbers"

        let announced = lines(failed, "Failed random test, to repeat it: ")
        XCTAssertEqual(announced, ["Failed random test, to repeat it: \(command)"])
        XCTAssertEqual(lines(failed, "Random test: ").count, 3, "a seed was not played after the failure")
        XCTAssertTrue(failed.contains("seed 1: "), failed)
        XCTAssertFalse(failed.contains("seed 2: "), failed)
    }

    func testExploringPlaysAsManySeedsAsOneSaysOthersInEachProcess() throws {
        let first = try probe(["BLUECAP_EXPLORE_SEEDS": "5"])
        let second = try probe(["BLUECAP_EXPLORE_SEEDS": "5"])

        XCTAssertEqual(Set(commands(first)).count, 5, first)
        XCTAssertEqual(Set(commands(first) + commands(second)).count, 10)
        XCTAssertEqual(lines(first, "instance ").map(\.last), ["0", "0", "0", "0", "0"])
        XCTAssertTrue(first.contains("Explore: 5 seeds, 1 random tests, "), first)
        XCTAssertTrue(first.contains("; 0 failed\n"), first)
        let command = try XCTUnwrap(commands(first).last)
        let seed = try XCTUnwrap(command.split(whereSeparator: { "= ".contains($0) }).dropFirst().first)
        XCTAssertEqual(numbers(first).suffix(8), numbers(try probe(["BLUECAP_SEED": String(seed)]))[...])
    }

    func testExploringNamesEachSeedThatFailedAndGoesOn() throws {
        let failed = try probe(["BLUECAP_EXPLORE_SEEDS": "4", "SEED_PROBE": "fail"], status: 1)

        let commands = lines(failed, "Random test: ").map { $0.dropFirst("Random test: ".count) }
        XCTAssertEqual(commands.count, 4, failed)
        XCTAssertEqual(lines(failed, "Explore: failed: "), commands.map { "Explore: failed: \($0)" })
        XCTAssertTrue(failed.contains("; 4 failed\n"), failed)
    }

    func testExploringEndsAfterTheSecondsThatOneSays() throws {
        let output = try probe(["BLUECAP_EXPLORE_SECONDS": "1"])
        XCTAssertGreaterThan(lines(output, "Random test: ").count, 1, output)
        XCTAssertFalse(lines(output, "Explore: ").isEmpty, output)
    }

    /// The seed of a test that was renamed would not be played, and no test would fail.
    func testEachSeedBelongsToATestThatExists() throws {
        let listing = try run(["--list-tests"], ProcessInfo.processInfo.environment)
        let tests = Set(listing.split(separator: "\n").map(String.init))
        XCTAssertTrue(tests.contains("FuturesTests.TestRandomTests/testEachSeedBelongsToATestThatExists"))
        XCTAssertEqual(Seeds.found.keys.filter { !tests.contains($0) }, [])
        for test in Seeds.found.keys {
            XCTAssertEqual(Set(Seeds.of(test)).count, Seeds.of(test).count, "\(test) has a seed twice")
        }
    }

    func testNumbersAreInTheirRangeAndASplitGeneratorHasItsOwn() {
        var random = TestRandom(self)
        var copy = random
        var split = copy.split()
        XCTAssertNotEqual(random.bytes(16), split.bytes(16))
        XCTAssertTrue((0..<1_000).allSatisfy { _ in (0..<7).contains(random.below(7)) })
        XCTAssertEqual(random.below(1), 0)
    }

    /// Runs ``SeedProbe`` with these variables, and returns its output.
    private func probe(_ variables: [String: String], status: Int32? = nil) throws -> String {
        let environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("BLUECAP_") }
        let own = ["SEED_PROBE": "pass"].merging(variables) { $1 }
        return try run(["FuturesTests.SeedProbe/testNumbers"], environment.merging(own) { $1 }, status: status)
    }

    /// Runs the program of the tests, and returns what it prints.
    private func run(_ arguments: [String], _ environment: [String: String], status: Int32? = nil) throws -> String {
        let process = TestProgram.process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        if let status { XCTAssertEqual(process.terminationStatus, status) }
        return text
    }

    private func lines(_ output: String, _ beginning: String) -> [String] {
        output.split(separator: "\n").filter { $0.hasPrefix(beginning) }.map(String.init)
    }

    private func commands(_ output: String) -> [String] {
        output.split(separator: "\n").compactMap { line in
            line.range(of: "BLUECAP_SEED=").map { String(line[$0.lowerBound...]) }
        }
    }

    private func numbers(_ output: String) -> [Substring] {
        output.split(separator: "\n").filter { $0.hasPrefix("probe ") }
    }
}

/// Shows eight random numbers, and fails if `SEED_PROBE` is `fail` or names the seed. Does nothing unless that is set.
final class SeedProbe: RandomTestCase {
    private var tests = 0

    func testNumbers() {
        guard let order = ProcessInfo.processInfo.environment["SEED_PROBE"] else { return }
        print("instance \(tests)")
        tests += 1
        let copy = TestRandom(self)
        var random = copy
        for _ in 0..<8 { print("probe \(random.next())") }
        var first = TestRandom(state: 1)
        var isOne = copy
        if order == "fail 1" { XCTAssertNotEqual(isOne.next(), first.next()) } else { XCTAssertEqual(order, "pass") }
    }
}
