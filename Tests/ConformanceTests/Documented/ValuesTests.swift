import BlueCapKit
import XCTest

private enum Enabled: UInt8, RawDeserializable {
    case no = 0
    case yes = 1
    static let uuid = "F000AA12-0451-4000-B000-000000000000"
}

private struct Axes: RawArrayDeserializable, Equatable {
    static let uuid = "FFF1"
    static let size = 3
    let rawValue: [Int16]

    init?(rawValue: [Int16]) {
        guard rawValue.count == Self.size else { return nil }
        self.rawValue = rawValue
    }
}

private struct Range: RawPairDeserializable, Equatable {
    static let uuid = "FFF2"
    let rawValue1: UInt8
    let rawValue2: Int32

    init?(rawValue1: UInt8, rawValue2: Int32) {
        (self.rawValue1, self.rawValue2) = (rawValue1, rawValue2)
    }
}

private struct Table: RawArrayPairDeserializable, Equatable {
    static let uuid = "FFF3"
    static let size1 = 3
    static let size2 = 2
    let rawValue1: [UInt16]
    let rawValue2: [Int32]

    init?(rawValue1: [UInt16], rawValue2: [Int32]) {
        guard rawValue1.count == Self.size1, rawValue2.count == Self.size2 else { return nil }
        (self.rawValue1, self.rawValue2) = (rawValue1, rawValue2)
    }
}

/// The contract of values that the documents build on.
final class ValuesTests: XCTestCase {
    func testTextsHaveAnEncoding() {
        XCTAssertEqual(SerDe.serialize("Grüße"), Data("Grüße".utf8))
        XCTAssertEqual(SerDe.serialize("Grüße", encoding: .isoLatin1)?.count, 5)
        XCTAssertEqual(SerDe.deserialize(Data("Grüße".utf8)), "Grüße")
        let latin: String? = SerDe.deserialize(Data([0x47, 0xFC]), encoding: .isoLatin1)
        XCTAssertEqual(latin, "Gü")
        XCTAssertEqual(Serde.serialize("a"), SerDe.serialize("a"))
    }

    private func roundTrip<T: Deserializable & Equatable>(_ value: T, size: Int, line: UInt = #line) {
        let data = SerDe.serialize(value)
        XCTAssertEqual(T.size, size, line: line)
        XCTAssertEqual(data.count, size, line: line)
        let deserialized: T? = SerDe.deserialize(data)
        XCTAssertEqual(deserialized, value, line: line)
        XCTAssertEqual(T.deserialize(data) as T?, value, line: line)
        XCTAssertEqual(T.deserialize(Data([0xFF]) + data, start: 1), value, line: line)
        XCTAssertEqual(T.deserialize(data + data) as [T], [value, value], line: line)
        XCTAssertEqual(SerDe.deserialize(SerDe.serialize([value, value])) as [T], [value, value], line: line)
    }

    func testNumbersAreDeserializable() {
        roundTrip(UInt8.max, size: 1)
        roundTrip(Int8.min, size: 1)
        roundTrip(UInt16(0x0102), size: 2)
        roundTrip(Int16.min, size: 2)
        roundTrip(UInt32(0x0102_0304), size: 4)
        roundTrip(Int32.min, size: 4)
    }

    func testLongNumbersAndFractionsAreDeserializable() {
        roundTrip(UInt64.max - 1, size: 8)
        roundTrip(Int64.min, size: 8)
        roundTrip(Float(1.5), size: 4)
        roundTrip(Double(-0.1), size: 8)
    }

    func testNumbersAreSentInLittleEndianOrder() {
        XCTAssertEqual(SerDe.serialize(UInt16(0x0102)), Data([2, 1]))
        XCTAssertEqual(SerDe.serialize([UInt16(1), 2]), Data([1, 0, 2, 0]))
    }

    func testEnumsAreRawDeserializable() {
        XCTAssertEqual(Enabled.uuid, "F000AA12-0451-4000-B000-000000000000")
        XCTAssertEqual(SerDe.serialize(Enabled.yes), Data([1]))
        let yes: Enabled? = SerDe.deserialize(Data([1]))
        XCTAssertEqual(yes, .yes)
        let unknown: Enabled? = SerDe.deserialize(Data([7]))
        XCTAssertNil(unknown)
    }

    func testArraysAreRawArrayDeserializable() {
        let data = Data([1, 0, 0xFE, 0xFF, 3, 0])
        let axes: Axes? = SerDe.deserialize(data)
        XCTAssertEqual(axes?.rawValue, [1, -2, 3])
        XCTAssertEqual(axes.map { SerDe.serialize($0) }, data)
    }

    func testPairsAreRawPairDeserializable() {
        let range: Range? = SerDe.deserialize(Data([9, 0xFF, 0xFF, 0xFF, 0xFF]))
        XCTAssertEqual(range, Range(rawValue1: 9, rawValue2: -1))
        XCTAssertEqual(range.map { SerDe.serialize($0) }, Data([9, 0xFF, 0xFF, 0xFF, 0xFF]))
    }

    func testPairsOfArraysSurviveTheRoundTrip() {
        let table = Table(rawValue1: [1, 0x0200, .max], rawValue2: [-1, .max])
        let data = table.map { SerDe.serialize($0) }
        XCTAssertEqual(data?.count, 14)
        let again: Table? = data.flatMap { SerDe.deserialize($0) }
        XCTAssertEqual(again, table)
    }

    func testShortDataIsNoValueAndBytesAfterAValueAreIgnored() {
        for count in 0..<20 {
            let data = Data(repeating: 1, count: count)
            XCTAssertEqual((SerDe.deserialize(data) as Range?) == nil, count < 5, "\(count)")
            XCTAssertEqual((SerDe.deserialize(data) as Axes?) == nil, count < 6, "\(count)")
            XCTAssertEqual((SerDe.deserialize(data) as Table?) == nil, count < 14, "\(count)")
            // A number alone does not say which of the bytes it is.
            XCTAssertEqual((SerDe.deserialize(data) as Enabled?) == nil, count != 1, "\(count)")
            XCTAssertEqual((SerDe.deserialize(data) as UInt32?) == nil, count != 4, "\(count)")
        }
        XCTAssertNil(SerDe.deserialize(Data([0xFF])) as String?)
    }
}
