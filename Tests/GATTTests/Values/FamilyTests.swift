import BlueCapGATT
import XCTest

// As the documents write it: only the UUID is given.
private enum Enabled: UInt8, RawDeserializable {
    case no = 0
    case yes = 1
    static let uuid = "F000AA12-0451-4000-B000-000000000000"
}

private struct Triple: RawArrayDeserializable, Equatable {
    static let uuid = "FFF1"
    static let size = 3
    let rawValue: [Int32]
    init?(rawValue: [Int32]) {
        guard rawValue.count == Triple.size else { return nil }
        self.rawValue = rawValue
    }
}

private struct Pair: RawPairDeserializable, Equatable {
    static let uuid = "FFF2"
    let rawValue1: Int16
    let rawValue2: UInt32
}

private struct ThreeAndTwo: RawArrayPairDeserializable, Equatable {
    static let uuid = "FFF3"
    static let size1 = 3
    static let size2 = 2
    let rawValue1: [UInt16]
    let rawValue2: [Int32]
}

/// Counts that no data can satisfy, as a mistaken type may have them.
private struct Absurd: RawArrayPairDeserializable {
    static let uuid = "FFF4"
    static let size1 = -1
    static let size2 = Int.max
    let rawValue1: [UInt16]
    let rawValue2: [UInt64]
}

final class FamilyTests: XCTestCase {
    func testAnEnumerationNeedsOnlyItsUUID() {
        XCTAssertEqual(SerDe.serialize(Enabled.yes), Data([1]))
        XCTAssertEqual(SerDe.deserialize(Data([0])), Optional(Enabled.no))
        XCTAssertNil(SerDe.deserialize(Data([2])) as Enabled?)
        XCTAssertNil(SerDe.deserialize(Data([1, 0])) as Enabled?)
        XCTAssertNil(SerDe.deserialize(Data()) as Enabled?)
    }

    func testAnArrayCountsElementsAndNotBytes() throws {
        let value = try XCTUnwrap(Triple(rawValue: [1, -2, 0x0102_0304]))
        let bytes = SerDe.serialize(value)

        XCTAssertEqual(Array(bytes), [1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 4, 3, 2, 1])
        XCTAssertEqual(SerDe.deserialize(bytes), Optional(value))
        for count in 0..<12 { XCTAssertNil(Triple.deserialize(Data(count: count))) }
        XCTAssertEqual(Triple.deserialize(bytes + Data([7])), value)
    }

    func testAPairMayHaveTwoTypes() {
        let value = Pair(rawValue1: -2, rawValue2: 0x0102_0304)
        let bytes = SerDe.serialize(value)

        XCTAssertEqual(Array(bytes), [0xFE, 0xFF, 4, 3, 2, 1])
        XCTAssertEqual(SerDe.deserialize(bytes), Optional(value))
        for count in 0..<6 { XCTAssertNil(Pair.deserialize(Data(count: count))) }
        XCTAssertEqual(Pair.deserialize(bytes + Data([7])), value)
    }

    func testAPairOfArraysMayHaveTwoTypesAndTwoCounts() {
        let value = ThreeAndTwo(rawValue1: [1, 2, 0xFFFF], rawValue2: [-1, 0x0102_0304])
        let bytes = SerDe.serialize(value)

        XCTAssertEqual(Array(bytes), [1, 0, 2, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 4, 3, 2, 1])
        XCTAssertEqual(SerDe.deserialize(bytes), Optional(value))
        XCTAssertEqual(SerDe.deserialize((Data([7]) + bytes)[1...]), Optional(value))
        for count in 0..<14 { XCTAssertNil(ThreeAndTwo.deserialize(Data(count: count))) }
        XCTAssertEqual(ThreeAndTwo.deserialize(bytes + Data([7])), value)
    }

    func testCountsThatNoDataCanSatisfyGiveNil() {
        for count in 0..<40 { XCTAssertNil(Absurd.deserialize(Data(count: count))) }
    }
}
