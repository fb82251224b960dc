import BlueCapKit
import XCTest

@testable import bluecap

final class ValueFormTests: XCTestCase {
    private static func profile(_ service: String, _ uuid: String) -> CharacteristicProfile? {
        ProfileManager.ready.service(CBUUID(string: service))?.characteristic(CBUUID(string: uuid))
    }

    private let battery = profile("180F", "2A19")
    private let location = profile("180D", "2A38")
    private let rate = profile("180D", "2A37")

    private func value(_ bytes: [UInt8], _ profile: CharacteristicProfile? = nil) -> AttributeValue {
        AttributeValue(Data(bytes), profile: profile)
    }

    // MARK: Printing

    func testAValueOfOnePartIsThatPart() {
        XCTAssertEqual(ValueForm.auto.text(of: value([100], battery)), "100 %")
        XCTAssertEqual(ValueForm.profile.text(of: value([1], location)), "Chest")
    }

    func testAValueOfSeveralPartsNamesThem() throws {
        let text = try XCTUnwrap(ValueForm.auto.text(of: value([0x06, 72], rate)))
        XCTAssertTrue(text.contains("Heart Rate: 72 bpm"), text)
        XCTAssertTrue(text.contains(", "), text)
    }

    func testWhatNoProfileUnderstandsIsTextWhereItReadsAsText() {
        XCTAssertEqual(ValueForm.auto.text(of: value(Array("CC2650".utf8))), "\"CC2650\"")
        XCTAssertEqual(ValueForm.auto.text(of: value(Array("CC2650\0\0".utf8))), "\"CC2650\"")
        XCTAssertEqual(ValueForm.auto.text(of: value([0x64])), "64")
        XCTAssertEqual(ValueForm.auto.text(of: value(Array("abc\u{1B}[2J".utf8))), "6162631b5b324a")
        XCTAssertEqual(ValueForm.auto.text(of: value([0xFF, 0xFE, 0x41, 0x42])), "fffe4142")
        XCTAssertEqual(ValueForm.auto.text(of: value([])), "")
    }

    func testAValueThatItsProfileRefusesIsPrintedInHexadecimal() {
        XCTAssertEqual(ValueForm.auto.text(of: value([1, 2, 3], battery)), "010203")
        XCTAssertNil(ValueForm.profile.text(of: value([1, 2, 3], battery)))
    }

    func testZerosThatFillUpAValueAreNotShownInAnyForm() {
        let padded = Array("Model 7".utf8) + [0, 0, 0]
        let model = ProfileManager.ready.service(CBUUID(string: "180A"))?.characteristic(CBUUID(string: "2A24"))
        XCTAssertEqual(ValueForm.auto.text(of: value(padded, model)), "Model 7")
        XCTAssertEqual(ValueForm.profile.text(of: value(padded, model)), "Model 7")
        XCTAssertEqual(ValueForm.text.text(of: value(padded, model)), "Model 7")
        XCTAssertEqual(ValueForm.auto.text(of: value(padded)), "\"Model 7\"")
        // A zero within the text is shown.
        XCTAssertEqual(ValueForm.text.text(of: value([0x61, 0, 0x62, 0])), "a\\u{0}b")
    }

    func testTextIsMadeSafe() {
        XCTAssertEqual(ValueForm.text.text(of: value(Array("a\u{1B}b".utf8))), "a\\u{1B}b")
        XCTAssertNil(ValueForm.text.text(of: value([0xFF])))
    }

    // MARK: Numbers

    func testNumbersArePrintedInDecimalDigits() {
        let rows: [(ValueForm, [UInt8], String?)] = [
            (.u8, [255], "255"), (.i8, [255], "-1"), (.u16, [1, 2], "513"), (.u16be, [1, 2], "258"),
            (.u24, [0xFF, 0xFF, 0xFF], "16777215"), (.i24, [0xFE, 0xFF, 0xFF], "-2"),
            (.i24be, [0x80, 0, 0], "-8388608"),
            (.i32, [0, 0, 0, 0x80], "-2147483648"), (.u64, [UInt8](repeating: 255, count: 8), "18446744073709551615"),
            (.i64be, [0x80, 0, 0, 0, 0, 0, 0, 0], "-9223372036854775808"), (.f32, [0xCD, 0xCC, 0xCC, 0x3D], "0.1"),
            (.f64be, [0x3F, 0xF8, 0, 0, 0, 0, 0, 0], "1.5"), (.i16, [1, 0, 0xFF, 0xFF], "1 -1"), (.u16, [1], nil),
            (.u8, [], nil), (.base64, [1, 0xA0], "AaA="),
        ]
        for (form, bytes, text) in rows { XCTAssertEqual(form.text(of: value(bytes)), text, "\(form) \(bytes)") }
        XCTAssertEqual(ValueForm.u16.line(of: value([0x10])), "0x10", "digits alone would be a number")
    }

    func testEachFormIsTakenByItsName() {
        for form in ValueForm.allCases { XCTAssertEqual(ValueForm(argument: form.rawValue), form) }
        XCTAssertEqual(ValueForm(argument: "u16le"), .u16)
        XCTAssertEqual(ValueForm(argument: "utf8"), .text)
        for name in ["u12", "f16", "hexle", "u16LE", "U8", "", "u16bele"] {
            XCTAssertNil(ValueForm(argument: name), name)
        }
    }

    func testNumbersAreWrittenAsTheyArePrinted() {
        let rows: [(ValueForm, String, [UInt8])] = [
            (.u8, "255", [255]), (.u8, "0xFf", [255]), (.i8, "-128", [128]), (.i8, "-0x80", [128]),
            (.u16, "300", [0x2C, 1]),
            (.u16be, "300", [1, 0x2C]), (.u24, "1", [1, 0, 0]), (.i24be, "-2", [0xFF, 0xFF, 0xFE]), (.u8, "", []),
            (.u64, "18446744073709551615", [UInt8](repeating: 255, count: 8)), (.f32, "-1.5", [0, 0, 0xC0, 0xBF]),
            (.f64, "1e0", [0, 0, 0, 0, 0, 0, 0xF0, 0x3F]), (.i16, "1, -1 0", [1, 0, 0xFF, 0xFF, 0, 0]),
            (.base64, "AaA=", [1, 0xA0]),
        ]
        for (form, text, bytes) in rows { XCTAssertEqual(self.bytes(text, form), bytes, "\(form) \(text)") }
    }

    func testANumberThatDoesNotFitSaysWhatDoes() {
        let rows: [(ValueForm, String, String)] = [
            (.u8, "300", "300 is not a u8: it takes 0 to 255."), (.u8, "-1", "it takes 0 to 255."),
            (.i8, "128", "128 is not an i8: it takes -128 to 127."), (.u8, "1 256 2", "256 is not a u8"),
            (.u64, "18446744073709551616", "it takes 0 to 18446744073709551615."), (.u16, "ab", "it takes 0 to 65535."),
            (.i64, "--1", "it takes -9223372036854775808 to"), (.u8, "0x", "0x is"), (.u8, "+1", "+1 is"),
            (.u8, " ", "is not a u8"),
            (.u8, "1.5", "1.5 is"), (.u8, "\u{0661}", "is not a u8"),
            (.f32, "1e39", "1e39 is not an f32: it takes a number"),
            (.f64, "nan", "nan is not an f64"), (.f64, "0x1p3", "0x1p3 is"), (.base64, "A", "\"A\" is not base64"),
        ]
        for (form, text, part) in rows {
            XCTAssertThrowsError(try form.data(of: text, profile: nil), "\(form) \(text)") { error in
                XCTAssertTrue("\(error)".contains(part), "\(error)")
            }
        }
    }

    // MARK: Reading

    private func bytes(_ text: String, _ form: ValueForm = .auto, _ profile: CharacteristicProfile? = nil) -> [UInt8]? {
        (try? form.data(of: text, profile: profile)).map { Array($0) }
    }

    func testDigitsAreTakenAsPeopleWriteThem() {
        for text in ["01a0ff", "0x01A0FF", "01 A0 FF", "01:a0:ff", "01-a0-ff", "01, a0, ff"] {
            XCTAssertEqual(bytes(text), [1, 0xA0, 0xFF], text)
        }
        XCTAssertEqual(bytes(""), [])
    }

    func testWhatHasNoDigitsIsNotAnEmptyValue() {
        for text in ["-", "0x", "0X", " ", ":", "--", "0x-"] {
            XCTAssertNil(bytes(text), text)
            XCTAssertNil(bytes(text, .hex), text)
        }
    }

    func testAHyphenIsRefusedInEachForm() {
        for form in ValueForm.allCases {
            XCTAssertThrowsError(try form.data(of: "-", profile: location), "\(form)") { error in
                XCTAssertTrue("\(error)".contains("standard input"), "\(error)")
            }
        }
        XCTAssertEqual(bytes("--", .text), Array("--".utf8))
    }

    func testWhatIsNoDigitsIsRefusedAndNeverGuessed() {
        for text in ["1", "0x1", "01a", "hello", "+1", "-1", "01 a 0", "Chest", "\u{0661}\u{0662}"] {
            XCTAssertNil(bytes(text), text)
            XCTAssertNil(bytes(text, .hex), text)
        }
    }

    func testTextIsTakenAsItIs() {
        XCTAssertEqual(bytes("01a0", .text), Array("01a0".utf8))
    }

    func testAProfileTakesWhatItShows() throws {
        XCTAssertEqual(bytes("Chest", .profile, location), [1])
        XCTAssertEqual(bytes("chest", .profile, location), [1])
        XCTAssertEqual(bytes("55 %", .profile, battery), [55])
        let data = Data([0x00, 72])
        let parts = try XCTUnwrap(rate?.stringValue(data)).map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
        XCTAssertEqual(try ValueForm.profile.data(of: parts, profile: rate), data)
    }

    func testARefusalSaysWhatWouldBeTaken() {
        XCTAssertThrowsError(try ValueForm.profile.data(of: "Elbow", profile: location)) { error in
            XCTAssertTrue("\(error)".contains("Chest, Wrist"), "\(error)")
        }
        XCTAssertThrowsError(try ValueForm.profile.data(of: "1", profile: nil)) { error in
            XCTAssertTrue("\(error)".contains("hexadecimal"), "\(error)")
        }
    }
}
