import Foundation
import XCTest

/// The README's program is built and run, and the README shows that very program.
final class ReadmeTests: XCTestCase {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    func testTheReadmeShowsTheExampleAsItIs() throws {
        let readme = try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
        let program = try String(contentsOf: root.appendingPathComponent("Examples/Scan/main.swift"), encoding: .utf8)
        XCTAssertTrue(readme.contains("```swift\n\(program)```"), "README.md and Examples/Scan/main.swift differ.")
    }

    func testTheExampleFindsTheRoom() throws {
        // stdbuf, since a program that writes into a pipe keeps its lines back until there are many.
        let run = try ToolRun(
            script: #"exec "$BLUECAP" simulate -- stdbuf -oL "$(dirname "$BLUECAP")/ScanExample""#)
        XCTAssertNotNil(try run.line { $0.hasSuffix("Pulse Strap 7F") && $0.hasPrefix("C0:5A:17:00:18:0D -") })
        run.signal(SIGTERM)
    }
}
