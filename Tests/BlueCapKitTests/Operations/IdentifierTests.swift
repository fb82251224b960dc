import BlueCapKit
import XCTest

final class IdentifierTests: XCTestCase {
    func testTheFormsOfOneUUIDNameTheSameThing() {
        let short = ServiceIdentifier(uuid: "180d")
        XCTAssertEqual(short, ServiceIdentifier(uuid: "0000180D-0000-1000-8000-00805F9B34FB"))
        XCTAssertEqual(short, ServiceIdentifier(uuid: CBUUID(string: "180D")))
        XCTAssertEqual(short, ServiceIdentifier(validating: "180D"))
        XCTAssertEqual(short.uuidString, "180D")
        XCTAssertEqual(short.uuid, CBUUID(string: "180D"))
        let location = CharacteristicIdentifier(uuid: "2A38", service: short)
        XCTAssertEqual(location, CharacteristicIdentifier(uuid: CBUUID(string: "2A38"), service: short))
        XCTAssertEqual(location, CharacteristicIdentifier(validating: "2a38", service: short))
        XCTAssertNotEqual(location, CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180F")))
        XCTAssertEqual([short: 1, ServiceIdentifier(uuid: "180F"): 2][ServiceIdentifier(uuid: "180D")], 1)
    }

    func testAMalformedTextEndsNothingAndNamesNothing() {
        let wrong = ServiceIdentifier(uuid: "18OD")
        XCTAssertNil(wrong.uuid)
        XCTAssertEqual(wrong.uuidString, "18OD")
        XCTAssertEqual(wrong, ServiceIdentifier(uuid: "18OD"))
        XCTAssertNotEqual(wrong, ServiceIdentifier(uuid: "180D"))
        XCTAssertNil(ServiceIdentifier(validating: "18OD"))
        XCTAssertNil(CharacteristicIdentifier(validating: "", service: wrong))
        XCTAssertNil(CharacteristicIdentifier(uuid: "2A3", service: wrong).uuid)
        XCTAssertThrowsError(try CharacteristicIdentifier(uuid: "2A38", service: wrong).checked()) { error in
            XCTAssertTrue("\(error)".contains("\"18OD\" is not a Bluetooth UUID"), "\(error)")
        }
    }

    func testTheirDescriptionsHaveTheirNames() {
        let service = ServiceIdentifier(uuid: "180D")
        XCTAssertEqual("\(service)", "180D (Heart Rate)")
        XCTAssertEqual(
            "\(CharacteristicIdentifier(uuid: "2A38", service: service))", "2A38 of service 180D (Heart Rate)")
        XCTAssertEqual("\(ServiceIdentifier(uuid: "x"))", "x")
    }
}
