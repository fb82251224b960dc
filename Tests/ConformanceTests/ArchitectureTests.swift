import XCTest

/// Documentation/Architecture.md names files of Sources.
final class ArchitectureTests: XCTestCase {
    func testEachFileThatThePageNamesExistsOnce() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("Documentation/Architecture.md"), encoding: .utf8)
        let names = Set(page.matches(of: /[A-Za-z0-9+\/]+\.swift/).map { String($0.output) })
        XCTAssertGreaterThan(names.count, 40)
        let sources = FileManager.default.enumerator(atPath: root.appendingPathComponent("Sources").path)
        let files = try XCTUnwrap(sources).compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
        for name in names.sorted() {
            let found = files.filter { ("/" + $0).hasSuffix("/" + name) }
            XCTAssertEqual(found.count, 1, "\(name): \(found)")
        }
    }
}
