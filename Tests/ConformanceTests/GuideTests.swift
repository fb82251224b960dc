import XCTest

/// The guides in `Documentation` quote texts that exist, and their links lead to pages and headings that exist.
final class GuideTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(of path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    /// All Swift sources. A string that is written in several parts is one string here.
    private func sources() throws -> String {
        let folder = Self.root.appendingPathComponent("Sources")
        let files = try XCTUnwrap(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var text = ""
        for case let file as URL in files where file.pathExtension == "swift" {
            text += try String(contentsOf: file, encoding: .utf8)
        }
        var joined = ""
        for line in text.split(separator: "\n") {
            let line = line.drop { $0 == " " }
            if line.hasPrefix("+ \""), joined.hasSuffix("\"\n") {
                joined.removeLast(2)
                joined += line.dropFirst(3)
            } else {
                joined += line
            }
            joined += "\n"
        }
        return joined
    }

    func testTheErrorTextsOfTroubleshootingExist() throws {
        let sources = try sources()
        var count = 0
        for block in try text(of: "Documentation/Troubleshooting.md").components(separatedBy: "```text\n").dropFirst() {
            for line in try XCTUnwrap(block.components(separatedBy: "\n```").first).components(separatedBy: "\n") {
                for part in line.components(separatedBy: "…") where !part.isEmpty {
                    XCTAssertTrue(sources.contains(part), "No source has: \(part)")
                }
                count += 1
            }
        }
        XCTAssertGreaterThan(count, 25)
    }

    func testTheGuideToTestingShowsATest() throws {
        let test = try text(of: "Tests/ConformanceTests/TestingGuideTests.swift")
        XCTAssertTrue(try text(of: "Documentation/Simulator.md").contains("```swift\n\(test)```"))
    }

    /// The anchor that a heading has on GitHub.
    private func anchor(of heading: Substring) -> String {
        String(
            heading.drop { $0 == "#" || $0 == " " }.lowercased()
                .filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_" }
                .map { $0 == " " ? "-" : $0 })
    }

    func testLinksLeadToPagesAndHeadings() throws {
        let pages = try ["Documentation", "Documentation/reference"].flatMap { folder in
            try FileManager.default.contentsOfDirectory(atPath: Self.root.appendingPathComponent(folder).path)
                .filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
        }
        var count = 0
        for page in pages + ["README.md", "Examples/README.md"] {
            let base = Self.root.appendingPathComponent(page).deletingLastPathComponent()
            for match in try text(of: page).matches(of: /\]\(([^)#\s]*)(?:#([^)\s]+))?\)/) {
                let (path, anchor) = (String(match.1), match.2.map(String.init))
                guard !path.hasPrefix("http"), !(path.isEmpty && anchor == nil) else { continue }
                let file = path.isEmpty ? Self.root.appendingPathComponent(page) : base.appendingPathComponent(path)
                guard FileManager.default.fileExists(atPath: file.path) else {
                    XCTFail("\(page): there is no \(path).")
                    continue
                }
                count += 1
                guard let anchor else { continue }
                let anchors = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
                    .filter { $0.hasPrefix("#") }.map(self.anchor)
                XCTAssertTrue(anchors.contains(anchor), "\(page): \(path) has no heading #\(anchor).")
            }
        }
        XCTAssertGreaterThan(count, 100)
    }
}
