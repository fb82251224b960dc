import BlueCapKit
import XCTest

@testable import bluecap

final class ValueLinesTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)
    private let value = AttributeValue(
        Data([100]),
        profile: ProfileManager.ready.service(CBUUID(string: "180F"))?.characteristic(CBUUID(string: "2A19")))

    private let level = TreeSamples.strap.services[1].characteristics[0]

    private func line(_ event: ValueEvent, _ format: Format) -> String? { event.line(format, .auto, in: .gmt) }

    func testAValueThatWasReadIsPrintedAlone() {
        XCTAssertEqual(level.line(of: value, .lines, .auto), "100 %")
        XCTAssertEqual(level.line(of: value, .lines, .hex), "64")
        XCTAssertEqual(level.line(of: AttributeValue(Data([1, 2])), .lines, .profile), "0102")
    }

    func testAsJSONItSaysWhoseItIs() {
        XCTAssertEqual(
            level.line(of: value, .json, .auto),
            #"{"uuid":"2A19","name":"Battery Level","handle":65,"value":"64","fields":{"Battery Level":"100 %"}}"#)
    }

    func testANotificationHasItsTime() {
        XCTAssertEqual(line(.value(value, date), .lines), "22:13:20.125  100 %")
        XCTAssertEqual(
            line(.value(AttributeValue(Data([1])), date), .json),
            #"{"event":"value","time":"2023-11-14T22:13:20.125Z","value":"01","fields":null}"#)
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
