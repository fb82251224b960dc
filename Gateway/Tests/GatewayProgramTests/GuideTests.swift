import Foundation
import GatewayCore
import XCTest

/// What users copy from the pages works.
final class GuideTests: XCTestCase {
    private let gateway = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: gateway.appending(path: path), encoding: .utf8)
    }

    func testTheConfigurationsOfTheGuideHaveNoErrors() throws {
        let blocks = try text("Documentation/HomeAssistant.md").components(separatedBy: "```yaml\n").dropFirst()
            .map { $0.components(separatedBy: "```")[0] }
            .filter { !$0.hasPrefix("mqtt:") }  // that of Home Assistant
        XCTAssertEqual(blocks.count, 4)
        for block in blocks {
            do throws(GatewayConfigurationError) {
                _ = try GatewayConfiguration(yaml: block, file: "guide")
            } catch {
                XCTFail("\(error)\n\(block)")
            }
        }
    }

    func testTheMessagesOfTheGuideAreThoseOfTheProgram() throws {
        let tests = try text("Tests/GatewayProgramTests/UserTests.swift")
            .replacing(/\\\([^)]*\)/, with: "…").replacing("\\\"", with: "\"").replacing(/\\\n\s*/, with: "")
            .replacing(/"\n\s*\+ "/, with: "")
        let rows = try text("Documentation/HomeAssistant.md").components(separatedBy: "## If something is wrong")[1]
            .split(separator: "\n").filter { $0.hasPrefix("| ") && $0.contains("`") }
        XCTAssertEqual(rows.count, 13)
        for row in rows {
            let message = try XCTUnwrap(row.split(separator: "|").dropFirst().first).drop { $0 != "`" }.dropFirst()
            // The longest sentence of the message without what varies.
            let parts = message.prefix { $0 != "`" }.split(separator: /… ?|[:.?] |gateway\.yaml|127\.0\.0\.1:\d+|\.$/)
            let longest = try XCTUnwrap(parts.max { $0.count < $1.count }).trimmingCharacters(in: .whitespaces)
            XCTAssertTrue(tests.contains(longest), "no test expects \"\(longest)\"")
        }
    }

    func testTheLinksOfThePagesLeadSomewhere() throws {
        let files = try XCTUnwrap(FileManager.default.subpaths(atPath: gateway.path()))
            .filter { $0.hasSuffix(".md") && !$0.hasPrefix(".build") }
        XCTAssertGreaterThan(files.count, 6)
        for file in files {
            for link in try text(file).matches(of: /\]\(([^)\s]+)\)/).map(\.1) where !link.contains("://") {
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let folder = gateway.appending(path: file).deletingLastPathComponent()
                let target =
                    parts[0].isEmpty ? gateway.appending(path: file) : folder.appending(path: String(parts[0]))
                XCTAssertTrue(FileManager.default.fileExists(atPath: target.path()), "\(file): \(link)")
                guard parts.count == 2 else { continue }
                let anchors = try String(contentsOf: target, encoding: .utf8).split(separator: "\n")
                    .filter { $0.hasPrefix("#") }
                    .map { line in
                        line.drop { $0 == "#" || $0 == " " }.lowercased().replacing(" ", with: "-")
                            .filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
                    }
                XCTAssertTrue(anchors.contains(String(parts[1])), "\(file): \(link)")
            }
        }
    }
}
