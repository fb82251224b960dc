import BlueCapKit
import Foundation
import Profiles
import XCTest

@testable import bluecap

final class ValueReporterTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)
    private let value = AttributeValue(
        Data([100]),
        profile: ProfileManager.ready.service(CBUUID(string: "180F"))?.characteristic(CBUUID(string: "2A19")))

    private func reporter(_ style: ValueReporter.Style) -> ValueReporter {
        ValueReporter(style, of: TreeSamples.strap.services[1].characteristics[0], timeZone: .gmt)
    }

    func testAValueThatWasReadIsPrintedAlone() {
        XCTAssertEqual(reporter(.plain(.auto)).line(for: value), "100 %")
        XCTAssertEqual(reporter(.plain(.hex)).line(for: value), "64")
        XCTAssertEqual(reporter(.plain(.profile)).line(for: AttributeValue(Data([1, 2]))), "0102")
    }

    func testAsJSONItSaysWhoseItIs() {
        XCTAssertEqual(
            reporter(.json).line(for: value),
            #"{"uuid":"2A19","name":"Battery Level","handle":65,"value":"64","fields":{"Battery Level":"100 %"}}"#)
    }

    func testANotificationHasItsTime() {
        XCTAssertEqual(reporter(.plain(.auto)).line(for: .value(value, date)), "22:13:20.125  100 %")
        XCTAssertEqual(
            reporter(.json).line(for: .value(AttributeValue(Data([1])), date)),
            #"{"event":"value","time":"2023-11-14T22:13:20.125Z","value":"01","fields":null}"#)
    }

    func testAGapIsInTheOutputForProgramsAndARemarkForPeople() {
        XCTAssertNil(reporter(.plain(.auto)).line(for: .gap(date)))
        XCTAssertNotNil(reporter(.plain(.auto)).remark(for: .gap(date)))
        XCTAssertEqual(reporter(.json).line(for: .gap(date)), #"{"event":"gap","time":"2023-11-14T22:13:20.125Z"}"#)
    }

    func testTheEndIsCounted() {
        XCTAssertEqual(reporter(.plain(.auto)).remark(for: .finished(values: 1, seconds: 3.04)), "1 value in 3.0 s")
        XCTAssertEqual(
            reporter(.json).line(for: .finished(values: 12, seconds: 3.0014)),
            #"{"event":"finished","values":12,"seconds":3.001}"#)
        XCTAssertNil(reporter(.json).remark(for: .finished(values: 12, seconds: 3)))
    }
}
