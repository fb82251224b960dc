import XCTest

@testable import bluecap

final class PlainLinesTests: XCTestCase {
    private let news = PlainLines(includesDuplicates: false)

    func testADiscoveryNamesServicesAndMaker() {
        XCTAssertEqual(
            news.lines(for: .discovered(Samples.strap)),
            [
                "discovered  C0:5A:17:00:18:01   -56 dBm  Pulse Strap 7F  [Heart Rate, Battery Service]"
                    + "  (Polar Electro OY)"
            ])
    }

    func testWhatIsNotKnownIsSaidSo() {
        XCTAssertEqual(
            news.lines(for: .discovered(Samples.nameless)), ["discovered  C0:5A:17:00:18:02         ?  (no name)"])
    }

    func testAnUnnamedServiceAndMakerAreShownByTheirNumbers() {
        let sighting = Samples.sighting(
            1, name: "Lamp", rssi: -70, services: [("AA80", nil), ("6E400001-B5A3-F393-E0A9-E50E24DCCA9E", nil)],
            makers: [(0x0ABC, nil, [])])
        XCTAssertEqual(
            news.lines(for: .expired(sighting)),
            ["expired     C0:5A:17:00:18:01   -70 dBm  Lamp  [AA80, 6E400001…]  (company 0x0ABC)"])
    }

    func testBeaconsAreCalledWhatTheyAre() {
        let eddystone = Samples.sighting(1, name: nil, rssi: -70, services: [("FEAA", "Google LLC")])
        XCTAssertEqual(Wording.services(of: eddystone), "Eddystone")
        let iBeacon = Samples.sighting(1, name: nil, rssi: -70, makers: [(0x004C, "Apple, Inc.", [0x02, 0x15, 0x00])])
        XCTAssertEqual(Wording.services(of: iBeacon), "iBeacon")
        let phone = Samples.sighting(1, name: nil, rssi: -70, makers: [(0x004C, "Apple, Inc.", [0x10, 0x05])])
        XCTAssertEqual(Wording.services(of: phone), "")
    }

    func testOnlyNewsIsPrintedUnlessDuplicatesAreAskedFor() {
        XCTAssertEqual(news.lines(for: .updated(Samples.strap, isNews: false)), [])
        XCTAssertEqual(news.lines(for: .updated(Samples.strap, isNews: true)).count, 1)
        XCTAssertEqual(
            PlainLines(includesDuplicates: true).lines(for: .updated(Samples.strap, isNews: false)).count, 1)
    }

    func testTheSummaryCountsInWords() {
        XCTAssertEqual(
            news.lines(for: .finished(ScanSummary(peripherals: 1, seconds: 0.04))), ["1 peripheral in 0.0 s"])
        XCTAssertEqual(
            news.lines(for: .finished(ScanSummary(peripherals: 20, seconds: 61.96))), ["20 peripherals in 62.0 s"])
    }

    func testANameCannotMoveTheCursor() {
        let lines = news.lines(for: .discovered(Samples.sighting(1, name: "a\u{1B}[2J\nb", rssi: -1)))
        XCTAssertEqual(lines, ["discovered  C0:5A:17:00:18:01    -1 dBm  a\\u{1B}[2J\\u{A}b"])
    }
}
