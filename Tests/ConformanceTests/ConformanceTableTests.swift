import XCTest

/// Compares Documentation/reference/Conformance.md with the documents and the tests: each documented item has a row, and each row a test.
final class ConformanceTableTests: XCTestCase {
    private struct Item: Hashable {
        let section: Substring
        let revisions: Substring
        let text: Substring
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let root = folder.deletingLastPathComponent().deletingLastPathComponent()

    private func lines(of url: URL) throws -> [Substring] {
        try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
    }

    /// The columns of a line of a table, without the spaces about them.
    private func columns(of line: Substring) -> [Substring] {
        line.split(separator: "|").map { column in
            column.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed().reduce(into: Substring()) {
                $0.append($1)
            }
        }
    }

    private func documentedItems() throws -> [Item] {
        try lines(of: Self.folder.appendingPathComponent("documented-items.txt")).compactMap { line in
            let columns = columns(of: line)
            guard !line.hasPrefix("#"), columns.count == 3 else { return nil }
            return Item(section: columns[0], revisions: columns[1], text: columns[2])
        }
    }

    /// The rows of the table, and the names of the tests in each.
    private func rows() throws -> [(item: Item, tests: [Substring])] {
        var section: Substring = ""
        var rows: [(item: Item, tests: [Substring])] = []
        for line in try lines(of: Self.root.appendingPathComponent("Documentation/reference/Conformance.md")) {
            if line.hasPrefix("## ") { section = line.dropFirst(3) }
            guard line.hasPrefix("| "), !line.hasPrefix("| documented") else { continue }
            let columns = columns(of: line)
            XCTAssertEqual(columns.count, 4, "A row has four columns: \(line)")
            guard columns.count == 4 else { continue }
            let tests = columns[3].split(separator: ",").map { $0.filter { $0 != "`" && $0 != " " }[...] }
            rows.append((Item(section: section, revisions: columns[1], text: columns[0]), tests))
        }
        return rows
    }

    /// The tests of the folder `Documented`, as `Class.testFunction`.
    private func tests() throws -> Set<Substring> {
        let folder = Self.folder.appendingPathComponent("Documented")
        var tests: Set<Substring> = []
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            var name: Substring = ""
            for line in try lines(of: file) {
                if let match = line.firstMatch(of: /^(?:final )?class (\w+)/) { name = match.1 }
                if let match = line.firstMatch(of: /^    func (test\w+)\(/) { tests.insert("\(name).\(match.1)") }
            }
        }
        return tests
    }

    func testEachDocumentedItemHasARow() throws {
        let items = try documentedItems()
        let rows = Set(try rows().map(\.item))
        XCTAssertGreaterThan(items.count, 100)
        for item in items where !rows.contains(item) { XCTFail("No row for \(item.section): \(item.text)") }
    }

    func testEachRowIsADocumentedItem() throws {
        let items = Set(try documentedItems())
        for row in try rows() where !items.contains(row.item) { XCTFail("Not in the list: \(row.item.text)") }
    }

    func testEachRowNamesTestsThatExist() throws {
        let tests = try tests()
        for row in try rows() {
            XCTAssertFalse(row.tests.isEmpty, "No test for \(row.item.text)")
            for test in row.tests where !tests.contains(test) { XCTFail("\(test) does not exist: \(row.item.text)") }
        }
    }

    func testEachConformanceTestIsInARow() throws {
        let named = Set(try rows().flatMap(\.tests))
        for test in try tests().subtracting(named).sorted() { XCTFail("\(test) is in no row.") }
    }
}
