import BlueCapKit
import XCTest

@testable import bluecap

final class JSONLinesTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)

    private func news(_ event: ScanEvent, includesDuplicates: Bool = false) -> String? {
        event.line(.json, at: date, includesDuplicates: includesDuplicates)
    }

    func testADiscoveryHasAllMembersInTheDocumentedOrder() {
        var strap = Samples.strap
        strap.txPower = 4
        strap.manufacturerData[76] = Data([0x02, 0x15])
        strap.serviceData = [CBUUID(string: "FEAA"): Data([0x10]), CBUUID(string: "180D"): Data([0xFF, 0x00])]
        strap.isConnectable = true

        XCTAssertEqual(
            news(.discovered(strap)),
            #"{"event":"discovered","time":"2023-11-14T22:13:20.125Z","identifier":"00000000-0000-5000-8000-000000000001","#
                + #""address":"C0:5A:17:00:18:01","addressType":"public","name":"Pulse Strap 7F","rssi":-56,"#
                + #""txPower":4,"services":["180D","180F"],"manufacturerData":{"107":"7208","76":"0215"},"#
                + #""serviceData":{"180D":"ff00","FEAA":"10"},"connectable":true,"beacons":[],"readings":[]}"#)
    }

    func testTelemetryHasNumbersAsNumbers() throws {
        for (temperature, expected) in [(12.55078125, "12.55"), (-3.0, "-3"), (0.1 + 0.2, "0.3")] {
            let frame = Eddystone.TLM(
                batteryMillivolts: 3213, temperature: temperature, advertisementCount: 4, tenthsOfUptime: 15)
            XCTAssertEqual(
                Beacon.eddystoneTLM(frame).json.text,
                #"{"kind":"eddystoneTLM","batteryMillivolts":3213,"temperature":\#(expected),"#
                    + #""advertisements":4,"uptime":1.500}"#)
        }
        let unknown = Eddystone.TLM(advertisementCount: 4, tenthsOfUptime: 15)
        XCTAssertTrue(Beacon.eddystoneTLM(unknown).json.text.contains(#""temperature":null"#))
    }

    func testReadingsHaveTheirValuesWithUnits() throws {
        var sensor = Samples.sighting(1, name: "Kitchen", rssi: -58, manufacturerData: [0x004C: Data([0x10, 0x00])])
        sensor.serviceData = [CBUUID(string: "FCD2"): Data([0x40, 0x00, 0x09, 0x02, 0xC4, 0x09, 0x2D, 0x01])]
        XCTAssertEqual(
            news(.discovered(sensor))?.components(separatedBy: #","readings":"#).last,
            #"[{"format":"bthome_v2","sequenceNumber":9,"encrypted":false,"values":["#
                + #"{"name":"temperature","value":25,"unit":"°C"},{"name":"window","value":true,"unit":""}]},"#
                + #"{"format":"apple_continuity","sequenceNumber":null,"encrypted":false,"values":["#
                + #"{"name":"message","value":"Nearby Info","unit":""}]}]}"#)
    }

    func testWhatIsNotKnownIsNullOrEmpty() throws {
        let line = try XCTUnwrap(news(.discovered(Samples.nameless)))
        XCTAssertTrue(line.contains(#""name":null,"rssi":null,"txPower":null,"services":[],"manufacturerData":{}"#))
        XCTAssertTrue(line.hasSuffix(#""serviceData":{},"connectable":null,"beacons":[],"readings":[]}"#))
    }

    func testReadingsAreLeftOutUnlessDuplicatesAreAskedFor() {
        let reading = ScanEvent.updated(Samples.strap, isNews: false)
        XCTAssertNil(news(reading))
        let line = news(reading, includesDuplicates: true)
        XCTAssertEqual(line?.hasPrefix(#"{"event":"updated","#), true)
    }

    func testNewsAndExpiryAreAlwaysPrinted() {
        XCTAssertEqual(news(.updated(Samples.strap, isNews: true))?.hasPrefix(#"{"event":"updated""#), true)
        XCTAssertEqual(news(.expired(Samples.strap))?.hasPrefix(#"{"event":"expired""#), true)
    }

    func testTheLastLineCountsPeripheralsAndMilliseconds() {
        XCTAssertEqual(
            news(.finished(peripherals: 12, seconds: 3.0024)),
            #"{"event":"finished","time":"2023-11-14T22:13:20.125Z","peripherals":12,"seconds":3.002}"#)
    }

    func testHostileNamesStayOnOneLineAndComeBackUnharmed() throws {
        let name = "\u{1B}[2J\n\"\\\u{202E}evil\u{2028}\u{0} \u{F0000} 🏃🏽‍♀️"
        let line = try XCTUnwrap(news(.discovered(Samples.sighting(1, name: name, rssi: -1))))

        XCTAssertFalse(line.unicodeScalars.contains { $0.properties.generalCategory == .control })
        XCTAssertFalse(line.unicodeScalars.contains("\u{202E}"))
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        XCTAssertEqual(object?["name"] as? String, name)
    }
}
