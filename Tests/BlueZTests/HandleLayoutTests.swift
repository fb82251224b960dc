import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class HandleLayoutTests: XCTestCase {
    private func service(_ first: UInt64, characteristics: Int) -> ServerService {
        ServerService(
            id: ServerAttributeID(first), uuid: CBUUID(string: "180F"),
            characteristics: (1...characteristics).map { number in
                ServerCharacteristic(
                    id: ServerAttributeID(first + UInt64(number)), uuid: CBUUID(string: "2A19"), flags: .read)
            })
    }

    func testAServiceThatDoesNotFitBehindTheOthersBeginsAtTheFirstHandle() {
        var layout = HandleLayout()
        XCTAssertEqual(layout.place(service(1, characteristics: 28_000))[ServerAttributeID(1)], 0x1000)
        let second = layout.place(service(100_000, characteristics: 10_000))
        XCTAssertEqual(second[ServerAttributeID(100_000)], 0x1000)
        XCTAssertEqual(second[ServerAttributeID(110_000)], 0x1000 + 20_000)
    }

    func testAServiceThatIsLongerThanAllHandlesGetsNone() {
        var layout = HandleLayout()
        XCTAssertEqual(layout.place(service(1, characteristics: 31_000)), [:])
        XCTAssertEqual(layout.place(service(1, characteristics: 1))[ServerAttributeID(1)], 0x1000)
    }
}
