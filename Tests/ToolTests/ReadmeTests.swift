import Foundation
import XCTest

/// The README's programs are built and run, and the README shows those very programs.
final class ReadmeTests: XCTestCase {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    func testTheReadmeShowsTheExamplesAsTheyAre() throws {
        let readme = try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
        for example in ["Scan", "ReadBattery", "ServeBattery", "Script", "HeartRate"] {
            let path = "Examples/\(example)/main.swift"
            let program = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
            XCTAssertTrue(readme.contains("```swift\n\(program)```"), "README.md and \(path) differ.")
        }
    }

    func testTheExampleFindsTheRoom() throws {
        // stdbuf, since a program that writes into a pipe keeps its lines back until there are many.
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- stdbuf -oL "$(dirname "$BLUECAP")/ScanExample""#)
        XCTAssertNotNil(try run.line { $0.hasSuffix("Pulse Strap 7F") && $0.hasPrefix("C0:5A:17:00:18:0D -") })
        // Waited for: who kills the simulation before it has passed the signal on leaves the example running.
        run.signal(SIGTERM)
        _ = try run.finish()
    }

    func testTheSecondExampleReadsABattery() throws {
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- "$(dirname "$BLUECAP")/ReadBatteryExample""#)
        let result = try run.finish()
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertNotNil(result.lines.first?.wholeMatch(of: /.+ \d+ %/), "\(result.lines)")
    }

    func testTheThirdExampleRunsItsScript() throws {
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- "$(dirname "$BLUECAP")/ScriptExample""#)
        let result = try run.finish()
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertEqual(result.lines, ["Pulse Strap 7F on the chest"])
    }

    func testBluejaysExampleReadsAndListens() throws {
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- stdbuf -oL "$(dirname "$BLUECAP")/HeartRateExample""#)
        let result = try run.finish()
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertEqual(result.lines.prefix(2), ["connected to Pulse Strap 7F", "worn at place 1"])
        XCTAssertNotNil(result.lines.last?.wholeMatch(of: /\d+ beats per minute/), "\(result.lines)")
    }
}
