import BlueCapGATT
import XCTest

final class ApplicationErrorTests: XCTestCase {
    func testTheWholeRangeOfTheApplicationCanBeMade() {
        for number in 0x80...0x9F {
            let code = CBATTError.application(number)
            XCTAssertEqual(code.rawValue, number)
            XCTAssertTrue(code.isApplicationError)
            XCTAssertEqual(CBATTError(.application(number)), CBATTError(code))
        }
        XCTAssertEqual(CBATTError.application(0x80).description, "application error 0x80")
    }

    func testAnyOtherNumberIsAnUnlikelyError() {
        for number in [-1, 0, 0x05, 0x7F, 0xA0, 0xFF, 0x180] {
            XCTAssertEqual(CBATTError.application(number), .unlikelyError)
        }
    }
}
