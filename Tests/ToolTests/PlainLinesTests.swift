import ArgumentParser
import BlueCapKit
import XCTest

@testable import bluecap

final class PlainLinesTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)

    private func news(_ event: ScanEvent, includesDuplicates: Bool = false) -> String? {
        event.line(.lines, at: date, in: .gmt, includesDuplicates: includesDuplicates)
    }

    func testADiscoveryNamesServicesAndMaker() {
        XCTAssertEqual(
            news(.discovered(Samples.strap)),
            "22:13:20.125  discovered  C0:5A:17:00:18:01   -56 dBm  Pulse Strap 7F  [Heart Rate, Battery]  (Polar)")
    }

    func testWhatIsNotKnownIsSaidSo() {
        XCTAssertEqual(
            news(.discovered(Samples.nameless)), "22:13:20.125  discovered  C0:5A:17:00:18:02         ?  (no name)")
    }

    func testAnUnnamedServiceAndMakerAreShownByTheirNumbers() {
        let sighting = Samples.sighting(
            1, name: "Lamp", rssi: -70, services: ["AA80", "6E400009-B5A3-F393-E0A9-E50E24DCCA9E"],
            manufacturerData: [0x0ABC: Data()])
        XCTAssertEqual(
            news(.expired(sighting)),
            "22:13:20.125  expired     C0:5A:17:00:18:01   -70 dBm  Lamp  [AA80, 6E400009…]  (company 0x0ABC)")
    }

    func testServiceDataIsNamedByItsService() {
        var thermometer = Samples.sighting(1, name: "SBDW-002C", rssi: -52, services: ["180F"])
        thermometer.serviceData = [
            CBUUID(string: "FE95"): Data([0x31, 0x20]), CBUUID(string: "FCD2"): Data([0x40]),
        ]
        XCTAssertEqual(
            news(.discovered(thermometer)),
            "22:13:20.125  discovered  C0:5A:17:00:18:01   -52 dBm  SBDW-002C  [Battery, data of FCD2, data of Xiaomi]")
        // The end of the line shows the frame.
        var eddystone = Samples.sighting(1, name: nil, rssi: -70, services: ["FEAA"])
        eddystone.serviceData = [CBUUID(string: "FEAA"): Eddystone.TLM(advertisementCount: 1, tenthsOfUptime: 10).data]
        XCTAssertEqual(eddystone.servicesText, "Eddystone")
    }

    func testBeaconsAreCalledWhatTheyAre() {
        let eddystone = Samples.sighting(1, name: nil, rssi: -70, services: ["FEAA"])
        XCTAssertEqual(eddystone.servicesText, "Eddystone")
        let whole = IBeacon(uuid: UUID(), major: 1, minor: 7).data
        for (data, text) in [(whole, "iBeacon"), (whole + [0xBB], "iBeacon"), (whole.dropLast(), "")] {
            let sighting = Samples.sighting(1, name: nil, rssi: -70, manufacturerData: [0x004C: Data(data)])
            XCTAssertEqual(sighting.servicesText, text)
            XCTAssertEqual(sighting.beacons.isEmpty, text.isEmpty)
        }
        let phone = Samples.sighting(1, name: nil, rssi: -70, manufacturerData: [0x004C: Data([0x10, 0x05])])
        XCTAssertEqual(phone.servicesText, "")
    }

    func testReadingsEndTheLine() {
        var sensor = Samples.sighting(1, name: "Kitchen", rssi: -58)
        sensor.serviceData = [
            CBUUID(string: "FCD2"): Data([0x40, 0x02, 0xC4, 0x09]), CBUUID(string: "FE2C"): Data([0, 0, 10]),
        ]
        XCTAssertEqual(sensor.detailsText, "temperature 25 °C, Fast Pair 00000a")
        XCTAssertEqual(news(.discovered(sensor))?.hasSuffix("  temperature 25 °C, Fast Pair 00000a"), true)
        sensor.serviceData = [CBUUID(string: "FCD2"): Data([0x41] + Array(repeating: 0, count: 12))]
        XCTAssertEqual(sensor.detailsText, "encrypted measurements")
        let mouse = Samples.sighting(1, name: nil, rssi: -58, manufacturerData: [6: Data([3, 0, 0x80])])
        XCTAssertEqual(mouse.detailsText, "Swift Pair")
    }

    private func line(_ event: ScanEvent, _ format: Format) -> String? { event.line(format, at: date, in: .gmt) }

    func testACommaSeparatedLineHasTheColumnsOfTheHeader() {
        XCTAssertEqual(Sighting.header, "time,event,address,name,rssi,txPower,services,makers,details")
        var strap = Samples.strap
        (strap.name, strap.txPower) = (#"Pulse, "7F""#, 4)
        XCTAssertEqual(
            line(.discovered(strap), .csv),
            #"2023-11-14T22:13:20.125Z,discovered,C0:5A:17:00:18:01,"Pulse, ""7F""",-56,4,"Heart Rate, Battery",Polar,"#
        )
        XCTAssertEqual(
            line(.expired(Samples.nameless), .csv), "2023-11-14T22:13:20.125Z,expired,C0:5A:17:00:18:02,,,,,,")
        XCTAssertNil(line(.updated(strap, isNews: false), .csv))
        XCTAssertNil(line(.finished(peripherals: 1, seconds: 1), .csv))
    }

    func testATextHasTheFieldsThatItNames() throws {
        let options = try LineOptions<Sighting>.parse([
            "--format", #"{clock}\t{event} {name} {rssi} {details} {field:temperature}{field:no}{"#,
        ])
        var sensor = Samples.sighting(1, name: "a\u{1B}b", rssi: -58)
        sensor.serviceData = [CBUUID(string: "FCD2"): Data([0x40, 0x02, 0xC4, 0x09])]
        XCTAssertEqual(
            line(.updated(sensor, isNews: true), options.format ?? .json),
            "22:13:20.125\tupdated a\\u{1B}b -58 temperature 25 °C 25{")
        expectRefusal(
            of: ["scan", "--format", "{rssi} {signal}"],
            "There is no {signal}: --format takes {time}, {event}, {address}, {name}, {rssi}, {txPower}, {services}, {makers}, "
                + "{details}, {clock}, {field:NAME}.")
        expectRefusal(of: ["scan", "--csv", "--json"], "exclude each other")
        expectRefusal(of: ["scan", "--rotate", "1MB"], "--rotate needs --output.")
    }

    func testOnlyNewsIsPrintedUnlessDuplicatesAreAskedFor() {
        XCTAssertNil(news(.updated(Samples.strap, isNews: false)))
        XCTAssertNotNil(news(.updated(Samples.strap, isNews: true)))
        XCTAssertNotNil(news(.updated(Samples.strap, isNews: false), includesDuplicates: true))
    }

    func testTheSummaryCountsInWords() {
        XCTAssertEqual(news(.finished(peripherals: 1, seconds: 0.04)), "1 peripheral in 0.0 s")
        XCTAssertEqual(news(.finished(peripherals: 20, seconds: 61.96)), "20 peripherals in 62.0 s")
    }

    func testANameCannotMoveTheCursor() {
        let line = news(.discovered(Samples.sighting(1, name: "a\u{1B}[2J\nb", rssi: -1)))
        XCTAssertEqual(line, "22:13:20.125  discovered  C0:5A:17:00:18:01    -1 dBm  a\\u{1B}[2J\\u{A}b")
    }
}
