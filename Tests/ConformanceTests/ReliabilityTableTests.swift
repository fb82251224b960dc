import Foundation
import XCTest

/// Documentation/Reliability.md names tests that exist.
///
/// A name is `Class`, `Class.testFunction`, or `…Ending`: a test of the class before it whose name ends so.
final class ReliabilityTableTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The functions of all classes below `Tests`, by the class's name; extensions belong to their class.
    private func functions() throws -> [String: Set<String>] {
        let tests = Self.root.appendingPathComponent("Tests")
        let files = try XCTUnwrap(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil))
        var functions: [String: Set<String>] = [:]
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
                }
            }
        }
        return functions
    }

    /// The fault's mark, and the names in the last column, of each row of the first table.
    private func rows() throws -> [(mark: String, names: [String])] {
        let page = Self.root.appendingPathComponent("Documentation/Reliability.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        let table = lines.drop { !$0.hasPrefix("|---") }.dropFirst().prefix { $0.hasPrefix("|") }
        return table.map { line in
            let columns = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            XCTAssertEqual(columns.count, 4, "A row has four columns: \(line)")
            return (columns.first ?? "", (columns.last ?? "").matches(of: /`([^`]+)`/).map { String($0.1) })
        }
    }

    func testEachRowNamesTestsThatExist() throws {
        let functions = try functions()
        let rows = try rows()
        XCTAssertGreaterThan(rows.count, 50)
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
