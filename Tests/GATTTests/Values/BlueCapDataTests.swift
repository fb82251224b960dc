import BlueCapGATT
import BlueCapProfiles
import XCTest

/// BlueCap's functions of `Data`, `String` and the integers.
final class BlueCapDataTests: XCTestCase {
    func testBytesBecomeLowerCaseHexadecimalDigits() {
        XCTAssertEqual(Data([0x0A, 0x1B, 0xFF]).hexStringValue(), "0a1bff")
        XCTAssertEqual(Data().hexStringValue(), "")
        XCTAssertEqual(Data([9, 0x0A, 0x1B]).dropFirst().hexStringValue(), "0a1b")
    }

    func testHexadecimalDigitsBecomeBytes() {
        XCTAssertEqual("0a1bFF".dataFromHexString(), Data([0x0A, 0x1B, 0xFF]))
        XCTAssertEqual("0a1".dataFromHexString(), Data([0x0A]))
        XCTAssertEqual("zz01".dataFromHexString(), Data([0, 1]))
        XCTAssertEqual("1".dataFromHexString(), Data())
        XCTAssertEqual("".dataFromHexString(), Data())
        XCTAssertEqual("äß".dataFromHexString().count, 2)
    }

    func testValuesAreSerializedLittleEndian() {
        XCTAssertEqual(Data.serialize(UInt16(0x0102)), Data([2, 1]))
        XCTAssertEqual(Data.serialize(Int8(-1)), Data([0xFF]))
        XCTAssertEqual(Data.serialize(TISensorTag.AccelerometerService.Enabled.yes), Data([1]))
    }

    func testTwoValuesAreSerializedOneAfterTheOther() {
        XCTAssertEqual(Data.serialize(UInt16(0x0102), value2: UInt8(3)), Data([2, 1, 3]))
    }

    func testArraysAreSerializedByTheirElements() {
        XCTAssertEqual(Data.serialize([UInt16(1), 2]), Data([1, 0, 2, 0]))
        XCTAssertEqual(Data.serializeArray([UInt16(1), 2]), Data([1, 0, 2, 0]))
        XCTAssertEqual(Data.serialize([UInt16(1)], value2: [UInt8(2), 3]), Data([1, 0, 2, 3]))
        XCTAssertEqual(Data.serializeArrays([UInt16(1)], values2: [UInt8(2), 3]), Data([1, 0, 2, 3]))
    }

    func testTextsAreSerializedInTheirEncoding() {
        XCTAssertEqual(Data.fromString("é"), Data([0xC3, 0xA9]))
        XCTAssertEqual(Data.fromString("é", encoding: .isoLatin1), Data([0xE9]))
        XCTAssertNil(Data.fromString("é", encoding: .ascii))
    }

    func testIntegersAreMadeOfOtherNumbersThatFit() {
        XCTAssertEqual(UInt8(doubleValue: 255.9), 255)
        XCTAssertNil(UInt8(doubleValue: 256))
        XCTAssertNil(UInt8(doubleValue: -1))
        XCTAssertNil(Int16(doubleValue: .nan))
        XCTAssertNil(Int16(doubleValue: .infinity))
        XCTAssertEqual(Int8(intValue: -128), -128)
        XCTAssertNil(Int8(intValue: 128))
        XCTAssertEqual(UInt8(uintValue: 255), 255)
        XCTAssertNil(UInt8(uintValue: 256))
    }
}
