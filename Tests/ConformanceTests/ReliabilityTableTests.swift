import XCTest

/// Documentation/Reliability.md and Documentation/Pairing.md name tests that exist.
///
/// A name is `Class`, `Class.testFunction`, or `…Ending`: a test of the class before it, by the end of its name.
final class ReliabilityTableTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The functions of all classes below `Tests`, by the class's name; extensions belong to their class.
    private func functions() throws -> [String: Set<String>] {
        let tests = Self.root.appendingPathComponent("Tests")
        let files = try XCTUnwrap(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil))
        var functions: [String: Set<String>] = [:]
        // The names under which a module's classes get the tests of files that several modules share.
        var aliases: [(name: String, type: String)] = []
        for case let file as URL in files where file.pathExtension == "swift" {
            var name = ""
            // Of each line only its first words are looked at: there are some forty thousand.
            for line in try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n") {
                if line.hasPrefix("    func ") || line.hasPrefix("    public func ") {
                    if let match = line.firstMatch(of: /func (\w+)\(/) {
                        functions[name, default: []].insert(String(match.1))
                    }
                } else if ["final", "public", "class", "struct", "extension"].contains(where: line.hasPrefix),
                    let match = line.firstMatch(of: /(?:class|struct|extension) (\w+)/)
                {
                    name = String(match.1)
                    functions[name, default: []] = functions[name, default: []]
                } else if line.hasPrefix("typealias "), let match = line.firstMatch(of: /typealias (\w+) = (\w+)$/) {
                    aliases.append((String(match.1), String(match.2)))
                }
            }
        }
        for (name, type) in aliases { functions[type, default: []].formUnion(functions[name] ?? []) }
        return functions
    }

    /// The names in backticks.
    private func names(in text: some StringProtocol) -> [String] {
        String(text).matches(of: /`([^`]+)`/).map { String($0.1) }
    }

    /// The title, which is bold, and the names after "Tests:", of each entry of the page's lists.
    private func entries(of page: String) throws -> [(mark: String, names: [String])] {
        let text = try String(contentsOf: Self.root.appendingPathComponent(page), encoding: .utf8)
        let lists = text.components(separatedBy: "\n\n").filter { $0.hasPrefix("- **") }
        return lists.flatMap { "\n\($0)".components(separatedBy: "\n- **").dropFirst() }.map { entry in
            let parts = entry.components(separatedBy: "\n  Tests: ")
            return (entry.components(separatedBy: "**")[0], parts.count == 2 ? names(in: parts[1]) : [])
        }
    }

    /// Returns the mark and the names in the last column of each row of the first table with a last column `tests`.
    private func rows(of page: String) throws -> [(mark: String, names: [String])] {
        let lines = try String(contentsOf: Self.root.appendingPathComponent(page), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
        let table = lines.drop { !$0.hasSuffix("| tests |") }.prefix { $0.hasPrefix("|") }
        let width = table.first?.count { $0 == "|" }
        return table.dropFirst(2).map { line in
            XCTAssertEqual(line.count { $0 == "|" }, width, "\(page): another number of columns: \(line)")
            let columns = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            return (columns.first ?? "", names(in: columns.last ?? ""))
        }
    }

    func testEachEntryNamesTestsThatExist() throws {
        let functions = try functions()
        let (reliability, security) = try (
            entries(of: "Documentation/Reliability.md"), rows(of: "Documentation/Pairing.md")
        )
        XCTAssertGreaterThan(reliability.count, 50)
        XCTAssertGreaterThan(security.count, 12)
        let rows = reliability + security
        for (mark, names) in rows {
            XCTAssertFalse(names.isEmpty, "\(mark) names no test.")
            var known: Set<String> = []
            for name in names {
                if name.hasPrefix("…") {
                    XCTAssertTrue(known.contains { $0.hasSuffix(name.dropFirst()) }, "\(mark): \(name) does not exist.")
                    continue
                }
                let parts = name.split(separator: ".").map(String.init)
                known = functions[parts[0]] ?? []
                XCTAssertFalse(known.isEmpty, "\(mark): \(parts[0]) does not exist, or has no tests.")
                if parts.count > 1 {
                    XCTAssertTrue(known.contains(parts[1]), "\(mark): \(name) does not exist.")
                }
            }
        }
    }
}
