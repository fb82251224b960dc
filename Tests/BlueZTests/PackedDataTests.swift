import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class PackedDataTests: XCTestCase {
    private func appended<Key: PackedKey>(_ entries: [(Key, [UInt8])], to data: inout PackedData<Key>) {
        for (key, value) in entries { value.withUnsafeBufferPointer { data.append(key, $0) } }
    }

    private func entries<Key: PackedKey>(_ data: PackedData<Key>) -> [[UInt8]] {
        var entries: [[UInt8]] = []
        data.forEach { entries.append(Array("\($0)".utf8) + $1) }
        return entries
    }

    private func check<Key: PackedKey>(_ keys: [Key]) {
        var data = PackedData<Key>()
        XCTAssertTrue(data.isEmpty)
        for round in 0..<3 {
            let all = keys.enumerated().map { number, key in
                (key, [UInt8](repeating: UInt8(number), count: number * round))
            }
            appended(all, to: &data)
            XCTAssertEqual(entries(data), all.map { Array("\($0)".utf8) + $1 })
            for (key, value) in all { XCTAssertEqual(data[key], value) }
            data.removeAll()
            XCTAssertTrue(data.isEmpty)
            XCTAssertEqual(entries(data), [])
        }
    }

    func testEntriesAreReadAsTheyWereAppended() {
        check((0..<40).map { UInt8($0) })
        check((0..<40).map { UInt16($0 * 1_000) })
        check((0..<40).map { CBUUID(UInt32(0x1800 + $0)) })
    }

    func testACopyKeepsItsEntriesWhenTheOriginalIsEmptiedOrExtended() {
        var data = PackedData<UInt16>()
        appended([(1, [1, 2, 3])], to: &data)
        let before = data
        appended([(2, [])], to: &data)
        let between = data
        data.removeAll()
        appended([(3, [4, 5, 6])], to: &data)
        XCTAssertEqual(before.dictionary, [1: [1, 2, 3]])
        XCTAssertEqual(between.dictionary, [1: [1, 2, 3], 2: []])
        XCTAssertEqual(data.dictionary, [3: [4, 5, 6]])
    }

    func testTheOrderOfTheEntriesIsNoDifference() {
        var (left, right, other) = (PackedData<UInt8>(), PackedData<UInt8>(), PackedData<UInt8>())
        appended([(1, [1]), (2, [2])], to: &left)
        appended([(2, [2]), (1, [1])], to: &right)
        appended([(2, [1]), (1, [2])], to: &other)
        XCTAssertEqual(left, right)
        XCTAssertNotEqual(left, other)
        left.removeAll()
        XCTAssertEqual(left, PackedData())
    }

    func testAValueThatIsTooLongIsLeftOut() {
        var data = PackedData<UInt8>()
        // With a key and a length, all may take 65,535 bytes.
        appended([(1, [UInt8](repeating: 0, count: 65_533)), (2, [UInt8](repeating: 7, count: 65_532))], to: &data)
        appended([(3, [])], to: &data)
        XCTAssertNil(data[1])
        XCTAssertNil(data[3])
        XCTAssertEqual(data[2]?.count, 65_532)
    }
}
