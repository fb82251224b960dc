import XCTest

@testable import BlueCapGATT

final class CBUUIDTests: XCTestCase {
    private let heartRateForms = [
        "180D", "180d", "0000180D", "0000180d-0000-1000-8000-00805f9b34fb", "0000180D-0000-1000-8000-00805F9B34FB",
        "0000180D00001000800000805F9B34FB",
    ]

    func testAllFormsOfOneUUIDAreEqualWithOneHash() {
        let uuids = heartRateForms.map { CBUUID(string: $0) } + [CBUUID(0x180D), CBUUID(data: Data([0x18, 0x0D]))]

        XCTAssertEqual(Set(uuids), [CBUUID(string: "180D")])
    }

    /// As Apple's: programs compare `uuidString` with the text from which they made the UUID.
    func testTheFormInWhichItWasWrittenIsKept() {
        let full = "0000180D-0000-1000-8000-00805F9B34FB"
        XCTAssertEqual(
            heartRateForms.map { CBUUID(string: $0).uuidString }, ["180D", "180D", "0000180D", full, full, full])
        XCTAssertEqual(heartRateForms.map { CBUUID(string: $0).data.count }, [2, 2, 4, 16, 16, 16])
        XCTAssertEqual(heartRateForms.map { CBUUID(string: $0).shortestString }, Array(repeating: "180D", count: 6))
        XCTAssertEqual(CBUUID(nsuuid: UUID(uuidString: full)!).uuidString, full)
        for data in [Data([0x18, 0x0D]), Data([0, 0, 0x18, 0x0D]), CBUUID(string: full).data] {
            XCTAssertEqual(CBUUID(data: data).data, data)
        }
        XCTAssertEqual(CBUUID(0x180D).uuidString, "180D")
        XCTAssertEqual(CBUUID(0x0001_180D).uuidString, "0001180D")
        XCTAssertEqual(CBUUID(string: "0001180d").uuidString, "0001180D")
        let own = "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"
        XCTAssertEqual(CBUUID(string: own.lowercased()).uuidString, own)
    }

    func testTheFullFormIsTheSameWhateverTheUUIDWasMadeFrom() {
        XCTAssertEqual(CBUUID(string: "180D").fullUUIDString, "0000180D-0000-1000-8000-00805F9B34FB")
        XCTAssertEqual(CBUUID(string: "1234180D").fullUUIDString, "1234180D-0000-1000-8000-00805F9B34FB")
    }

    /// BlueZ reports each UUID with all digits.
    func testAUUIDOfBlueZHasTheShortestForm() {
        var text = "0000180d-0000-1000-8000-00805f9b34fb"
        XCTAssertEqual(text.withUTF8 { CBUUID(utf8: $0) }?.uuidString, "180D")
    }

    func testDataIsWrittenMostSignificantByteFirst() {
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
            "", "1", "180", "180G", "18 0D", "180D0", "0x", "0x180", "0x0x180D", "x180D", "+80D",
            "0000180D-0000-1000-8000-00805F9B34F",
            "0000180D-0000-1000-8000-00805F9B34FBA", "0000180D00000-1000-8000-00805F9B34FB",
            "0000180D-0000-1000-8000+00805F9B34FB", "é180", "0000180D-0000-1000-8000-00805F9B34Fé",
        ]
        for text in wrong { XCTAssertNil(CBUUID(validating: text), text) }
    }

    /// Core Bluetooth accepts the prefix before 4 and before 36 characters.
    func testAPrefixOfHexadecimalNumbersIsAccepted() {
        for form in heartRateForms {
            XCTAssertEqual(CBUUID(string: "0x" + form), CBUUID(string: "180D"))
            XCTAssertEqual(CBUUID(validating: "0X" + form), CBUUID(string: "180D"))
        }
    }

    func testATextThatIsNoUUIDIsReportedAndIsAUUIDThatNoDeviceHas() throws {
        var uuids: [CBUUID] = []
        let texts = try standardError { for text in ["", "18OD", "Heart Rate"] { uuids.append(CBUUID(string: text)) } }
        XCTAssertTrue(texts.contains(#"API MISUSE: "18OD" is not a Bluetooth UUID"#), texts)
        XCTAssertEqual(texts.split(separator: "\n").count, 3, texts)
        XCTAssertEqual(Set(uuids).count, 3, "A dictionary literal with two such keys would trap if they were equal.")
        XCTAssertTrue(uuids.allSatisfy { $0.assignedNumber == nil })
        _ = try standardError { XCTAssertEqual(CBUUID(string: "18OD"), uuids[1]) }
        let data = try standardError {
            XCTAssertNotEqual(CBUUID(data: Data([1, 2, 3])), CBUUID(data: Data()))
        }
        XCTAssertTrue(data.contains(#"The data "010203" are not a Bluetooth UUID"#), data)
    }

    /// Returns what `body` writes to standard error.
    private func standardError(_ body: () -> Void) throws -> String {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        let former = dup(2)
        dup2(handle.fileDescriptor, 2)
        body()
        dup2(former, 2)
        close(former)
        return try String(contentsOf: file, encoding: .utf8)
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

    /// Members of Apple's class, which programs use.
    func testItHasTheMembersOfTheClass() {
        let uuid = CBUUID(string: "180D")
        XCTAssertTrue(uuid.isEqual(CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")))
        XCTAssertFalse(uuid.isEqual(CBUUID(string: "180F")))
        XCTAssertFalse(uuid.isEqual("180D"))
        XCTAssertFalse(uuid.isEqual(nil))
        XCTAssertEqual(uuid.debugDescription, "180D")
        XCTAssertEqual(CBUUID().fullUUIDString, "00000000-0000-0000-0000-000000000000")
        XCTAssertEqual([uuid: 1][CBUUID(string: "0000180D")], 1, "A key is found by any form.")
        switch CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB") {
        case CBUUID(string: "180F"): XCTFail("another UUID")
        case uuid: break
        default: XCTFail("no match")
        }
    }
}
