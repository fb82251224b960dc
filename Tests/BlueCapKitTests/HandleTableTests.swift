import XCTest

@testable import BlueCapKit

final class HandleTableTests: XCTestCase {
    private let key = PeripheralKey(rawValue: 1)
    private let session = CentralSession(
        queue: nil, profileManager: nil,
        options: ManagerOptions([CentralManagerOptionBusAddressKey: "loopback:name=nobody"]))

    private func handle() -> Peripheral { Peripheral(session: session, key: key) }

    func testOneKeyHasOneHandleWhileSomebodyHoldsIt() {
        var table = HandleTable()
        let first = table.hold(key, or: handle)
        XCTAssertTrue(table.letGo(key) === first)
        XCTAssertTrue(table.hold(key, or: handle) === first)
    }

    func testAHandleThatDiesLeavesItsSuccessorInPlaceAndHandsItOut() {
        var table = HandleTable()
        let successor = table.hold(key, or: handle)
        XCTAssertTrue(table.letGo(key) === successor)
        XCTAssertTrue(table.forget(key) === successor)
        XCTAssertTrue(table[key] === successor)
    }
}
