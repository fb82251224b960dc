import BlueCapKit
import XCTest

@testable import bluecap

final class QuantityTests: XCTestCase {
    func testANumberWithItsUnitIsReadAndNothingElse() {
        let numbers: [(String, Double, String)] = [
            ("72 bpm", 72, "bpm"), ("87 %", 87, "%"), ("21.5°C", 21.5, "°C"), ("-3", -3, ""),
            ("1e-3 m/s", 0.001, "m/s"),
        ]
        for (text, number, unit) in numbers {
            XCTAssertEqual(Quantity(text), Quantity(number: number, unit: unit), text)
        }
        for text in ["", "Yes", "718 720", "2026-01-01T10:00:00", "10:30", "1.2.3", "4, 5", "nan", "0x10 x"] {
            XCTAssertNil(Quantity(text), text)
        }
    }

    func testNumbersArePrintedInFewDigits() {
        let texts: [(Double, String)] = [
            (72, "72"), (21.5, "21.5"), (3.14159, "3.142"), (0, "0"), (-0.0001, "0"), (1234.56, "1234.6"), (100, "100"),
            (4e9, "4e+09"),
        ]
        for (number, text) in texts { XCTAssertEqual(Quantity.text(number), text) }
    }

    private func numbers(_ value: AttributeValue, _ label: String, raw: Bool = false) -> [String] {
        Quantity.all(in: value, label: label, raw: raw).map { "\($0.series)=\($0.quantity.text)" }
    }

    func testAValueHasANumberForEachFieldThatIsOne() {
        var value = AttributeValue(Data([1]))
        value.fields = [
            .init(name: "Contact", text: "Yes"), .init(name: "Energy Expended", text: "9 kJ"),
            .init(name: "Heart Rate", text: "72 bpm"),
        ]
        XCTAssertEqual(
            numbers(value, "Heart Rate Measurement"),
            ["Heart Rate Measurement Energy Expended=9 kJ", "Heart Rate=72 bpm"])
        value.fields = [.init(name: "Battery Level", text: "87 %")]
        value.isWhole = true
        XCTAssertEqual(numbers(value, "Battery Level"), ["Battery Level=87 %"])
    }

    func testATransmittedNumberIsLeftOutBesideItsQuantity() {
        var value = AttributeValue(Data([1]))
        value.fields = [("x", "0.50"), ("xRaw", "-32"), ("pressureRaw", "7")].map { .init(name: $0.0, text: $0.1) }
        XCTAssertEqual(numbers(value, "Data"), ["Data x=0.5", "Data pressureRaw=7"])
        XCTAssertEqual(numbers(value, "Data", raw: true), ["Data x=0.5", "Data xRaw=-32", "Data pressureRaw=7"])
    }

    func testAValueWithoutAProfileIsANumberIfItsLengthIsThatOfOne() {
        XCTAssertEqual(numbers(AttributeValue(Data([0x10, 0x27])), "AA01"), ["AA01=10000"])
        XCTAssertEqual(numbers(AttributeValue(Data([7])), "AA01"), ["AA01=7"])
        XCTAssertEqual(numbers(AttributeValue(Data([1, 2, 3])), "AA01"), [])
        XCTAssertEqual(numbers(AttributeValue(Data()), "AA01"), [])
    }
}

final class MonitorPlotTests: XCTestCase {
    private func board(_ numbers: [(Double, Double)], window: Double = 10, gap: (Double, Double)? = nil) -> MonitorBoard
    {
        var board = MonitorBoard(title: "Strap", window: window)
        var gap = gap
        for (time, number) in numbers {
            if let ends = gap, ends.0 < time {
                board.beginGap(at: ends.0)
                board.endGap(at: ends.1)
                gap = nil
            }
            board.add(Quantity(number: number, unit: "bpm"), to: "Heart Rate", at: time)
        }
        return board
    }

    private func text(
        _ board: MonitorBoard, width: Int = 30, height: Int? = nil, glyphs: Glyphs = .ascii, summary: String? = nil,
        notice: String? = nil, isColoured: Bool = false, at now: Double = 10
    ) -> [String] {
        MonitorPlot(page: Page(width: width, height: height, isColoured: isColoured, glyphs: glyphs))
            .lines(board, summary: summary, notice: notice, at: now).map(\.text)
    }

    func testARisingNumberIsARisingLine() {
        XCTAssertEqual(
            text(board([(0, 70), (2, 76)], window: 2), width: 50, at: 2),
            [
                "Strap", "Heart Rate  76 bpm  min 70  max 76  mean 73",
                "     76 +                                 *******",
                "        |                    *************       ",
                "        |       *************                    ",
                "     70 +*******                                 ",
                "        +----------------------------------------",
                "         -2 s                                 now",
                "2 values - 2 s - Ctrl-C ends",
            ])
    }

    func testAValueThatComesSeldomIsHeldUntilTheNextAndUntilNow() {
        let lines = text(board([(1, 70), (5, 76)]), width: 50, at: 9)
        XCTAssertEqual(
            Array(lines[2...5]),
            [
                "     76 +                       *****************",
                "        |                       *                ",
                "        |                       *                ",
                "     70 +        ****************                ",
            ])
        // One from before the window is part of it.
        let old = text(board([(0, 70), (100, 76)]), width: 50, at: 105)
        XCTAssertEqual(old[5], "     70 +*********************                   ")
    }

    func testAStrengthIsNotHeld() {
        var board = MonitorBoard(window: 10)
        for (time, strength) in [(0.0, -60.0), (5, -50)] {
            board.add(Quantity(number: strength, unit: "dBm"), to: "RSSI", at: time)
        }
        let lines = text(board, width: 50, at: 9)
        XCTAssertTrue(lines[2].hasSuffix(" ") && lines[5].hasSuffix(" "), "\(lines)")
        XCTAssertTrue(lines[3...4].allSatisfy { $0.contains("*") }, "\(lines)")
    }

    func testAValueIsHeldUntilTheGapAndAGapIsThatOfItsPeripheral() {
        var board = MonitorBoard(window: 10)
        for owner in 0...1 {
            for time in [0.0, 10] { board.add(Quantity(number: 5, unit: ""), to: "S\(owner)", of: owner, at: time) }
        }
        board.beginGap(of: 1, at: 4)
        board.beginGap(of: 0, at: 9)
        board.endGap(of: 1, at: 9)
        XCTAssertEqual(board.gaps.map(\.end), [9, nil])
        let rows = text(board, width: 50).filter { $0.contains("*") }
        XCTAssertEqual(rows.count, 2)
        XCTAssertEqual(rows.last, "        |*****************xxxxxxxxxxxxxxxxxxx   *")
    }

    func testThePlotsShareTheHeightOfTheTerminal() {
        var board = MonitorBoard(window: 10)
        for count in 1...5 {
            board.add(Quantity(number: 1, unit: ""), to: "S\(count)", at: 1)
            for height in [20, 40, 61] {
                let lines = text(board, width: 40, height: height)
                XCTAssertEqual(lines.count, height, "\(count)")
                let heads = lines.indices.filter { lines[$0].hasPrefix("S") } + [height - 3]
                let rows = zip(heads, heads.dropFirst()).map { $1 - $0 }
                XCTAssertLessThanOrEqual((rows.max() ?? 0) - (rows.min() ?? 0), 1, "\(lines)")
            }
        }
    }

    func testEachNumberThatAPeripheralCanSendHasAPlot() {
        let great = Double.greatestFiniteMagnitude
        let numbers = [
            0, 1, -1, 1e-300, 0x1p53, 0x1p54, Double(UInt64.max), Double(UInt64.max) - 4096, 1e300, great, -great,
        ]
        for first in numbers {
            for second in numbers {
                // The first one is no longer in the window; a line begins there.
                let all: [[(Double, Double)]] = [
                    [(0, first), (5, second), (10, second)], [(0, first), (5, first), (10, second)],
                    [(0, first), (9, second), (10, first)],
                ]
                for samples in all {
                    let lines = text(board(samples, window: 6), width: 50, glyphs: .unicode)
                    XCTAssertTrue(lines[2...5].contains { $0.dropFirst(9).contains { $0 != " " } }, "\(lines)")
                    XCTAssertNil(lines.first { $0.contains("nan") }, "\(lines)")
                }
            }
        }
    }

    func testANumberThatDoesNotChangeIsDrawnInTheMiddle() {
        for number in [0, 72, 0x1p54, Double(UInt64.max), 1e300] {
            let lines = text(board([(0, number), (10, number)]), width: 50, glyphs: .unicode)
            XCTAssertEqual(
                lines[2...5].map { $0.contains("⠤") || $0.contains("⣀") || $0.contains("⠒") || $0.contains("⠉") },
                [false, false, true, false], "\(number) \(lines)")
        }
    }

    func testTheScaleGivesEachNumberAFinitePlace() {
        let great = Double.greatestFiniteMagnitude
        XCTAssertEqual(PlotScale([70, 76]).place(of: 73), 0.5)
        XCTAssertEqual(PlotScale([-great, great]).place(of: 0), 0.5)
        XCTAssertEqual(PlotScale([]), PlotScale([0, 1]))
        for number in [0, 72, 0x1p54, great, -great] {
            let scale = PlotScale([number])
            XCTAssertLessThan(scale.low, scale.high)
            for other in [0, great, -great] { XCTAssertTrue(scale.place(of: other).isFinite, "\(number) \(other)") }
        }
    }

    func testBrailleHasEightDotsInACell() {
        let lines = text(board([(0, 0), (2, 7)], window: 2), width: 14, glyphs: .unicode, at: 2)
        XCTAssertEqual(lines[2...5].map { $0 }, ["      7 ┤   ⡜", "        │  ⡜ ", "        │ ⡜  ", "      0 ┤⡜   "])
    }

    func testALostLinkIsAGap() {
        let lines = text(board([(0, 70), (2, 70), (8, 70), (10, 70)], gap: (3, 7)), width: 50)
        let row = lines.first { $0.contains("*") }
        XCTAssertEqual(row, "        |*************xxxxxxxxxxxxxxx   *********")
    }

    func testAGapThatLastsReachesToNow() {
        var lost = board([(0, 70), (5, 70)])
        lost.beginGap(at: 5)
        XCTAssertTrue(text(lost, width: 50).contains { $0.hasSuffix("xxxxxxxxxx") })
        lost.endGap(at: 6)
        XCTAssertFalse(text(lost, width: 50).contains { $0.hasSuffix("x") })
    }

    func testTheNumbersAreThoseOfAllSamplesAndThePlotThoseOfTheWindow() {
        let lines = text(board([(0, 10), (89, 70), (95, 70), (100, 80)]), width: 60, at: 100)
        XCTAssertEqual(lines[1], "Heart Rate  80 bpm  min 10  max 80  mean 57.5")
        XCTAssertTrue(lines[2].hasPrefix("     80 +"), lines[2])
        XCTAssertTrue(lines[5].hasPrefix("     70 +"), lines[5])
    }

    func testNothingIsWiderOrHigherThanTheTerminal() {
        var many = MonitorBoard(title: "A title of some length", window: 10)
        for series in 0..<5 {
            for time in 0...10 {
                many.add(
                    Quantity(number: Double(time * series) * 1.7, unit: "m/s²"), to: "日本語のセンサー \(series)",
                    at: Double(time))
            }
        }
        for glyphs in [Glyphs.unicode, .ascii] {
            for width in 1...90 {
                for height in [6, 9, 14, 24, 60] {
                    let lines = MonitorPlot(page: Page(width: width, height: height, isColoured: true, glyphs: glyphs))
                        .lines(many, summary: nil, notice: "A notice.", at: 10)
                    XCTAssertLessThanOrEqual(lines.count, max(height, 8), "\(width)×\(height)")
                    for line in lines { XCTAssertLessThanOrEqual(line.width, width, line.text) }
                }
            }
        }
    }

    func testWhatDoesNotFitIsCounted() {
        var many = MonitorBoard(window: 10)
        for series in 0..<5 { many.add(Quantity(number: 1, unit: ""), to: "S\(series)", at: 1) }
        let lines = text(many, width: 40, height: 9)
        XCTAssertTrue(lines.contains("~ 3 more"), "\(lines)")
        XCTAssertEqual(lines.count, 9)
    }

    func testWithoutValuesItSaysThatItWaits() {
        XCTAssertEqual(
            text(MonitorBoard(title: "Strap", window: 10), at: 2),
            ["Strap", "  Waiting for values ~", "0 values - 2 s - Ctrl-C ends"])
    }

    func testColourIsUsedOnlyWhereItIsWanted() {
        let board = board([(0, 70), (10, 76)])
        XCTAssertFalse(text(board).contains { $0.contains("\u{1B}") })
        XCTAssertTrue(text(board, isColoured: true).contains { $0.contains("\u{1B}[32m") })
    }

    func testOldSamplesAreForgotten() {
        let board = board((0..<10_000).map { (Double($0), 70) })
        XCTAssertEqual(board.count, 10_000)
        XCTAssertLessThan(board.series[0].samples.count, 100)
    }

    func testEventsHaveLines() {
        let date = Date(timeIntervalSince1970: 1_700_000_000.125)
        let sample = ValueEvent.sample(series: "Heart Rate", Quantity(number: 72, unit: "bpm"), date)
        XCTAssertEqual(
            sample.line(.json),
            #"{"event":"sample","time":"2023-11-14T22:13:20.125Z","series":"Heart Rate","number":72,"unit":"bpm"}"#)
        XCTAssertEqual(sample.line(.lines, in: .gmt), "22:13:20.125  Heart Rate  72 bpm")
        XCTAssertEqual(sample.line(.lines, of: "Strap", in: .gmt), "22:13:20.125  Strap  Heart Rate  72 bpm")
        XCTAssertEqual(
            ValueEvent.gap(date).line(.json, of: "Strap"),
            #"{"event":"gap","time":"2023-11-14T22:13:20.125Z","peripheral":"Strap"}"#)
        XCTAssertEqual(ValueEvent.gap(date).line(.json), #"{"event":"gap","time":"2023-11-14T22:13:20.125Z"}"#)
        XCTAssertEqual(
            ValueEvent.finished(values: 2, seconds: 3).line(.json),
            #"{"event":"finished","values":2,"seconds":3.000}"#)
        XCTAssertNil(ValueEvent.finished(values: 2, seconds: 3).line(.lines))
    }
}
