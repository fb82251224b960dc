import XCTest

@testable import bluecap

final class LiveScreenTests: XCTestCase {
    private func lines(_ texts: String...) -> [StyledLine] {
        texts.map { Page(isColoured: false, glyphs: .unicode).line([($0, [])]) }
    }

    func testTheFirstFrameBeginsWhereTheCursorIs() {
        var screen = LiveScreen()
        XCTAssertEqual(screen.frame(lines("ab", "c"), width: 10), "\rab\u{1B}[K\r\nc\u{1B}[K\r\n\u{1B}[J")
    }

    func testTheNextFrameReplacesTheLast() {
        var screen = LiveScreen()
        _ = screen.frame(lines("ab", "c", ""), width: 10)
        XCTAssertEqual(screen.frame(lines("d"), width: 10), "\r\u{1B}[3Ad\u{1B}[K\r\n\u{1B}[J")
        XCTAssertTrue(screen.frame(lines("e"), width: 10).hasPrefix("\r\u{1B}[1A"))
    }

    func testLinesThatANarrowerTerminalHasBrokenAreCounted() {
        var screen = LiveScreen()
        _ = screen.frame(lines("1234567890", "12345", "123"), width: 10)
        XCTAssertTrue(screen.frame(lines("1"), width: 4).hasPrefix("\r\u{1B}[6A"))
    }
}

final class RedrawPaceTests: XCTestCase {
    func testAChangeAfterARestIsShownAtOnceAndTheNextAfterTheShortestPause() {
        var pace = RedrawPace()
        XCTAssertEqual(pace.drew(at: 10), 1)
        XCTAssertEqual(pace.changed(at: 10.5), 0)
        XCTAssertNil(pace.changed(at: 10.5))
        XCTAssertTrue(pace.rang(at: 10.5))
        XCTAssertEqual(pace.drew(at: 10.5), 1)
        XCTAssertEqual(pace.changed(at: 10.5) ?? 0, RedrawPace.shortest, accuracy: 1e-9)
    }

    func testClocksThatAnEarlierFrameMadeSuperfluousDoNothing() {
        var pace = RedrawPace()
        _ = pace.drew(at: 10)
        _ = pace.changed(at: 10.5)
        _ = pace.drew(at: 10.5)
        XCTAssertFalse(pace.rang(at: 11))
        XCTAssertTrue(pace.rang(at: 11.5))
    }

    func testAFloodGivesNoMoreFramesThanThePaceAllows() {
        var pace = RedrawPace()
        var frames = 0
        var clocks: [Double] = []
        for step in 0..<10_000 {
            let now = Double(step) / 1000
            if let delay = pace.changed(at: now) { clocks.append(now + delay) }
            clocks.sort()
            for _ in clocks where (clocks.first ?? .infinity) <= now {
                clocks.removeFirst()
                guard pace.rang(at: now) else { continue }
                frames += 1
                if let delay = pace.drew(at: now) { clocks.append(now + delay) }
                clocks.sort()
            }
        }
        XCTAssertGreaterThan(frames, 50)
        XCTAssertLessThanOrEqual(frames, 68)
    }
}

final class ColumnLayoutTests: XCTestCase {
    private let columns = [
        ColumnLayout.Column(id: 1, importance: 0, least: 5, wanted: 12),
        ColumnLayout.Column(id: 2, importance: 2, least: 6, wanted: 20),
        ColumnLayout.Column(id: 3, importance: 1, least: 4, wanted: 4),
    ]

    func testColumnsComeInByImportance() {
        XCTAssertEqual(ColumnLayout(columns, width: 3).widths, [1: 3])
        XCTAssertEqual(ColumnLayout(columns, width: 5).widths, [1: 5])
        XCTAssertEqual(ColumnLayout(columns, width: 11).widths, [1: 5, 3: 4])
        XCTAssertEqual(ColumnLayout(columns, width: 19).widths, [1: 5, 2: 6, 3: 4])
    }

    func testTheRestGoesToTheMostImportantColumnsFirst() {
        XCTAssertEqual(ColumnLayout(columns, width: 23).widths, [1: 9, 2: 6, 3: 4])
        XCTAssertEqual(ColumnLayout(columns, width: 200).widths, [1: 12, 2: 20, 3: 4])
    }
}

final class TerminalTests: XCTestCase {
    func testTheEnvironmentDecidesOnColoursAndGlyphs() {
        func terminal(_ environment: [String: String], isTerminal: Bool = true) -> Terminal {
            Terminal(isTerminal: isTerminal, environment: environment)
        }
        XCTAssertTrue(terminal([:]).isColoured)
        XCTAssertFalse(terminal(["NO_COLOR": "1"]).isColoured)
        XCTAssertTrue(terminal(["NO_COLOR": ""]).isColoured)
        XCTAssertFalse(terminal(["TERM": "dumb"]).canRedraw)
        XCTAssertFalse(terminal([:], isTerminal: false).canRedraw)
        XCTAssertEqual(terminal([:]).glyphs, .unicode)
        XCTAssertEqual(terminal(["LANG": "de_DE.UTF-8"]).glyphs, .unicode)
        XCTAssertEqual(terminal(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]).glyphs, .ascii)
    }
}
