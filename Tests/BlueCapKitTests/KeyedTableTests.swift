import TestBasics
import XCTest

@testable import BlueCapKit

final class KeyedTableTests: RandomTestCase {
    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    func testTheTableHasTheSameValuesAsADictionary() {
        var random = TestRandom(self)
        var table = KeyedTable<OperationID, Int>()
        var expected: [UInt64: Int] = [:]
        for step in 0..<20_000 {
            let key = UInt64.random(in: 1...60, using: &random) << UInt64.random(in: 0...1, using: &random) * 40
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                table[id(key)] = step
                expected[key] = step
            case 2:
                XCTAssertEqual(table.insert(step, id(key)), expected[key] == nil)
                expected[key] = expected[key] ?? step
            case 3:
                XCTAssertEqual(table.update(id(key)) { $0 += 1 } != nil, expected[key] != nil)
                expected[key]? += 1
            case 4: XCTAssertEqual(table.remove(id(key)), expected.removeValue(forKey: key))
            default:
                table[id(key)] = nil
                expected[key] = nil
            }
            XCTAssertEqual(table[id(key)], expected[key])
            XCTAssertEqual(table.read(id(key)) { $0 }, expected[key])
            XCTAssertEqual(table.count, expected.count)
            XCTAssertEqual(table.isEmpty, expected.isEmpty)
        }
        XCTAssertEqual(Set(table.keys), Set(expected.keys.map(id)))
        XCTAssertEqual(table.count { $0 % 2 == 0 }, expected.values.count { $0 % 2 == 0 })
    }

    func testTheKeyOfARemovedValueFindsNoLaterOne() {
        var table = KeyedTable<OperationID, String>()
        table[id(1)] = "first"
        XCTAssertEqual(table.remove(id(1)), "first")
        table[id(2)] = "second"
        XCTAssertNil(table[id(1)])
        XCTAssertNil(table.remove(id(1)))
        XCTAssertNil(table.update(id(1)) { $0 = "late" })
        XCTAssertEqual(table[id(2)], "second")
    }

    func testTheOperationWithoutACallerIsAbsent() {
        let table = KeyedTable<OperationID, String>()
        XCTAssertNil(table[.none])
    }
}
