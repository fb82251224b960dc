import XCTest

/// The rule of CONTRIBUTING.md about the names and the documentation of public errors.
final class ErrorNameTests: XCTestCase {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources")

    /// A public type that conforms to `Error`, with its documentation.
    private struct Declaration {
        let name: String
        let isEnum: Bool
        let comment: String
    }

    private func declarations(in text: String) -> [Declaration] {
        let form = /((?:\/\/\/[^\n]*\n)*)public (enum|struct|final class) (\w+): [^{]*\b(?:Swift\.)?Error\b[^{]*\{/
        return text.matches(of: form).map {
            Declaration(name: String($0.3), isEnum: $0.2 == "enum", comment: String($0.1))
        }
    }

    private func declarations() throws -> [Declaration] {
        let files = try XCTUnwrap(FileManager.default.enumerator(at: Self.sources, includingPropertiesForKeys: nil))
        return try files.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .flatMap { declarations(in: try String(contentsOf: $0, encoding: .utf8)) }
    }

    func testADeclarationIsFound() {
        let found = declarations(in: "/// Why.\npublic enum Refusal: Swift.Error, Hashable {\n    case no\n}\n")
        XCTAssertEqual(found.map(\.name), ["Refusal"])
        XCTAssertEqual(found.map(\.comment), ["/// Why.\n"])
    }

    func testTheNamesOfErrorsEndInError() throws {
        let declarations = try declarations()
        XCTAssertGreaterThan(declarations.count, 15)
        XCTAssertEqual(declarations.map(\.name).filter { !$0.hasSuffix("Error") }, [])
    }

    func testEnumsSayThatTheyMayGrow() throws {
        // `FuturesError` has the documents' cases.
        for declaration in try declarations() where declaration.isEnum && declaration.name != "FuturesError" {
            XCTAssertTrue(declaration.comment.contains("A later version may add cases"), declaration.name)
        }
    }
}
