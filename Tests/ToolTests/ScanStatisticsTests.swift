import XCTest

@testable import bluecap

final class ScanStatisticsTests: XCTestCase {
    private func statistics(restarts: Int = 0) -> ScanStatistics {
        var board = ScanBoard()
        _ = board.see(Samples.nameless, at: 0.5)
        for second in [1.0, 2.0, 4.0] { _ = board.see(Samples.strap, at: second) }
        return ScanStatistics(board, seconds: 8, restarts: restarts)
    }

    func testThereAreACountARateAndAnInterval() {
        let statistics = statistics()
        XCTAssertEqual(statistics.sightings, 4)
        XCTAssertEqual(statistics.perSecond, 0.5)
        XCTAssertEqual(statistics.peripherals.map(\.sightings), [3, 1])
        XCTAssertEqual(statistics.peripherals.map(\.interval), [1.5, nil])
    }

    func testTheTextHasALineForEachPeripheral() {
        let lines = statistics().text.split(separator: "\n")
        XCTAssertEqual(lines.count, 3)
        XCTAssertEqual(lines[0], "4 sightings of 2 peripherals in 8.000 s, 0.500 per second")
        XCTAssertEqual(lines[1], "  C0:5A:17:00:18:01  3, every 1.500 s  Pulse Strap 7F")
    }

    func testRestartsAreNamedIfThereWereAny() {
        XCTAssertTrue(statistics(restarts: 2).text.contains("; restarts of the scan: 2\n"))
        let json = statistics().json(at: Date(timeIntervalSince1970: 0)).text
        XCTAssertTrue(
            json.hasPrefix(#"{"event":"statistics","time":"1970-01-01T00:00:00.000Z","seconds":8.000,"#), json)
        XCTAssertTrue(json.contains(#""restarts":0"#), json)
    }
}
