import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class WriteAssemblyTests: XCTestCase {
    func testAWriteFromTheBeginningIsGivenAtOnce() {
        var assembly = WriteAssembly()
        XCTAssertEqual(assembly.written(Data([1, 2]), at: 0, mtu: 23), .give(offset: 0, Data([1, 2])))
        XCTAssertEqual(
            assembly.written(Data(count: 18), at: 0, mtu: 23), .give(offset: 0, Data(count: 18)),
            "as long as a part would be, and none")
        XCTAssertEqual(assembly.written(Data(count: 512), at: 0, mtu: 23), .give(offset: 0, Data(count: 512)))
    }

    func testPartsAreGivenAsOneWhenTheLastHasCome() {
        var assembly = WriteAssembly()
        let value = Data((0..<40).map { UInt8($0) })
        _ = assembly.written(value[0..<18], at: 0, mtu: 23)
        XCTAssertEqual(assembly.written(Data(value[18..<36]), at: 18, mtu: 23), .collect)
        XCTAssertEqual(assembly.written(Data(value[36..<40]), at: 36, mtu: 23), .give(offset: 0, value))
        XCTAssertNil(assembly.collected())
    }

    func testALastPartThatFillsItsPacketIsGivenAfterThePause() {
        var assembly = WriteAssembly()
        _ = assembly.written(Data(repeating: 1, count: 18), at: 0, mtu: 23)
        XCTAssertEqual(assembly.written(Data(repeating: 1, count: 18), at: 18, mtu: 23), .collect)
        let collected = assembly.collected()
        XCTAssertEqual(collected?.offset, 0)
        XCTAssertEqual(collected?.value, Data(repeating: 1, count: 36))
        XCTAssertNil(assembly.collected())
    }

    func testAnEndWithoutItsBeginningKeepsItsOffset() {
        var assembly = WriteAssembly()
        XCTAssertEqual(assembly.written(Data([7]), at: 5, mtu: 23), .give(offset: 5, Data([7])))
        XCTAssertEqual(assembly.written(Data([8]), at: 9, mtu: 23), .give(offset: 9, Data([8])))
    }

    func testMoreThanAnAttributeHoldsIsRefused() {
        var assembly = WriteAssembly()
        XCTAssertEqual(assembly.written(Data(count: 513), at: 0, mtu: 517), .refuse(.invalidAttributeValueLength))
        XCTAssertEqual(assembly.written(Data(count: 2), at: 511, mtu: 517), .refuse(.invalidAttributeValueLength))
    }
}
