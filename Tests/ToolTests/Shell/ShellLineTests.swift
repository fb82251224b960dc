import Foundation
import XCTest

@testable import bluecap

final class ShellWordsTests: XCTestCase {
    private func words(_ line: String) -> [String] { ShellWords(line).words.map(\.text) }

    func testQuotationMarksEncloseWordsAndCommentsAreLeftOut() {
        XCTAssertEqual(words(#"  read "Battery Level"   @002b "#), ["read", "Battery Level", "@002b"])
        XCTAssertEqual(
            words(#"echo 'a "b"' "c \"d\" \\" e'f g'h "" # all"#), ["echo", #"a "b""#, #"c "d" \"#, "ef gh", ""])
        XCTAssertEqual(words("read 2A19 # the battery"), ["read", "2A19"])
        XCTAssertEqual(words("echo a#b"), ["echo", "a#b"])
        XCTAssertEqual(words("# all"), [])
        XCTAssertTrue(ShellWords(#"read "Battery"#).isOpen)
        XCTAssertEqual(ShellWords(#"read "Batt"#).words.last, .init(text: "Batt", start: 5, isQuoted: true))
    }

    func testAQuotedTextIsOneWordAgain() {
        for text in ["Battery", "Battery Level", #"5" "#, #"a\b"#, "it's", "#1", ""] {
            XCTAssertEqual(words("x " + ShellWords.quoted(text)), ["x", text])
        }
    }

    private func statement(_ line: String) throws -> ShellStatement? {
        try ShellStatement(line, for: XCTUnwrap(PeripheralArgument(argument: "Strap")), isJSON: true)
    }

    func testALineThatIsNoCommandIsRefusedWithWhatItTakes() {
        for (line, part) in [
            ("raed 2A19", "\"raed\" is not a command: `help`"), ("read", "Missing expected argument"),
            ("read 2A19 --as foo", "- auto"), ("notify 2A37 --count 0", "from 1 to"),
            ("sleep x", "sleep does not take \"x\""), ("write 2A39", "<value>"), ("read \"2A19", "quotation mark"),
            ("read @zz", "'@zz' is invalid"), ("quit now", "now"), ("read 2A19 &", "Only notify"),
            ("read 2A19 --pair=ask", "of the whole shell"), ("write 2A39 -", "write the value"), ("stop @zz", "@zz"),
            ("monitor 2A37", "\"monitor\" is not a command"),
        ] {
            XCTAssertThrowsError(try statement(line)) { error in
                XCTAssertEqual((error as? ToolFailure)?.status, 64)
                XCTAssertTrue("\(error)".contains(part), "\(error)")
            }
        }
        for line in [
            "tree", "read 2A19 2A38 --as hex", "write AA01 'hello' --as text --without-response",
            "write AA01 -5 --as i8",
            "notify 2A37 --count 2 --duration 1.5 --csv", "notify 2A37 &", "stop", "stop 2A37", "help", "help read",
            "echo --x -y", "echo '&'", "sleep 0.1", "read --help",
        ] {
            XCTAssertNoThrow(XCTAssertNotNil(try statement(line)), line)
        }
        XCTAssertNoThrow(XCTAssertNil(try statement("  # nothing")))
    }
}

final class ShellLineTests: XCTestCase {
    private func type(_ text: String, _ line: inout ShellLine) {
        for character in text { line.press(.character(character)) }
    }

    func testTheArrowsBringBackTheLinesThatBeginAsTheTypedOne() {
        var line = ShellLine(history: ["read 2A19", "tree", "read 2A38"])
        type("re", &line)
        line.press(.up)
        XCTAssertEqual(line.editor.text, "read 2A38")
        line.press(.up)
        line.press(.up)
        XCTAssertEqual(line.editor.text, "read 2A19")
        line.press(.down)
        line.press(.down)
        XCTAssertEqual(line.editor.text, "re")
        line.press(.clear)
        line.press(.up)
        line.press(.up)
        XCTAssertEqual(line.take(), "tree")
        XCTAssertEqual(line.history.last, "tree")
        XCTAssertEqual(line.editor.text, "")
    }

    func testTheHistoryHasNoRepetitionsAndNoSecrets() {
        var history = ShellHistory()
        for line in ["tree", "tree", " write AA01 73", "", "info"] { history.add(line) }
        XCTAssertEqual(history.lines, ["tree", "info"])
        for number in 0..<600 { history.add("read @\(number)") }
        XCTAssertEqual(history.lines.count, 500)
        XCTAssertEqual(history.lines.last, "read @599")
    }

    /// Types, presses Tab, and returns the line and the candidates.
    private func completed(_ text: String) -> (String, [String]) {
        var line = ShellLine()
        type(text, &line)
        let found = line.complete { ShellStatement.candidates(after: $0, in: TreeSamples.strap) }
        return (line.editor.text, found)
    }

    func testTabCompletesCommandsAndTheCharacteristicsThatTheyCanUse() {
        XCTAssertEqual(completed("rea").0, "read ")
        XCTAssertEqual(completed("s").1, ["stop", "sleep"])
        XCTAssertEqual(completed("read bo").0, "read \"Body Sensor Location\" ")
        XCTAssertEqual(completed("read \"Body S").0, "read \"Body Sensor Location\" ")
        XCTAssertEqual(completed("notify h").0, "notify \"Heart Rate Measurement\" ")
        XCTAssertEqual(completed("write hea").0, "write \"Heart Rate Control Point\" ")
        XCTAssertEqual(completed("write 2A39 ").0, "write 2A39 --")
        XCTAssertEqual(completed("write 2A39 --").1, ["--as", "--without-response", "--json", "--help"])
        XCTAssertEqual(completed("write 2A39 01 --w").0, "write 2A39 01 --without-response ")
        XCTAssertEqual(completed("read 2A38 --as he").0, "read 2A38 --as hex ")
        XCTAssertEqual(
            completed("notify 2A37 --").1,
            ["--count", "--duration", "--as", "--json", "--csv", "--format", "--output", "--rotate", "--help"])
        XCTAssertEqual(completed("help re").0, "help read ")
        XCTAssertEqual(completed("info x").0, "info x")
        // Two of one name, in one service.
        XCTAssertEqual(completed("read @004").1, ["@0041", "@0044"])
    }

    func testOnlyWhatAllCandidatesHaveIsInserted() {
        var line = ShellLine()
        type("read hea", &line)
        let names = ["Heart Rate", "Heart Rate Control"]
        XCTAssertEqual(line.complete { _ in names }, [])
        XCTAssertEqual(line.editor.text, "read \"Heart Rate")
        XCTAssertEqual(line.complete { _ in names }, names)
        // The rest of the line remains.
        line.press(.home)
        type("x ", &line)
        line.press(.left)
        XCTAssertEqual(line.complete { _ in ["xyz"] }, [])
        XCTAssertEqual(line.editor.text, "xyz  read \"Heart Rate")
    }
}

final class KeyDecoderTests: XCTestCase {
    func testKeysOfSeveralBytesCanArriveInParts() {
        var decoder = KeyDecoder()
        XCTAssertEqual(decoder.keys(Array("aé".utf8).dropLast()), [.character("a")])
        XCTAssertEqual(decoder.keys([0xA9, 0x1B]), [.character("é")])
        XCTAssertEqual(decoder.keys([0x5B]), [])
        XCTAssertEqual(decoder.keys(Array("A\u{1B}OD\u{1B}[3~".utf8)), [.up, .left, .delete])
        XCTAssertEqual(
            decoder.keys([1, 3, 4, 9, 13, 0x17, 0x7F]),
            [.home, .interrupt, .endOfInput, .tab, .enter, .deleteWord, .backspace])
        // A key without a use, bytes that are no text, and a character that would disturb the terminal.
        XCTAssertEqual(
            decoder.keys(Array("\u{1B}[15~\u{202E}".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0x62]), [.character("b")])
    }

    func testAWordOrTheRestOfTheLineIsRemoved() {
        var editor = LineEditor("read Battery  ")
        XCTAssertTrue(editor.press(.deleteWord))
        XCTAssertEqual(editor.text, "read ")
        XCTAssertTrue(editor.press(.home))
        XCTAssertTrue(editor.press(.right))
        XCTAssertTrue(editor.press(.deleteRest))
        XCTAssertEqual(editor.text, "r")
    }

    func testALineReaderCanTakeTheRestOfTheInput() throws {
        for takesRest in [false, true] {
            let pipe = Pipe()
            try pipe.fileHandleForWriting.write(contentsOf: Data("one\ntwo and more".utf8))
            try pipe.fileHandleForWriting.close()
            var reader = LineReader(
                descriptor: pipe.fileHandleForReading.fileDescriptor, longest: 64, takesRest: takesRest)
            XCTAssertEqual(reader.next(), "one")
            XCTAssertEqual(reader.next(), takesRest ? "two and more" : nil)
            XCTAssertNil(reader.next())
        }
    }
}
