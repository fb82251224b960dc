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
