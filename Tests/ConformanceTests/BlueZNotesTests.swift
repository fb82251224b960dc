import Foundation
import XCTest

/// Documentation/BlueZNotes.md names the versions of each fact.
final class BlueZNotesTests: XCTestCase {
    func testEachFactNamesTheVersionsOnWhichItWasSeen() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appendingPathComponent("Documentation/BlueZNotes.md"), encoding: .utf8)
        let seen = try XCTUnwrap(page.components(separatedBy: "\n## ").first { $0.hasPrefix("Seen\n") })
        let facts = seen.components(separatedBy: "\n- ").dropFirst()
        XCTAssertGreaterThan(facts.count, 70)
        for fact in facts {
            XCTAssertNotNil(fact.firstMatch(of: /\*\((?:5\.\d\d(?:, )?)+/), "Without a version: \(fact.prefix(80))")
        }
    }
}
