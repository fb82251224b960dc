import XCTest

/// Documentation/BlueZNotes.md has the versions of each fact, and how it is known.
final class BlueZNotesTests: XCTestCase {
    func testEachFactHasItsVersionsAndItsEvidence() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appendingPathComponent("Documentation/BlueZNotes.md"), encoding: .utf8)
        var facts = 0
        for table in page.components(separatedBy: "\n| fact | versions | evidence |\n").dropFirst() {
            for row in table.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
                .prefix(while: { $0.hasPrefix("|") })
            {
                let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                XCTAssertEqual(cells.count, 3, "A fact, versions, evidence: \(row)")
                guard cells.count == 3 else { continue }
                XCTAssertNotNil(cells[2].firstMatch(of: /^(L|V|KS|K|U)\b/), "Without evidence: \(row)")
                if cells[2].hasPrefix("L") {
                    XCTAssertNotNil(cells[1].firstMatch(of: /5\.\d\d/), "Seen on no version: \(row)")
                }
                facts += 1
            }
        }
        XCTAssertGreaterThan(facts, 130)
    }
}
