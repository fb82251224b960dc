import TestBasics
import XCTest

/// Builds and runs the programs of README and guide, and compares them with the code on those pages.
final class ReadmeTests: XCTestCase, StartsPrograms {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(of path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    func testThePagesShowTheExamplesAsTheyAre() throws {
        let examples = [
            "README.md": ["ReadBattery", "ServeBattery"],
            "Documentation/GettingStarted.md": ["ReadBattery", "Scan", "HeartRate"],
            "Documentation/Central.md": ["Script", "Connect", "Follow"],
            "Documentation/Pairing.md": ["Pair", "PairWithQuestions"],
            "Documentation/PeripheralRole.md": ["ServeClimate", "ServeThermostat"],
        ]
        for (page, names) in examples {
            for name in names {
                let path = "Examples/\(name)/main.swift"
                XCTAssertTrue(
                    try text(of: page).contains("```swift\n\(text(of: path))```"), "\(page) and \(path) differ.")
            }
        }
    }

    func testTheIndexOfTheExamplesIsComplete() throws {
        let index = try text(of: "Examples/README.md")
        let folder = root.appendingPathComponent("Examples")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name != "README.md" {
            let files = try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent(name).path)
            let isProgram = files.contains("main.swift")
            XCTAssertTrue(index.contains("](\(name)/"), "Examples/README.md does not link to \(name).")
            XCTAssertTrue(!isProgram || index.contains("\(name)Example"), "Examples/README.md does not run \(name).")
            for file in files where file.hasSuffix(".json") {
                XCTAssertTrue(index.contains("](\(name)/\(file))"), "Examples/README.md does not link to \(file).")
            }
        }
    }

    /// What a newcomer reads first has the recommended forms alone.
    func testTheReadmesProgramsAreShortAndHaveTheRecommendedForms() throws {
        let blocks = try text(of: "README.md").components(separatedBy: "```swift\n").dropFirst()
            .map { try XCTUnwrap($0.components(separatedBy: "```").first) }
        XCTAssertEqual(blocks.count, 3)
        for block in blocks {
            XCTAssertLessThanOrEqual(block.split(separator: "\n", omittingEmptySubsequences: false).count, 26, block)
            for pattern in ["Future", #"\.value"#, #"\[String: Any\]"#, "Key: ", #"(timeout|by|limit|for): \d"#] {
                XCTAssertNil(block.range(of: pattern, options: .regularExpression), block)
            }
        }
        // The test of the first program, with the function that it tests, is one of this package's.
        let test = try text(of: "Tests/ConformanceTests/BatteryTests.swift")
        XCTAssertTrue(test.hasPrefix(try XCTUnwrap(blocks.last)))
        let function = try XCTUnwrap(test.components(separatedBy: "README.md.\n\n").last)
        XCTAssertTrue(try XCTUnwrap(blocks.first).contains(function))
    }

    func testTheReadmeIsShort() throws {
        XCTAssertLessThanOrEqual(try text(of: "README.md").filter { $0 == "\n" }.count, 130)
    }

    func testTheExampleFindsTheRoom() throws {
        // stdbuf, since a program that writes into a pipe keeps its lines back until there are many.
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- stdbuf -oL "$(dirname "$BLUECAP")/ScanExample""#)
        XCTAssertNotNil(try run.line { $0.hasSuffix("Pulse Strap 7F") && $0.hasPrefix("C0:5A:17:00:18:0D -") })
        // Waits for the end: a simulation that is killed before it forwards the signal leaves the example running.
        run.signal(SIGTERM)
        _ = try run.finish()
    }

    func testABatteryIsReadByIdentifierAndByDiscovery() throws {
        for example in ["ReadBatteryExample", "ConnectExample"] {
            let run = try ToolRun(script: #"exec "$BLUECAP" simulate -- "$(dirname "$BLUECAP")/\#(example)""#)
            let result = try run.finish(status: 0, note: example)
            XCTAssertNotNil(result.lines.first?.wholeMatch(of: /.+ \d+ %/), "\(example): \(result.lines)")
        }
    }

    func testTheThirdExampleRunsItsScript() throws {
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- "$(dirname "$BLUECAP")/ScriptExample""#)
        let result = try run.finish(status: 0)
        XCTAssertEqual(result.lines, ["Pulse Strap 7F on the chest"])
    }

    func testBluejaysExampleReadsAndListens() throws {
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- stdbuf -oL "$(dirname "$BLUECAP")/HeartRateExample""#)
        let result = try run.finish(status: 0)
        XCTAssertEqual(result.lines.prefix(2), ["connected to Pulse Strap 7F", "worn at place 1"])
        XCTAssertNotNil(result.lines.last?.wholeMatch(of: /\d+ beats per minute/), "\(result.lines)")
    }

    // MARK: Pairing

    /// The status and the lines of an example with the lock of Examples/Rooms.
    private func runAtTheLock(_ example: String, input: String = "") throws -> ToolRun.Result {
        let room = root.appendingPathComponent("Examples/Rooms/lock.json").path
        return try ToolRun(
            script: #"""
                printf '\#(input)' | exec "$BLUECAP" simulate --peripherals '\#(room)' -- \
                    "$(dirname "$BLUECAP")/\#(example)"
                """#
        ).finish()
    }

    func testAnExamplePairsAndReads() throws {
        let result = try runAtTheLock("PairExample")
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertEqual(result.lines, ["Front Door is locked"])
    }

    func testAnExampleAsksItsUser() throws {
        for (answer, last) in [("y", "Front Door has 1 key"), ("n", "The application rejected the pairing.")] {
            let result = try runAtTheLock("PairWithQuestionsExample", input: answer + #"\n"#)
            XCTAssertEqual(result.status, 0, "\(result.errors)")
            XCTAssertEqual(result.lines.count, 2)
            XCTAssertNotNil(result.lines.first?.wholeMatch(of: /Does the other device show \d{6}\? \[y\/n\]/))
            XCTAssertEqual(result.lines.last, last)
        }
    }
}
