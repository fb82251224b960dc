import XCTest

@testable import BlueCapDBus

/// What a receiver must refuse, and what it must accept (D-Bus specification, "Message Protocol").
final class MessageParserTests: XCTestCase {
    private func assertValid(
        _ message: RawMessage, _ description: String? = nil, file: StaticString = #filePath, line: UInt = #line
    ) {
        do {
            let read = try XCTUnwrap(try parsed(message.bytes), file: file, line: line)
            var reader = read.reader
            if let description { XCTAssertEqual(reader.describeAll(), description, file: file, line: line) }
        } catch {
            XCTFail("\(error)", file: file, line: line)
        }
    }

    private func assertRefused(
        _ bytes: [UInt8], _ reason: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertThrowsError(try parsed(bytes), file: file, line: line) { error in
            XCTAssertTrue("\(error)".contains(reason), "\(error)", file: file, line: line)
        }
    }

    private func assertRefused(
        _ message: RawMessage, _ reason: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        assertRefused(message.bytes, reason, file: file, line: line)
    }

    private func assertRefused(
        _ signature: String, _ reason: String, file: StaticString = #filePath, line: UInt = #line,
        _ body: (inout RawWriter) -> Void
    ) {
        for isBig in [false, true] {
            assertRefused(RawMessage(signature, isBig: isBig, body: body), reason, file: file, line: line)
        }
    }

    // MARK: The fixed part of the header

    func testAMessageInEitherByteOrderIsRead() throws {
        for isBig in [false, true] {
            var message = RawMessage("ynixdbaqavasay(yt)h", isBig: isBig) {
                $0.number(UInt8(1))
                $0.number(Int16(-2))
                $0.number(Int32(-3))
                $0.number(Int64(-4))
                $0.number((1.5).bitPattern)
                $0.number(UInt32(1))
                $0.array(alignment: 2) { for number in UInt16(5)...7 { $0.number(number) } }
                $0.array(alignment: 1) {
                    $0.signature("u")
                    $0.number(UInt32(8))
                }
                $0.array(alignment: 4) { $0.text("nine") }
                $0.array(alignment: 1) { $0.bytes += [1, 2, 3] }
                $0.align(8)
                $0.number(UInt8(10))
                $0.number(UInt64(11))
                $0.number(UInt32(0))
            }
            message.fields += [RawMessage.number(5, 77), RawMessage.text(6, "org.x"), RawMessage.text(7, ":1.2")]
            message.serial = 0x0102_0304
            message.flags = 0xFF
            let read = try XCTUnwrap(try parsed(message.bytes))
            XCTAssertEqual(read.serial, 0x0102_0304)
            XCTAssertEqual(read.replySerial, 77)
            XCTAssertTrue(read.expectsNoReply)
            XCTAssertEqual(
                [read.path?.rawValue, read.interface, read.member, read.destination, read.sender],
                ["/a", "a.b", "C", "org.x", ":1.2"])
            var reader = read.reader
            XCTAssertEqual(
                reader.describeAll(), "1, -2, -3, -4, 1.5, true, [5, 6, 7], [<8>], [\"nine\"], 0x010203, (10, 11), ?")
        }
    }

    func testTheFixedPartOfTheHeaderIsChecked() {
        var bytes = RawMessage().bytes
        bytes[0] = UInt8(ascii: "x")
        assertRefused(bytes, "not a byte order")
        var message = RawMessage()
        message.type = 0
        assertRefused(message, "type is 0")
        message = RawMessage()
        message.version = 2
        assertRefused(message, "version")
        message = RawMessage()
        message.serial = 0
        assertRefused(message, "serial is 0")
    }

    func testAMessageOfAnUnknownTypeIsAcceptedWithoutFields() throws {
        var message = RawMessage()
        message.type = 200
        message.fields = []
        XCTAssertEqual(try parsed(message.bytes)?.kind, .unknown)
    }

    func testLengthsHaveTheirMaximum() {
        func header(body: UInt32, fields: UInt32) -> [UInt8] {
            var writer = RawWriter(bytes: [UInt8(ascii: "l"), 4, 0, 1])
            for number in [body, 1, fields] { writer.number(number) }
            return writer.bytes
        }
        XCTAssertNil(try parsed(header(body: (1 << 27) - 16, fields: 0)))
        XCTAssertNil(try parsed(header(body: 0, fields: 1 << 26)))
        assertRefused(header(body: (1 << 27) - 15, fields: 0), "128 MiB")
        assertRefused(header(body: .max, fields: .max), "128 MiB")
        assertRefused(header(body: 0, fields: (1 << 26) + 1), "64 MiB")
    }

    func testEveryShorterPartOfAMessageIsIncompleteAndEveryOtherLengthIsRefused() {
        let bytes = RawMessage("sv") {
            $0.text("text")
            $0.signature("(yu)")
            $0.align(8)
            $0.number(UInt8(1))
            $0.number(UInt32(2))
        }.bytes
        for count in 0..<bytes.count { XCTAssertNil(try parsed(Array(bytes.prefix(count)))) }
        // A body that ends at any other place.
        for missing in 1...Int(bytes[4]) {
            var shorter = Array(bytes.dropLast(missing))
            shorter[4] -= UInt8(missing)
            XCTAssertThrowsError(try parsed(shorter))
        }
        var longer = bytes + [0]
        longer[4] += 1
        assertRefused(longer, "longer than its signature")
        // The fields of the header end at another place.
        for difference in [-7, -1, 1, 7] {
            var other = bytes
            other[12] = UInt8(Int(other[12]) + difference)
            XCTAssertNil((try? parsed(other)) ?? nil)
        }
    }

    // MARK: Header fields

    func testRequiredFieldsAreRequired() {
        for (type, required) in [(1, [1, 3]), (2, [5]), (3, [4, 5]), (4, [1, 2, 3])] as [(UInt8, [UInt8])] {
            var message = RawMessage()
            message.type = type
            message.fields += [RawMessage.text(4, "a.E"), RawMessage.number(5, 1)]
            assertValid(message)
            for code in required { assertRefused(message.with(nil, for: code), "lacks a header field") }
        }
    }

    func testFieldsHaveTheirTypeAndAppearOnce() {
        let number = RawMessage.number(0, 1)
        for code in UInt8(1)...10 where code != 5 && code != 9 {
            var field = number
            field.code = code
            assertRefused(RawMessage().with(field, for: code), "another type")
        }
        for code in [5, 9] as [UInt8] {
            assertRefused(RawMessage().with(RawMessage.text(code, "x"), for: code), "another type")
        }
        var twice = RawMessage()
        twice.fields.append(RawMessage.text(3, "C"))
        assertRefused(twice, "twice")
        assertRefused(RawMessage().with(RawMessage.number(0, 1), for: 0), "code 0")
        assertRefused(RawMessage().with(RawMessage.number(5, 0), for: 5), "serial of its call is 0")
        assertRefused(RawMessage().with(RawMessage.number(9, 1), for: 9), "have not arrived")
    }

    func testUnknownFieldsAreValidatedAndIgnored() {
        let unknown = RawMessage.Field(code: 77, type: "a{sv}") { writer in
            writer.array(alignment: 8) {
                $0.text("key")
                $0.signature("b")
                $0.number(UInt32(1))
            }
        }
        assertValid(RawMessage().with(unknown, for: 77))
        assertRefused(
            RawMessage().with(RawMessage.Field(code: 77, type: "b") { $0.number(UInt32(2)) }, for: 77), "boolean")
        assertRefused(RawMessage().with(RawMessage.Field(code: 77, type: "") { _ in }, for: 77), "variant")
    }

    func testNamesAreChecked() {
        let long = String(repeating: "a", count: 255)
        let names: [(UInt8, String, [String], [String])] = [
            (1, "o", ["/", "/a/b_9/C"], ["", "a", "//", "/a/", "/a//b", "/a-b", "/é"]),
            (2, "s", ["a.b", "_._", "a.b.c9"], ["", "a", ".a", "a.", "a..b", "9a.b", "a.9b", "a.b-c", long + ".b"]),
            (3, "s", ["C", "_9", long], ["", "9C", "a.b", "a-b", long + "a"]),
            (4, "s", ["a.E"], ["E", "a.9", ""]),
            (
                6, "s", ["a.b", "a-b.c", ":1.2", ":a-9", ":", ":.1"],
                ["", "a", "9.a", "a.9", ":1.", ":.", ":..1", ":1..2", "a.é"]
            ),
            (7, "s", [":1.2", "org.freedesktop.DBus"], ["x", ""]),
        ]
        for (code, type, valid, invalid) in names {
            for name in valid { assertValid(RawMessage().with(RawMessage.text(code, name, type: type), for: code)) }
            for name in invalid {
                XCTAssertThrowsError(
                    try parsed(RawMessage().with(RawMessage.text(code, name, type: type), for: code).bytes), name)
            }
        }
    }

    func testNamesThatAreReservedForTheProcessAreRefused() {
        assertRefused(
            RawMessage().with(RawMessage.text(1, "/org/freedesktop/DBus/Local", type: "o"), for: 1), "reserved")
        assertRefused(RawMessage().with(RawMessage.text(2, "org.freedesktop.DBus.Local"), for: 2), "reserved")
    }

    // MARK: Values

    func testBooleansAreZeroOrOne() {
        assertRefused("b", "boolean") { $0.number(UInt32(2)) }
        assertRefused("ab", "boolean") { $0.array(alignment: 4) { $0.number(UInt32(256)) } }
    }

    func testPaddingIsZero() {
        assertRefused("yu", "padding") {
            $0.bytes += [1, 0, 1, 0]
            $0.number(UInt32(0))
        }
        // Before the elements of an array, also if there is none.
        assertRefused("at", "padding") { $0.bytes += [0, 0, 0, 0, 0, 0, 0, 9] }
        // Behind the header.
        var bytes = RawMessage().bytes
        XCTAssertEqual(bytes.count % 8, 0)
        bytes[bytes.count - 1] = 1
        assertRefused(bytes, "padding")
    }

    func testStringsAreStrictUTF8WithAZeroAfterThem() {
        for text in ["", "a", "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}", "seven, eight bytes and more é"]
        {
            assertValid(RawMessage("s") { $0.text(text) }, "\"\(text)\"")
        }
        let wrong: [[UInt8]] = [
            [0], [0x41, 0, 0x41], [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x41], [0xE0, 0x9F, 0x80],
            [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0x98], [0xFF], [0xFE],
        ]
        for bytes in wrong {
            for before in [0, 3, 8, 13] {
                let text = Array(repeating: UInt8(ascii: "a"), count: before) + bytes
                assertRefused("s", "UTF-8") { $0.text(text) }
                assertRefused("s", "UTF-8") { $0.text(text + Array(repeating: UInt8(ascii: "a"), count: 9)) }
            }
        }
        assertRefused("s", "without a zero byte") {
            $0.number(UInt32(1))
            $0.bytes += [65, 65]
        }
        assertRefused("s", "ends inside") {
            $0.number(UInt32.max)
            $0.bytes += [65, 0]
        }
        assertRefused("g", "signature") { $0.signature("a") }
        assertRefused("o", "object path") { $0.text("a") }
    }

    func testArraysHaveWholeElementsAndAMaximum() {
        assertRefused("au", "ends inside an element") {
            $0.number(UInt32(6))
            $0.bytes += [0, 0, 0, 0, 0, 0, 0, 0]
        }
        assertRefused("as", "ends inside an element") {
            $0.number(UInt32(5))
            $0.text("abc")
        }
        assertRefused("ay", "longer than the message") { $0.number(UInt32(1)) }
        assertRefused("ay", "64 MiB") { writer in
            writer.array(alignment: 1) { $0.bytes += Array(repeating: 0, count: (1 << 26) + 1) }
        }
        assertValid(RawMessage("aya(s)a{sv}at") { for _ in 0..<6 { $0.number(UInt32(0)) } }, "0x, [], {}, []")
    }

    func testSignaturesAreWellFormed() {
        let deep = String(repeating: "(", count: 32) + "y" + String(repeating: ")", count: 32)
        let arrays = String(repeating: "a", count: 32)
        let valid = [
            "", "y", "a{sv}", "(y(y))", "aa{y(ss)}", "ya{oa{sa{sv}}}", deep, arrays + "y", arrays + "(" + arrays + "y)",
        ]
        let invalid = [
            "a", "(", ")", "()", "(y", "y)", "{sv}", "a{s}", "a{svv}", "a{vs}", "a{(y)s}", "a{sv", "a{s(v})", "r", "e",
            "z", "(a)", "a{sa}", "(" + deep + ")", arrays + "ay", String(repeating: "y", count: 256), "y\0y",
        ]
        for text in valid {
            XCTAssertTrue(isValid(text, Syntax.isSignature), text)
        }
        for text in invalid {
            XCTAssertFalse(isValid(text, Syntax.isSignature), text)
        }
        for text in ["", "yy", "a", "s\0"] { XCTAssertFalse(isValid(text, Syntax.isSingleType), text) }
        assertRefused("v", "variant") { $0.signature("") }
        assertRefused("v", "variant") {
            $0.signature("yy")
            $0.bytes += [1, 1]
        }
        assertRefused("v", "variant") { $0.signature("a") }
        assertRefused("", "longer than its signature") { $0.number(UInt32(0)) }
        assertRefused("u", "ends inside") { _ in }
    }

    func testContainersNestToADepthOf64WithVariants() {
        func variants(_ count: Int, _ writer: inout RawWriter) {
            for _ in 0..<count { writer.signature("v") }
            writer.signature("y")
            writer.number(UInt8(7))
        }
        assertValid(RawMessage("v") { variants(63, &$0) })
        assertRefused("v", "nested") { variants(64, &$0) }
        assertRefused("v", "nested") { variants(100_000, &$0) }
    }
}
