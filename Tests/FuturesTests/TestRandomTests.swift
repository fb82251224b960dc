import Foundation
import TestRandomness
import XCTest

/// The random numbers of the tests, tested by running ``SeedProbe`` in a process of its own.
final class TestRandomTests: XCTestCase {
    func testTheSeedOfTheEnvironmentDecidesTheNumbersAndIsShown() throws {
        let first = try probe(["BLUECAP_SEED": "42"])
        let again = try probe(["BLUECAP_SEED": "42"])
        let other = try probe(["BLUECAP_SEED": "43"])

        XCTAssertEqual(commands(first), ["BLUECAP_SEED=42 swift test --filter FuturesTests.SeedProbe/testNumbers"])
        XCTAssertEqual(numbers(first).count, 8, first)
        XCTAssertEqual(numbers(first), numbers(again))
        XCTAssertNotEqual(numbers(first), numbers(other))
    }

    func testWithoutASeedEachProcessHasAnother() throws {
        let first = try probe([:])
        let second = try probe([:])

        XCTAssertEqual(commands(first).count, 1, first)
        XCTAssertNotEqual(commands(first), commands(second))
        XCTAssertNotEqual(numbers(first), numbers(second))
    }

    func testTheSeedOfAFailedTestIsShownAgainAndRepeatsIt() throws {
        let failed = try probe(["SEED_PROBE": "fail"])
        let command = try XCTUnwrap(commands(failed).first)
        let seed = try XCTUnwrap(command.split(whereSeparator: { "= ".contains($0) }).dropFirst().first)

        XCTAssertEqual(commands(failed), [command, command])
        XCTAssertEqual(numbers(try probe(["BLUECAP_SEED": String(seed)])), numbers(failed))
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
    private func probe(_ variables: [String: String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["FuturesTests.SeedProbe/testNumbers"]
        process.environment = ProcessInfo.processInfo.environment.filter { $0.key != "BLUECAP_SEED" }
            .merging(variables.merging(["SEED_PROBE": "pass"]) { own, _ in own }) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text
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

/// Shows eight random numbers, and fails if `SEED_PROBE` is `fail`. Does nothing unless that is set.
final class SeedProbe: XCTestCase {
    func testNumbers() {
        guard let order = ProcessInfo.processInfo.environment["SEED_PROBE"] else { return }
        var random = TestRandom(self)
        for _ in 0..<8 { print("probe \(random.next())") }
        XCTAssertEqual(order, "pass")
    }
}
