import ArgumentParser
import BlueCapKit
import XCTest

@testable import bluecap

final class ValueLinesTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)
    private let value = AttributeValue(
        Data([100]),
        profile: ProfileManager.ready.service(CBUUID(string: "180F"))?.characteristic(CBUUID(string: "2A19")))

    private let level = TreeSamples.strap.services[1].characteristics[0]

    private let identity = #""uuid":"2A19","name":"Battery Level","handle":65,"#
    private let decoded =
        #""value":"64","fields":{"Battery Level":"100 %"},"quantities":{"Battery Level":{"value":100,"unit":"%"}}"#

    private func line(_ event: ValueEvent, _ format: Format) -> String? { event.line(format, ValueStyle(), in: .gmt) }

    private func line(_ value: AttributeValue, _ style: ValueStyle, _ date: Date? = nil) -> String {
        style.line(of: value, level, date, in: .gmt)
    }

    func testAValueThatWasReadIsPrintedAlone() {
        XCTAssertEqual(line(value, ValueStyle()), "100 %")
        XCTAssertEqual(line(value, ValueStyle(form: .hex)), "64")
        XCTAssertEqual(line(AttributeValue(Data([1, 2])), ValueStyle(form: .profile)), "0102")
    }

    func testAsJSONItSaysWhoseItIs() {
        XCTAssertEqual(line(value, ValueStyle(template: .json)), "{" + identity + decoded + "}")
        let rows: [(ValueForm, [UInt8], String)] = [
            (.u8, [100], "100"), (.i8, [0xFF, 1], "[-1,1]"), (.u16, [100], "null"), (.f32, [0, 0, 0xC0, 0x7F], "null"),
            (.f32, [0xCD, 0xCC, 0xCC, 0x3D], "0.1"), (.u64, [UInt8](repeating: 0xFF, count: 8), "18446744073709551615"),
            (.text, Array("a\n".utf8), #""a\n""#), (.base64, [1, 0xA0], #""AaA=""#), (.profile, [100], "null"),
        ]
        for (form, bytes, text) in rows {
            let line = line(AttributeValue(Data(bytes)), ValueStyle(form: form, template: .json))
            XCTAssertTrue(line.hasSuffix(#","quantities":null,"as":"# + text + "}"), "\(form) \(line)")
        }
    }

    func testSeveralAttributesHaveNamesAndThoseOfOneNameTheirHandles() {
        var style = ValueStyle()
        style.names = [0x41: "Battery Level", 0x29: "Heart Rate Measurement"]
        XCTAssertEqual(line(value, style, date), "22:13:20.125  Battery Level  100 %")
        style.names[0x44] = "Battery Level"
        XCTAssertEqual(line(value, style), "Battery Level @0041  100 %")
    }

    func testATemplateReplacesWhatItNames() throws {
        let text = #"{time}\t{clock} {name} {handle} {hex} {value} {field:Battery Level}{field:x}"#
        let template = try LineOptions<ValueStyle>.parse(["--format", text]).format
        XCTAssertEqual(
            line(value, ValueStyle(template: template), date),
            "2023-11-14T22:13:20.125Z\t22:13:20.125 Battery Level @0041 64 100 % 100")
        XCTAssertEqual(line(AttributeValue(Data("hello".utf8)), ValueStyle(template: .text("{value}"))), "hello")
        expectRefusal(of: ["read", "x", "2A19", "--format", "{rssi}"], "There is no {rssi}: --format takes {time}, ")
    }

    func testCommaSeparatedValuesAreQuotedWhereTheyHaveTo() {
        let time = "2023-11-14T22:13:20.125Z,Battery Level"
        let csv = ValueStyle(template: .csv)
        XCTAssertEqual(line(value, csv, date), time + ",Battery Level,100,%")
        XCTAssertEqual(line(value, ValueStyle(form: .u8, template: .csv), date), time + ",,100,")
        XCTAssertEqual(line(AttributeValue(Data(#"a, "b""#.utf8)), csv, date), time + #",,"a, ""b""","#)
        var several = value
        several.fields = [.init(name: "x", text: "-1.5 g"), .init(name: "y", text: "on")]
        XCTAssertEqual(line(several, csv, date), time + ",x,-1.5,g\n" + time + ",y,on,")
    }

    func testANotificationHasItsTime() {
        XCTAssertEqual(line(.value(value, of: level, date), .lines), "22:13:20.125  100 %")
        XCTAssertEqual(
            line(.value(AttributeValue(Data([1])), of: level, date), .json),
            #"{"event":"value","time":"2023-11-14T22:13:20.125Z","# + identity
                + #""value":"01","fields":null,"quantities":null}"#)
    }

    func testAGapIsInTheOutputForProgramsAndARemarkForPeople() {
        XCTAssertNil(line(.gap(date), .lines))
        XCTAssertNotNil(ValueEvent.gap(date).remark(.lines))
        XCTAssertEqual(line(.gap(date), .json), #"{"event":"gap","time":"2023-11-14T22:13:20.125Z"}"#)
    }

    func testTheEndIsCounted() {
        XCTAssertEqual(ValueEvent.finished(values: 1, seconds: 3.04).remark(.lines), "1 value in 3.0 s")
        XCTAssertEqual(
            line(.finished(values: 12, seconds: 3.0014), .json),
            #"{"event":"finished","values":12,"seconds":3.001}"#)
        XCTAssertNil(ValueEvent.finished(values: 12, seconds: 3).remark(.json))
    }
}
