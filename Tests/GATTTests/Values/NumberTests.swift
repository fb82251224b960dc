import BlueCapGATT
import XCTest

final class NumberTests: XCTestCase {
    func testNumbersAreLittleEndian() {
        let table: [(bytes: Data, expected: [UInt8])] = [
            (SerDe.serialize(UInt8(0xAB)), [0xAB]),
            (SerDe.serialize(Int8(-2)), [0xFE]),
            (SerDe.serialize(UInt16(0x1234)), [0x34, 0x12]),
            (SerDe.serialize(Int16(-2)), [0xFE, 0xFF]),
            (SerDe.serialize(UInt32(0x1234_5678)), [0x78, 0x56, 0x34, 0x12]),
            (SerDe.serialize(Int32(-2)), [0xFE, 0xFF, 0xFF, 0xFF]),
            (SerDe.serialize(UInt64(0x0102_0304_0506_0708)), [8, 7, 6, 5, 4, 3, 2, 1]),
            (SerDe.serialize(Int64.min), [0, 0, 0, 0, 0, 0, 0, 0x80]),
            (SerDe.serialize(Float(1)), [0, 0, 0x80, 0x3F]),
            (SerDe.serialize(Double(-2)), [0, 0, 0, 0, 0, 0, 0, 0xC0]),
        ]
        for (bytes, expected) in table { XCTAssertEqual(Array(bytes), expected) }
    }

    func testEachNumberSurvivesTheRoundTrip() {
        survives([UInt8.min, 1, .max])
        survives([Int8.min, -1, 0, .max])
        survives([UInt16.min, 0x1234, .max])
        survives([Int16.min, -1, 0x1234, .max])
        survives([UInt32.min, 0x1234_5678, .max])
        survives([Int32.min, -1, 0x1234_5678, .max])
        survives([UInt64.min, 0x0102_0304_0506_0708, .max])
        survives([Int64.min, -1, .max])
        survives([Float.leastNonzeroMagnitude, -0.5, .infinity])
        survives([Double.leastNonzeroMagnitude, -0.5, .greatestFiniteMagnitude])
        survives([-0x80_0000, -1, 0, 0x7F_FFFF].compactMap { Int24($0) })
        survives([0, 0x12_3456, 0xFF_FFFF].compactMap { UInt24($0) })
    }

    private func survives<Value: Deserializable & Equatable>(_ values: [Value], line: UInt = #line) {
        for value in values {
            let bytes = SerDe.serialize(value)
            XCTAssertEqual(bytes.count, Value.size, line: line)
            XCTAssertEqual(SerDe.deserialize(bytes), Optional(value), line: line)
            XCTAssertEqual(Value.deserialize(Data([9, 9]) + bytes + Data([9]), start: 2), value, line: line)
            // A slice counts from its own beginning.
            XCTAssertEqual(Value.deserialize((Data([9, 9]) + bytes)[2...]), Optional(value), line: line)
            XCTAssertNil(Value.deserialize(bytes + Data([0])) as Value?, line: line)
            XCTAssertNil(Value.deserialize(bytes.dropLast()) as Value?, line: line)
            XCTAssertNil(Value.deserialize(Data()) as Value?, line: line)
        }
        XCTAssertEqual(SerDe.deserialize(SerDe.serialize(values)), values, line: line)
    }

    func testAStartOutsideTheDataGivesNil() {
        let data = Data([1, 2, 3])
        for start in [Int.min, -1, 2, 3, 4, .max] { XCTAssertNil(UInt16.deserialize(data, start: start)) }
        XCTAssertEqual(UInt16.deserialize(data, start: 1), 0x0302)
    }

    func testAnArrayLeavesOutARestThatIsNoElement() {
        XCTAssertEqual(SerDe.deserialize(Data([1, 0, 2, 0, 3])), [UInt16]([1, 2]))
        XCTAssertEqual(SerDe.deserialize(Data([1])), [UInt16]())
        XCTAssertEqual(SerDe.deserialize(Data()), [UInt8]())
        XCTAssertEqual(SerDe.deserialize(Data([9, 1, 0, 2, 0])[1...]), [UInt16]([1, 2]))
    }

    func testNumbersOfThreeBytesThatDoNotFitAreNone() throws {
        XCTAssertNil(UInt24(0x100_0000))
        XCTAssertNil(Int24(0x80_0000))
        XCTAssertNil(Int24(-0x80_0001))
        XCTAssertEqual(Array(SerDe.serialize(try XCTUnwrap(Int24(-2)))), [0xFE, 0xFF, 0xFF])
    }

    func testTextGoesInTheEncodingAskedFor() {
        XCTAssertEqual(SerDe.serialize("é"), Data([0xC3, 0xA9]))
        XCTAssertEqual(SerDe.serialize("é", encoding: .isoLatin1), Data([0xE9]))
        XCTAssertNil(SerDe.serialize("é", encoding: .ascii))
        XCTAssertEqual(SerDe.deserialize(Data([0xC3, 0xA9])), Optional("é"))
        XCTAssertNil(SerDe.deserialize(Data([0xC3])) as String?)
    }

    func testATextIsAValue() {
        func roundTrip<Value: CharacteristicCodable>(_ value: Value) -> Value? { Value.deserialize(value.serialize()) }
        XCTAssertEqual(roundTrip("Grüße"), "Grüße")
        XCTAssertEqual(roundTrip(""), "")
        XCTAssertEqual(String.deserialize(Data("Model 7\0\0\0\0".utf8)), "Model 7")
        XCTAssertEqual(String.deserialize(Data([0, 0])), "")
        XCTAssertEqual(String.deserialize(Data("xHi\0".utf8).dropFirst()), "Hi")
        XCTAssertNil(String.deserialize(Data([0x41, 0xC3])))
    }

    func testSerdeIsTheSame() {
        XCTAssertEqual(Serde.serialize(UInt16(1)), SerDe.serialize(UInt16(1)))
    }
}
