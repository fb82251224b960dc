import BlueCapKit
import TestBasics
import XCTest

@testable import bluecap

/// The user's formats, keys and names.
final class FormatsTests: XCTestCase {
    static let file = #"""
        { "keys": { "54:48:E6:8F:80:A5": "231d39c1d7cc1ab1aee224cd096db932" },
          "names": { "AA80": "Lamp", "FFE0": "Buttons", "FFE1": "Left" },
          "decoders": [
            { "name": "rain_gauge", "company": "0xFFFF", "length": 3, "prefix": "01", "fields": [
                { "name": "precipitation", "offset": 1, "type": "u16le", "factor": 0.1, "unit": "mm" } ] },
            { "name": "probe", "service": "180F", "fields": [
                { "name": "a", "type": "i8" }, { "name": "b", "offset": 1, "type": "i24be", "factor": 2 },
                { "name": "c", "offset": 4, "type": "u32", "factor": 0.01 } ] } ] }
        """#

    private func formats(_ text: String) throws -> Formats {
        let path = NSTemporaryDirectory() + "decoders-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return try Formats(path: path)
    }

    private func values(_ advertisement: AdvertisementFields) throws -> [String] {
        try formats(Self.file).decoders.readings(in: advertisement).filter { $0.format != "service_data" }.map {
            "\($0.format): \($0.line)"
        }
    }

    func testFieldsAreReadByTheirTypesAndFactors() throws {
        XCTAssertEqual(
            try values(.init(manufacturerData: [0xFFFF: Data([1, 0xD7, 0])])), ["rain_gauge: precipitation 21.5 mm"])
        let battery = CBUUID(string: "180F")
        XCTAssertEqual(
            try values(.init(serviceData: [battery: Data([0xFE, 0xFF, 0xFF, 0xFD, 0xCA, 0x09, 0, 0])])),
            ["probe: a -2, b -6, c 25.06"])
        XCTAssertEqual(try values(.init(serviceData: [battery: Data([127, 0, 0, 3, 4])])), ["probe: a 127, b 6"])
    }

    func testDataThatIsTooShortOrBeginsOtherwiseIsNotDecoded() throws {
        for data in [[], [1, 0xD7], [2, 0xD7, 0]] as [[UInt8]] {
            XCTAssertEqual(try values(.init(manufacturerData: [0xFFFF: Data(data)])), [])
        }
        XCTAssertEqual(try values(.init(manufacturerData: [0xFFFE: Data([1, 0xD7, 0])])), [])
    }

    func testNamesAreThoseOfServices() throws {
        let lamp = Samples.sighting(1, name: "Lamp", rssi: -70, services: ["AA80", "180F"])
        try Formats.$current.withValue(formats(Self.file)) { XCTAssertEqual(lamp.servicesText, "Lamp, Battery") }
        XCTAssertEqual(lamp.servicesText, "AA80, Battery")
    }

    func testAnErrorNamesTheFileAndTheMember() {
        for (text, problem) in [
            #"{"names":1}"#: "names: ", #"{"key":{}}"#: #"line 1, column 2: key: unknown key"#,
            #"{"names":{"12":"x"}}"#: #"names: "12" is no UUID"#,
            #"{"keys":{"12":"x"}}"#: #"keys: "12" is not the address of a key of 32 hexadecimal digits"#,
            #"{"decoders":[{"name":"x","company":"y","fields":[]}]}"#: #"decoders[0].company: "y" is not a company"#,
            #"{"decoders":[{"name":"x","fields":[]}]}"#: "a decoder has either a company or a service",
            #"{"decoders":[{"name":"x","service":"Batery","fields":[]}]}"#: #"decoders[0].service: "Batery" is not"#,
            #"{"decoders":[{"name":"x","company":"1","prefix":"1","fields":[]}]}"#: "decoders[0].prefix: ",
            #"{"decoders":[{"name":"x","company":"1","fields":[{"name":"y","type":"u9"}]}]}"#:
                #"decoders[0].fields[0].type: "u9" is not a type"#,
            #"{"decoders":[{"name":"x","company":"1","fields":[{"name":"y"}]}]}"#: "the field has no type",
            "{": "",
        ] {
            XCTAssertThrowsError(try formats(text), text) { error in
                let description = "\(error)"
                XCTAssertTrue(description.contains(".json is no file of decoders: "), description)
                XCTAssertTrue(problem.isEmpty || description.contains(problem), "\(description), not: \(problem)")
            }
        }
        XCTAssertThrowsError(try Formats(path: "/nonexistent/decoders.json")) {
            XCTAssertEqual("\($0)", "The file /nonexistent/decoders.json of decoders cannot be read.")
        }
    }

    // MARK: The cipher

    /// The first vector is that of <https://bthome.io/encryption>. The second has another counter, and was computed with the package
    /// cryptography of Python.
    func testLibcryptoDecryptsThePublishedVector() throws {
        var formats = try formats(Self.file)
        try formats.add([])
        func read(_ data: String, from address: String = "54:48:E6:8F:80:A5") -> String? {
            formats.decoders.readings(
                in: .init(
                    address: BluetoothAddress(address),
                    serviceData: [CBUUID(string: "FCD2"): ValueForm.bytes(data) ?? Data()])
            ).first?.line
        }
        for data in ["41e445f3c9962b332211006c7c4519", "41a47266c95f730011223378237214"] {
            XCTAssertEqual(read(data), "temperature 25.06 °C, humidity 50.55 %")
        }
        // A bit of the data, the counter and the tag; another sender.
        for data in [
            "41e545f3c9962b332211006c7c4519", "41e445f3c9962b332211016c7c4519", "41e445f3c9962b332211006c7c4518",
        ] {
            XCTAssertEqual(read(data), "encrypted measurements")
        }
        XCTAssertEqual(read("41e445f3c9962b332211006c7c4519", from: "54:48:E6:8F:80:A6"), "encrypted measurements")
        // A key of the command line replaces that of the file.
        let address = try XCTUnwrap(BluetoothAddress("54:48:E6:8F:80:A5"))
        try formats.add([(address, Data(repeating: 0, count: 16))])
        XCTAssertEqual(read("41e445f3c9962b332211006c7c4519"), "encrypted measurements")
    }
}

final class FormatsProcessTests: XCTestCase, StartsPrograms {
    private var folder = ""

    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "formats-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder + "/bluecap", withIntermediateDirectories: true)
        try FormatsTests.file.write(toFile: folder + "/bluecap/decoders.json", atomically: true, encoding: .utf8)
        try #"""
        { "name": "formats", "peripherals": [
            { "address": "54:48:E6:8F:80:A5", "interval": 0.2, "advertisement": {
                "localName": "Cellar", "serviceData": { "fcd2": "41e445f3c9962b332211006c7c4519" } } },
            { "address": "C8:D0:83:6A:12:F4", "addressType": "random", "interval": 0.2, "advertisement": {
                "localName": "Rain", "manufacturerData": { "65535": "01d700" } },
              "services": [ { "uuid": "ffe0", "characteristics": [
                  { "uuid": "ffe1", "flags": ["read"], "value": "01" } ] } ] } ] }
        """#.write(toFile: folder + "/room.json", atomically: true, encoding: .utf8)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func run(_ arguments: String..., configuration: String? = nil) throws -> ToolRun.Result {
        try ToolRun(
            arguments + ["--simulated", "--peripherals", folder + "/room.json"],
            environment: ["XDG_CONFIG_HOME": configuration ?? folder + "/none"]
        ).finish()
    }

    func testAScanDecryptsWithTheKeyThatIsGiven() throws {
        let key = "54:48:E6:8F:80:A5=231d39c1d7cc1ab1aee224cd096db932"
        let open = try run("scan", "--duration", "1", "--key", key)
        XCTAssertEqual(open.status, 0)
        XCTAssertTrue(
            open.output.contains("Cellar  [data of FCD2]  temperature 25.06 °C, humidity 50.55 %"), open.output)
        let closed = try run("scan", "--duration", "1")
        XCTAssertTrue(closed.output.contains("Cellar  [data of FCD2]  encrypted measurements"), closed.output)
        let wrong = try run("scan", "--key", "54:48:E6:8F:80:A5=23")
        XCTAssertEqual(wrong.status, 64)
        XCTAssertTrue(wrong.errors.joined().contains("a key of 32 hexadecimal digits"), "\(wrong.errors)")
    }

    func testTheFileOfTheUserIsUsedByScanExploreAndMonitor() throws {
        let scan = try run("scan", "--duration", "1", "--json", configuration: folder)
        let readings = try scan.objects().compactMap {
            ($0["readings"] as? [[String: Any]])?.first?["format"] as? String
        }
        XCTAssertEqual(Set(readings), ["bthome_v2", "rain_gauge"])
        let tree = try run("explore", "Rain", configuration: folder)
        XCTAssertTrue(tree.output.contains("Buttons  FFE0") && tree.output.contains("Left  FFE1"), tree.output)
        let monitor = try run("monitor", "Rain", "--count", "2", configuration: folder)
        XCTAssertEqual(monitor.lines.filter { $0.hasSuffix("precipitation  21.5 mm") }.count, 2, monitor.output)
        let sensor = try run("monitor", "Cellar", "--json", "--count", "1", configuration: folder)
        XCTAssertEqual(
            try sensor.objects().compactMap { $0["series"] as? String }, ["RSSI", "temperature", "humidity"])
    }

    func testAFileThatIsGivenReplacesTheUsersAndItsErrorNamesTheMember() throws {
        try #"{ "names": { "FFE0": "Knobs" } }"#.write(
            toFile: folder + "/other.json", atomically: true, encoding: .utf8)
        let tree = try run("explore", "Rain", "--decoders", folder + "/other.json", configuration: folder)
        XCTAssertTrue(tree.output.contains("Knobs  FFE0") && !tree.output.contains("Left"), tree.output)

        try #"{ "names": [] }"#.write(toFile: folder + "/bluecap/decoders.json", atomically: true, encoding: .utf8)
        let result = try run("scan", configuration: folder)
        XCTAssertEqual(result.status, 1)
        XCTAssertTrue(
            result.errors.joined().contains("\(folder)/bluecap/decoders.json is no file of decoders: "),
            "\(result.errors)")
        let given = try run("scan", "--decoders", folder + "/bluecap/decoders.json")
        XCTAssertEqual(given.status, 64)
        XCTAssertTrue(given.errors.joined().contains("names: "), "\(given.errors)")
    }
}
