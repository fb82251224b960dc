import XCTest

/// README, guides, examples and the tool configure with structures. Dictionaries of options are on the page about them only.
final class OptionDictionaryTests: XCTestCase {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let page = "Options.md"

    /// A key of Core Bluetooth or of this library in a dictionary, or as its subscript.
    private func dictionaries(in text: String) -> [String] {
        text.matches(of: /\b(?:CB|Central|Peripheral)\w*(?:Option|AdvertisementData)\w*Key\s*(?=:|\]\s*=[^=])/)
            .map { String($0.0) }
    }

    private func files(in folder: String, _ suffix: String) throws -> [URL] {
        let folder = Self.root.appendingPathComponent(folder)
        let files = try XCTUnwrap(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        return files.compactMap { $0 as? URL }.filter { $0.pathExtension == suffix }
    }

    func testADictionaryIsFound() throws {
        for text in [
            "[CBCentralManagerScanOptionAllowDuplicatesKey: true]",
            "[\n    CentralManagerOptionAdapterKey: \"hci1\",\n]",
            "options[PeripheralManagerOptionLoggerKey] = logger", "[CBAdvertisementDataLocalNameKey: \"a\"]",
        ] {
            XCTAssertEqual(dictionaries(in: text).count, 1, text)
        }
        for text in [
            "| `CBCentralManagerOptionShowPowerAlertKey` | ignored |",
            "data[CBAdvertisementDataLocalNameKey] as? String",
        ] {
            XCTAssertEqual(dictionaries(in: text), [], text)
        }
        let page = Self.root.appendingPathComponent("Documentation/reference/\(Self.page)")
        XCTAssertGreaterThan(dictionaries(in: try String(contentsOf: page, encoding: .utf8)).count, 1)
    }

    func testOnlyThePageAboutThemHasDictionariesOfOptions() throws {
        let files =
            try files(in: "Documentation", "md") + files(in: "Examples", "swift")
            + files(in: "Sources/bluecap", "swift")
            + [Self.root.appendingPathComponent("README.md")]
        XCTAssertGreaterThan(files.count, 80)
        for file in files where file.lastPathComponent != Self.page {
            for key in dictionaries(in: try String(contentsOf: file, encoding: .utf8)) {
                XCTFail("\(file.lastPathComponent) has a dictionary with \(key): write a configuration.")
            }
        }
    }
}
