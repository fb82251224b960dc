import BlueCapKit
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

    /// The text of a column's cell, cut at the next column.
    private func cell(_ title: String, before next: String, _ lines: [String]) -> String? {
        guard let start = lines[0].range(of: title), let end = lines[0].range(of: next) else { return nil }
        let from = lines[0].distance(from: lines[0].startIndex, to: start.lowerBound)
        let to = lines[0].distance(from: lines[0].startIndex, to: end.lowerBound)
        return String(lines[1].dropFirst(from).prefix(to - from)).trimmingCharacters(in: .whitespaces)
    }

    func testColumnsAreAsWideAsTheirContent() {
        var beacon = Samples.sighting(
            1, name: "A name of thirty-one characters", rssi: -50, services: ["180D", "181A"])
        beacon.manufacturerData = [
            0x004C: IBeacon(uuid: UUID(uuid: Samples.nameless.identifier.uuid), major: 1, minor: 7).data,
            0x006B: Data([1]),
        ]
        let lines = text(board([beacon]), width: 200)
        XCTAssertEqual(cell("NAME", before: "ADDRESS", lines), "A name of thirty-one characters")
        XCTAssertEqual(
            cell("DETAILS", before: "SERVICES", lines), "iBeacon 00000000-0000-5000-8000-000000000002 1/7")
        XCTAssertEqual(cell("SERVICES", before: "MAKER", lines), "Heart Rate, Environmental Sensing, iBeacon")
        XCTAssertEqual(cell("MAKER", before: " HEARD", lines), "Apple, Polar")
        // Services are cut before details; the name is whole as long as the signal has space.
        let cut = text(board([beacon]), width: 170)
        XCTAssertEqual(
            cell("DETAILS", before: "SERVICES", cut), "iBeacon 00000000-0000-5000-8000-000000000002 1/7")
        XCTAssertTrue(cell("SERVICES", before: "MAKER", cut)?.contains("…") == true, "\(cut)")
        XCTAssertEqual(text(board([beacon]), width: 60)[1].prefix(33), "  A name of thirty-one characters")
    }

    func testAColumnWithoutContentIsLeftOut() {
        let header = text(board([Samples.nameless]), width: 200)[0]
        XCTAssertEqual(header.split(separator: " "), ["NAME", "ADDRESS", "SIGNAL", "HEARD"])
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
        for width in 1...220 {
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
            board, summary: ScanEvent.finished(peripherals: 9, seconds: 3).line(.lines, at: Date()), notice: nil, at: 3)
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
