import Foundation
import XCTest

@testable import GATT

final class CBUUIDTests: XCTestCase {
    private let heartRateForms = [
        "180D", "180d", "0000180D", "0000180d-0000-1000-8000-00805f9b34fb", "0000180D-0000-1000-8000-00805F9B34FB",
        "0000180D00001000800000805F9B34FB",
    ]

    func testAllFormsOfOneUUIDAreEqualWithOneHash() {
        let uuids = heartRateForms.map { CBUUID(string: $0) } + [CBUUID(0x180D), CBUUID(data: Data([0x18, 0x0D]))]

        XCTAssertEqual(Set(uuids), [CBUUID(string: "180D")])
    }

    func testTheShortestFormIsWritten() {
        XCTAssertEqual(heartRateForms.map { CBUUID(string: $0).uuidString }, Array(repeating: "180D", count: 6))
        XCTAssertEqual(CBUUID(string: "0001180d").uuidString, "0001180D")
        let own = "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"
        XCTAssertEqual(CBUUID(string: own.lowercased()).uuidString, own)
    }

    func testTheFullFormIsTheSameWhateverTheUUIDWasMadeFrom() {
        XCTAssertEqual(CBUUID(string: "180D").fullUUIDString, "0000180D-0000-1000-8000-00805F9B34FB")
        XCTAssertEqual(CBUUID(string: "1234180D").fullUUIDString, "1234180D-0000-1000-8000-00805F9B34FB")
    }

    func testDataIsTheShortestFormMostSignificantByteFirst() {
        XCTAssertEqual(CBUUID(string: "180D").data, Data([0x18, 0x0D]))
        XCTAssertEqual(CBUUID(string: "0001180D").data, Data([0x00, 0x01, 0x18, 0x0D]))
        let own = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
        XCTAssertEqual(own.data.count, 16)
        XCTAssertEqual(Array(own.data.prefix(4)), [0x6E, 0x40, 0x00, 0x01])
        XCTAssertEqual(CBUUID(data: own.data), own)
    }

    func testASliceOfDataGivesTheUUIDOfItsBytes() {
        let slice = Data([0xFF, 0x18, 0x0D, 0xFF])[1..<3]
        XCTAssertEqual(CBUUID(data: slice), CBUUID(string: "180D"))
    }

    func testFoundationAndCoreBluetoothNameTheSameUUID() {
        let foundation = UUID()
        let uuid = CBUUID(nsuuid: foundation)

        XCTAssertEqual(uuid.fullUUIDString, foundation.uuidString)
        XCTAssertEqual(uuid.nsuuid, foundation)
    }

    func testTextFromOutsideThatIsNoUUIDGivesNil() {
        let wrong = [
            "", "1", "180", "180G", "18 0D", "180D0", "0x180D", "+80D", "0000180D-0000-1000-8000-00805F9B34F",
            "0000180D-0000-1000-8000-00805F9B34FBA", "0000180D00000-1000-8000-00805F9B34FB",
            "0000180D-0000-1000-8000+00805F9B34FB", "é180", "0000180D-0000-1000-8000-00805F9B34Fé",
        ]
        for text in wrong { XCTAssertNil(CBUUID(validating: text), text) }
    }

    func testDataOfAnotherLengthGivesNil() {
        for count in [0, 1, 3, 5, 8, 15, 17] { XCTAssertNil(CBUUID(validating: Data(count: count))) }
    }

    func testOnlyUUIDsOnTheBaseAreAbbreviated() {
        XCTAssertEqual(CBUUID(string: "180D").assignedNumber, 0x180D)
        XCTAssertNil(CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FC").assignedNumber)
        XCTAssertNil(CBUUID(string: "0000180D-0001-1000-8000-00805F9B34FB").assignedNumber)
    }

    func testItSurvivesCodingAndRefusesOtherText() throws {
        let uuids = [CBUUID(string: "180D"), CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")]
        let json = try JSONEncoder().encode(uuids)

        XCTAssertEqual(String(decoding: json, as: UTF8.self), #"["180D","6E400001-B5A3-F393-E0A9-E50E24DCCA9E"]"#)
        XCTAssertEqual(try JSONDecoder().decode([CBUUID].self, from: json), uuids)
        XCTAssertThrowsError(try JSONDecoder().decode([CBUUID].self, from: Data(#"["heart"]"#.utf8)))
    }

    func testItTakesSixteenBytes() { XCTAssertEqual(MemoryLayout<CBUUID>.size, 16) }
}
