import XCTest

/// Documentation/reference/CoreBluetoothSymbols.md is true: each symbol of the module has a row, and each row a symbol and a test.
final class SymbolTableTests: XCTestCase {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let root = folder.deletingLastPathComponent().deletingLastPathComponent()

    private struct Row {
        let symbol: String
        let status: String
        let note: String
        let test: String

        /// The last name of the symbol, without its arguments.
        var name: String {
            let path = symbol.prefix { $0 != "(" }
            return String(path.split(separator: ".").last ?? path)
        }
    }

    private func text(of url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

    private func swiftFiles(in path: String) throws -> [String] {
        let folder = Self.root.appendingPathComponent(path)
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }.map { try text(of: $0) }
    }

    private func rows() throws -> [Row] {
        let page = try text(of: Self.root.appendingPathComponent("Documentation/reference/CoreBluetoothSymbols.md"))
        return try page.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            let row = try XCTUnwrap(columns.count == 6 ? columns : nil, "A row has four columns: \(line)")
            return Row(
                symbol: row[1].filter { $0 != "`" }, status: row[2], note: row[3], test: row[4].filter { $0 != "`" })
        }
    }

    /// The names that a module declares in public, without those of initializers.
    private func declared(in sources: [String]) -> Set<String> {
        let declaration = try! Regex(
            #"(?m)^ *(?:@\w+ )*(?:override |weak )*(?:open|public) (?:class |static |weak |override |final )*"#
                + #"(?:var|let|func|class|struct|enum|protocol|typealias) (\w+)"#, as: (Substring, Substring).self)
        let requirement = try! Regex(#"(?m)^    func (\w+)\("#, as: (Substring, Substring).self)
        let enumeration = try! Regex(#"(?m)^ +case (\w[\w ,=]*)$"#, as: (Substring, Substring).self)
        var names: Set<String> = []
        for source in sources {
            for match in source.matches(of: declaration) { names.insert(String(match.1)) }
            for match in source.matches(of: enumeration) {
                for element in match.1.split(separator: ",") {
                    names.insert(String(element.drop { $0 == " " }.prefix { $0 != " " }))
                }
            }
            // The delegate's requirements.
            guard source.contains("public protocol CB") else { continue }
            for match in source.matches(of: requirement) { names.insert(String(match.1)) }
        }
        return names
    }

    /// What Apple's framework does not have: this module's additions and what the conformances of errors need.
    private static let additions: Set = [
        "blueCap", "defaultConfiguration", "defaultOptions", "setLogHandler", "underlyingError", "errorCode",
        "errorDomain", "errorUserInfo",
        "NSErrorBridging", "_bridgeToObjectiveC", "_forceBridgeFromObjectiveC", "_conditionallyBridgeFromObjectiveC",
        "_unconditionallyBridgeFromObjectiveC", "NSObservable", "userInfo", "description", "code", "hash", "copy",
        "rawValue", "CFAbsoluteTime",
        // `CBError.unkownDevice` is Apple's own misspelling.
        "unkownDevice", "Code", "Feature",
    ]

    func testEachRowHasAStatusAndANoteIfItNeedsOne() throws {
        let rows = try rows()
        XCTAssertGreaterThan(rows.count, 200)
        for row in rows {
            XCTAssertTrue(["works", "differs", "absent"].contains(row.status), "\(row.symbol): \(row.status)")
            if row.status != "works" { XCTAssertFalse(row.note.isEmpty, "\(row.symbol) has no note.") }
        }
    }

    func testEachRowNamesATestThatExists() throws {
        var tests: Set<String> = []
        for source in try swiftFiles(in: "Tests/CoreBluetoothTests") {
            var name = ""
            for line in source.split(separator: "\n") {
                if let match = line.firstMatch(of: /^(?:final )?class (\w+)/) { name = String(match.1) }
                if let match = line.firstMatch(of: /^    func (test\w+)\(/) { tests.insert("\(name).\(match.1)") }
            }
        }
        for row in try rows() where row.status != "absent" {
            XCTAssertTrue(tests.contains(row.test), "\(row.symbol): \(row.test) does not exist.")
        }
    }

    func testSymbolsExistUnlessTheyAreAbsent() throws {
        let sources = try swiftFiles(in: "Sources/CoreBluetooth") + swiftFiles(in: "Sources/BlueCapGATT/CoreBluetooth")
        let names = declared(in: sources)
        for row in try rows() {
            if row.name == "init" {
                guard row.status == "absent", let label = row.symbol.firstMatch(of: /init\((\w+):/) else { continue }
                XCTAssertFalse(sources.contains { $0.contains("init(\(label.1):") }, "\(row.symbol) exists.")
                continue
            }
            XCTAssertEqual(names.contains(row.name), row.status != "absent", row.symbol)
        }
    }

    func testEachPublicSymbolHasARow() throws {
        let named = Set(try rows().map(\.name))
        let names = try declared(in: swiftFiles(in: "Sources/CoreBluetooth")).subtracting(Self.additions)
        XCTAssertGreaterThan(names.count, 100)
        // A type has a row of its own, or its cases have rows.
        let types = Set(try rows().map { String($0.symbol.prefix { $0 != "." && $0 != "(" }) })
        for name in names.subtracting(named).subtracting(types).sorted() { XCTFail("No row for \(name).") }
    }

    func testTheModuleIsThin() throws {
        let lines = try swiftFiles(in: "Sources/CoreBluetooth").map { $0.split(separator: "\n").count }
        XCTAssertLessThanOrEqual(lines.reduce(0, +), 3_000)
    }
}
