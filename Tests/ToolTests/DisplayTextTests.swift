import XCTest

@testable import bluecap

final class DisplayTextTests: XCTestCase {
    func testWidthCountsCellsNotCharacters() {
        let widths: [(String, Int)] = [
            ("", 0), ("abc", 3), ("naïve", 5), ("e\u{301}", 1), ("日本", 4), ("한글", 4), ("😀", 2), ("👩‍👩‍👧", 2), ("🇫🇷", 2),
            ("☀", 1), ("☀️", 2), ("21.5°", 5), ("…", 1), ("█", 1), ("ｱ", 1), ("Ａ", 2),
        ]
        for (text, width) in widths {
            XCTAssertEqual(DisplayText.width(text), width, text)
        }
    }

    func testCuttingNeverSplitsACharacterNorExceedsTheRoom() {
        XCTAssertEqual(DisplayText.cut("Heart Rate", to: 10), "Heart Rate")
        XCTAssertEqual(DisplayText.cut("Heart Rate", to: 8), "Heart R…")
        XCTAssertEqual(DisplayText.cut("Heart Rate", to: 7), "Heart…")
        XCTAssertEqual(DisplayText.cut("日本語", to: 4), "日…")
        XCTAssertEqual(DisplayText.cut("日本語", to: 1), "…")
        XCTAssertEqual(DisplayText.cut("日本語", to: 0), "")
        for cells in 0...12 {
            XCTAssertLessThanOrEqual(DisplayText.width(DisplayText.cut("a日b😀c👩‍👩‍👧d", to: cells)), cells)
        }
    }

    func testPaddingFillsUpToTheWidthOnTheSideAskedFor() {
        XCTAssertEqual(DisplayText.padded("日", to: 4), "日  ")
        XCTAssertEqual(DisplayText.padded("-5", to: 4, alignment: .trailing), "  -5")
        XCTAssertEqual(DisplayText.padded("long", to: 2), "long")
    }

    func testUnsafeScalarsAreReplacedAndEmojiAreKept() {
        XCTAssertEqual(DisplayText.safe("a\u{1B}b\u{202E}c\u{7F}"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}")
        XCTAssertEqual(DisplayText.safe("👩‍👩‍👧 Küche 温度"), "👩‍👩‍👧 Küche 温度")
    }
}
