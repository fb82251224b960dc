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

    func testUnsafeScalarsAreWrittenAsEscapesAndEmojiAreKept() {
        XCTAssertEqual(DisplayText.safe("a\u{1B}b\u{202E}c\u{7F}"), "a\\u{1B}b\\u{202E}c\\u{7F}")
        XCTAssertEqual(DisplayText.safe("👩‍👩‍👧 Küche 温度"), "👩‍👩‍👧 Küche 温度")
    }

    func testDirectionOverridesAndIsolatesAreWrittenAsEscapes() {
        for value in Array(0x202A...0x202E) + Array(0x2066...0x2069) + [0x200E, 0x200F, 0x061C] {
            guard let scalar = Unicode.Scalar(UInt32(value)) else { continue }
            let digits = String(value, radix: 16, uppercase: true)
            XCTAssertEqual(DisplayText.safe("a\(scalar)b"), "a\\u{\(digits)}b")
        }
    }

    func testTagsAreKeptInTheFlagsOfRegionsAlone() {
        let scotland = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}"
        XCTAssertEqual(DisplayText.safe("flag \(scotland)!"), "flag \(scotland)!")
        XCTAssertEqual(DisplayText.safe("Tag\u{E0041}\u{E0042}"), "Tag\\u{E0041}\\u{E0042}")
        XCTAssertEqual(DisplayText.safe("\u{1F600}\u{E0068}\u{E0069}"), "\u{1F600}\\u{E0068}\\u{E0069}")
        let endless = "\u{1F3F4}" + String(repeating: "\u{E0067}", count: 40) + "\u{E007F}"
        XCTAssertFalse(DisplayText.safe(endless).unicodeScalars.contains { (0xE0000...0xE007F).contains($0.value) })
        XCTAssertTrue(DisplayText.safe("\u{1F3F4}\u{E0067}\u{E0062}").hasSuffix("\\u{E0067}\\u{E0062}"), "no last tag")
    }

    func testACharacterKeepsAtMostEightCombiningMarks() {
        let marks = String(repeating: "\u{0301}", count: 200)
        XCTAssertEqual(DisplayText.safe("a\(marks)b"), "a" + String(repeating: "\u{0301}", count: 8) + "b")
        for word in ["Z\u{0308}u\u{0308}rich", "กำแพงที่", "हिन्दी", "👨‍👩‍👧‍👦", "1️⃣"] { XCTAssertEqual(DisplayText.safe(word), word) }
    }

    func testNamesAreCutToTheLengthThatNamesHave() {
        let longest = String(repeating: "n", count: 248)
        XCTAssertEqual(DisplayText.name(longest), longest)
        XCTAssertEqual(DisplayText.name(longest + "n"), longest + "…")
        XCTAssertEqual(DisplayText.name(String(repeating: "é", count: 200)), String(repeating: "é", count: 124) + "…")
        XCTAssertEqual(DisplayText.name(String(repeating: "日", count: 83)), String(repeating: "日", count: 82) + "…")
        let one = "e" + String(repeating: "\u{0301}", count: 100_000)
        XCTAssertEqual(DisplayText.name(one), "e" + String(repeating: "\u{0301}", count: 8) + "…")
    }

    func testJSONIsTheTextExactlyWhateverIsEscaped() throws {
        let marks = String(repeating: "\u{0301}", count: 20)
        let text = "a\u{202E}b\u{E0041}\(marks)\"\\\u{1F600}" + String(repeating: "n", count: 300)
        let quoted = JSON.quoted(text)
        XCTAssertFalse(quoted.unicodeScalars.contains(where: DisplayText.isUnsafe))
        XCTAssertEqual(quoted.unicodeScalars.count { $0 == "\u{0301}" }, 8)
        let decoded = try JSONSerialization.jsonObject(with: Data("[\(quoted)]".utf8)) as? [String]
        XCTAssertEqual(decoded?.first.map { Array($0.unicodeScalars) }, Array(text.unicodeScalars))
    }
}
