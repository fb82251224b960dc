import XCTest

@testable import BlueCapGATT

final class AttributeProtocolTests: XCTestCase {
    func testAValueHasThePacketLessItsHeaderAndNeverMoreThanTheLongestValue() {
        let lengths: [(packet: Int?, value: Int)] = [
            (nil, 20), (0, 20), (23, 20), (247, 244), (514, 511), (515, 512), (517, 512), (65_535, 512),
        ]
        for (packet, value) in lengths {
            XCTAssertEqual(AttributeProtocol.longestValue(inPacketOf: packet), value, "\(packet ?? 0)")
        }
    }
}
