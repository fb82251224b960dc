import BlueCapKit
import XCTest

@testable import bluecap

final class TreeTextTests: XCTestCase {
    private func text(_ tree: AttributeTree, _ glyphs: Glyphs = .unicode) -> [String] {
        TreeText(page: Page(isColoured: false, glyphs: glyphs)).lines(tree).map(\.text)
    }

    func testATreeShowsNamesPropertiesValuesAndHandles() {
        XCTAssertEqual(
            text(TreeSamples.strap),
            [
                "Pulse Strap 7F  C0:5A:17:00:18:0D  random  -56 dBm  MTU 247",
                "├─ Heart Rate  180D  @0028  includes Battery",
                "│  ├─ Heart Rate Measurement  2A37  @0029  notify",
                "│  │  └─ Client Characteristic Configuration  2902  @002b  0000",
                "│  ├─ Body Sensor Location  2A38  @002c  read  Chest",
                "│  └─ Heart Rate Control Point  2A39  @002e  write",
                "├─ Battery  180F  @0040  secondary",
                "│  ├─ Battery Level  2A19  @0041  read notify  100 %",
                "│  └─ Battery Level  2A19  @0044  read  (read not permitted (0x02))",
                "└─ 6E400001-B5A3-F393-E0A9-E50E24DCCA9E  @0050",
                "   └─ 6E400002-B5A3-F393-E0A9-E50E24DCCA9E  @0051  read write-without-response  37461b",
            ])
    }

    func testALineThatIsWiderThanTheTerminalIsBrokenBeforeWordsBelowTheTree() {
        let page = Page(width: 40, isColoured: false, glyphs: .unicode)
        let lines = TreeText(page: page).lines(TreeSamples.strap).map(\.text)
        XCTAssertEqual(
            Array(lines.dropFirst().prefix(6)),
            [
                "├─ Heart Rate  180D  @0028  includes",
                "│  │  Battery",
                "│  ├─ Heart Rate Measurement  2A37",
                "│  │  │  @0029  notify",
                "│  │  └─ Client Characteristic",
                "│  │        Configuration  2902  @002b",
            ])
        // A word that is wider than the terminal is not cut.
        XCTAssertTrue(lines.contains { $0.contains("6E400002-B5A3-F393-E0A9-E50E24DCCA9E") })
    }

    func testAPlainLocaleGetsPlainLetters() {
        XCTAssertTrue(text(TreeSamples.strap, .ascii).allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
    }

    func testNamesCannotMoveTheCursor() {
        var tree = TreeSamples.strap
        tree.name = "\u{1B}[2J"
        tree.services[0].name = "a\nb"
        XCTAssertFalse(text(tree).joined().unicodeScalars.contains(where: DisplayText.isUnsafe))
    }

    func testAPeripheralWithoutServicesSaysSo() {
        var tree = TreeSamples.strap
        tree.services = []
        tree.rssi = nil
        tree.mtu = nil
        XCTAssertEqual(text(tree), ["Pulse Strap 7F  C0:5A:17:00:18:0D  random", "└─ no services"])
    }
}

final class KnownProfilesTests: XCTestCase {
    private let keys = CBUUID(string: "FFE0")

    func testAServiceOfATagIsNamedBesideAnotherOfTheSameVendor() {
        let accelerometer = CBUUID(string: "F000AA10-0451-4000-B000-000000000000")
        XCTAssertEqual(KnownProfiles(of: [keys, accelerometer]).service(keys)?.name, "TI Key Pressed")
        XCTAssertNotNil(KnownProfiles(of: [accelerometer]).service(accelerometer))
    }

    /// As that of an HM-10, a serial module.
    func testAShortUUIDThatIsNotAssignedDoesNotNameItsVendor() {
        XCTAssertNil(KnownProfiles(of: [keys]).service(keys))
        XCTAssertNil(KnownProfiles(of: [keys, CBUUID(string: "180A")]).service(keys))
        let uart = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
        XCTAssertNil(KnownProfiles(of: [keys, uart]).service(keys))
    }

    func testAnAssignedServiceNeedsNoOther() {
        let battery = CBUUID(string: "180F")
        XCTAssertEqual(KnownProfiles(of: [battery]).service(battery)?.name, "Battery")
    }
}

final class TreeJSONTests: XCTestCase {
    private func object(_ tree: AttributeTree) throws -> [String: Any] {
        try XCTUnwrap(JSONSerialization.jsonObject(with: Data(tree.json.text.utf8)) as? [String: Any])
    }

    func testATreeIsOneObjectOnOneLine() throws {
        XCTAssertFalse(TreeSamples.strap.json.text.contains("\n"))
        let tree = try object(TreeSamples.strap)
        XCTAssertEqual(tree["address"] as? String, "C0:5A:17:00:18:0D")
        XCTAssertEqual(tree["mtu"] as? Int, 247)
        let services = try XCTUnwrap(tree["services"] as? [[String: Any]])
        XCTAssertEqual(services.map { $0["handle"] as? Int }, [0x28, 0x40, 0x50])
        XCTAssertEqual(services[0]["includes"] as? [Int], [0x40])
        XCTAssertEqual(services[1]["primary"] as? Bool, false)
        XCTAssertTrue(services[2]["name"] is NSNull)
    }

    func testAValueHasItsDigitsAndWhatItsProfileSees() throws {
        let services = try XCTUnwrap(object(TreeSamples.strap)["services"] as? [[String: Any]])
        let characteristics = try XCTUnwrap(services[1]["characteristics"] as? [[String: Any]])
        XCTAssertEqual(characteristics[0]["value"] as? String, "64")
        XCTAssertEqual(characteristics[0]["fields"] as? [String: String], ["Battery Level": "100 %"])
        XCTAssertEqual(characteristics[0]["properties"] as? [String], ["read", "notify"])
        XCTAssertTrue(characteristics[1]["value"] is NSNull)
        XCTAssertEqual(characteristics[1]["error"] as? String, "read not permitted (0x02)")
    }

    func testEveryCharacteristicHasTheSameMembers() throws {
        let services = try XCTUnwrap(object(TreeSamples.strap)["services"] as? [[String: Any]])
        let members = services.flatMap { ($0["characteristics"] as? [[String: Any]] ?? []).map { Set($0.keys) } }
        XCTAssertEqual(
            Set(members),
            [["uuid", "name", "handle", "properties", "value", "fields", "quantities", "error", "descriptors"]])
    }
}
