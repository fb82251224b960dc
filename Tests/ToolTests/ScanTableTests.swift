import XCTest

@testable import bluecap

final class ScanTableTests: XCTestCase {
    private func table(_ width: Int, height: Int? = nil, isColoured: Bool = false) -> ScanTable {
        ScanTable(page: Page(width: width, height: height, isColoured: isColoured, glyphs: .unicode))
    }

    private func board(_ sightings: [Sighting], at time: Double = 0) -> ScanBoard {
        var board = ScanBoard()
        for sighting in sightings { _ = board.see(sighting, at: time) }
        return board
    }

    private func text(
        _ board: ScanBoard, width: Int, height: Int? = nil, notice: String? = nil, at now: Double = 10
    ) -> [String] {
        table(width, height: height)
            .lines(board, summary: nil, notice: notice, at: now).map(\.text)
    }

    func testAWideTableHasEveryColumn() {
        XCTAssertEqual(
            text(board([Samples.strap, Samples.nameless], at: 7), width: 120),
            [
                "  NAME            ADDRESS            SIGNAL         SERVICES             MAKER   HEARD",
                "● Pulse Strap 7F  C0:5A:17:00:18:01  █████▍    -56  Heart Rate, Battery  Polar     3 s",
                "● (no name)       C0:5A:17:00:18:02  not known  " + String(repeating: " ", count: 35) + "3 s",
                "2 peripherals · newest: C0:5A:17:00:18:02 · 10 s · Ctrl-C ends",
            ])
    }

    func testANarrowTableKeepsWhatMattersMost() {
        let board = board([Samples.strap])
        XCTAssertEqual(
            text(board, width: 60),
            [
                "  NAME            ADDRESS            SIGNAL          HEARD",
                "  Pulse Strap 7F  C0:5A:17:00:18:01  █████▍    -56    10 s",
                "1 peripheral · newest: Pulse Strap 7F · 10 s · Ctrl-C ends",
            ])
        XCTAssertEqual(
            text(board, width: 36).prefix(2),
            [
                "  NAME         SIGNAL          HEARD",
                "  Pulse Stra…  █████▍    -56    10 s",
            ])
        XCTAssertEqual(text(board, width: 14).prefix(2), ["  NAME", "  Pulse Strap…"])
    }

    func testNoLineIsWiderThanThePaper() {
        let names = ["日本語のとても長い名前のセンサー", "👩‍👩‍👧 family", "plain", String(repeating: "x", count: 200)]
        let board = board(
            names.enumerated().map { index, name in
                Samples.sighting(
                    UInt8(index), name: name, rssi: -40 - index * 10,
                    services: ["180D", "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"],
                    manufacturerData: [76: Data()])
            })
        for width in 1...160 {
            let lines = table(width)
                .lines(board, summary: nil, notice: "A notice of some length.", at: 5)
            for line in lines {
                XCTAssertLessThanOrEqual(line.width, width, line.text)
                XCTAssertEqual(line.width, DisplayText.width(line.text), line.text)
            }
        }
    }

    func testColumnsLineUpAlsoBesideWideNames() {
        let lines = text(
            board([
                Samples.sighting(1, name: "温度計", rssi: -50), Samples.sighting(2, name: "Thermometer", rssi: -51),
            ]), width: 60)
        let columns = lines[1...2].map { line in
            DisplayText.width(String(line[..<(line.range(of: "C0:")?.lowerBound ?? line.endIndex)]))
        }
        XCTAssertEqual(columns, [15, 15])
    }

    func testWhatDoesNotFitTheHeightIsCounted() {
        let board = board((1...9).map { Samples.sighting($0, name: "P\($0)", rssi: -40 - Int($0) * 6) })
        let lines = text(board, width: 60, height: 7)
        XCTAssertEqual(lines.count, 7)
        XCTAssertTrue(lines[1].contains("P1"))
        XCTAssertTrue(lines[4].contains("P4"))
        XCTAssertEqual(lines[5], "  … 5 more")
        XCTAssertEqual(text(board, width: 60, height: 11).count, 11)
        XCTAssertEqual(text(board, width: 60, height: 7, notice: "Away.").count, 7)
    }

    func testAnEmptyTableSaysThatItListens() {
        XCTAssertEqual(
            text(ScanBoard(), width: 40, at: 2),
            ["  NAME        SIGNAL          HEARD", "  Listening …", "0 peripherals · 2 s · Ctrl-C ends"])
    }

    func testNewPeripheralsAreMarkedForAWhile() {
        let board = board([Samples.strap], at: 0)
        XCTAssertTrue(text(board, width: 60, at: 1)[1].hasPrefix("● "))
        XCTAssertTrue(text(board, width: 60, at: 6)[1].hasPrefix("  "))
    }

    func testAGonePeripheralSaysSo() {
        var board = board([Samples.strap])
        _ = board.expire(Samples.strap.identifier)
        XCTAssertTrue(text(board, width: 60, at: 41)[1].hasSuffix("gone"))
    }

    func testTheLastFrameHasTheSummaryAndAllRows() {
        let board = board((1...9).map { Samples.sighting($0, name: "P\($0)", rssi: -40) })
        let lines = table(60).lines(
            board, summary: ScanEvent.finished(peripherals: 9, seconds: 3).line(.lines), notice: nil, at: 3)
        XCTAssertEqual(lines.count, 11)
        XCTAssertEqual(lines.last?.text, "9 peripherals in 3.0 s")
    }

    func testColourIsUsedOnlyWhereItIsWanted() {
        let board = board([Samples.strap])
        XCTAssertFalse(text(board, width: 100).contains { $0.contains("\u{1B}") })
        let coloured = table(100, isColoured: true)
            .lines(board, summary: nil, notice: nil, at: 1)
        XCTAssertTrue(coloured[1].text.contains("\u{1B}[32m█████▍  \u{1B}[0m"))
        let plain = table(100)
            .lines(board, summary: nil, notice: nil, at: 1)
        XCTAssertEqual(coloured.map(\.width), plain.map(\.width))
    }

    func testABarIsEmptyAtTheLimitOfHearingAndFullAtTouch() {
        let bar = SignalBar(cells: 4, glyphs: .unicode)
        XCTAssertEqual(bar.text(-110), "    ")
        XCTAssertEqual(bar.text(-98), "█   ".replacingOccurrences(of: "█", with: "▏"))
        XCTAssertEqual(bar.text(-35), "████")
        XCTAssertEqual(bar.text(20), "████")
        XCTAssertEqual(SignalBar(cells: 5, glyphs: .ascii).text(-61), "###--")
    }
}
