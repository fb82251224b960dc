import BlueCapKit
import BlueZSimulator
import XCTest

final class PeripheralErrorsTests: PeripheralCase, @unchecked Sendable {
    func testAManagersErrors() {
        let documented: [PeripheralManagerError] = [.isAdvertising, .restoreFailed, .stopAdvertisingTimeout]
        for error in documented {
            let swiftError: any Swift.Error = error
            XCTAssertFalse(swiftError.localizedDescription.isEmpty)
        }
        let error: any Swift.Error = PeripheralManagerError.isAdvertising
        switch error {
        case PeripheralManagerError.isAdvertising: break
        default: XCTFail("It is.")
        }
    }

    func testASecondStartFails() throws {
        let manager = poweredPeripheralManager()
        try outcome(manager.startAdvertising("Sensor"))
        let error = failure(of: manager.startAdvertising("Another"))
        XCTAssertEqual(error as? PeripheralManagerError, .isAdvertising)
    }

    func testAStopThatTakesTooLongFails() throws {
        let manager = poweredPeripheralManager()
        try outcome(manager.startAdvertising("Sensor"))
        simulator.simulateSlowReplies(by: 30)
        let error = failure(of: manager.stopAdvertising())
        XCTAssertEqual(error as? PeripheralManagerError, .stopAdvertisingTimeout)
    }

    func testAServicesErrors() {
        let error: any Swift.Error = MutableServiceError.unconfigured
        XCTAssertEqual(error as? MutableServiceError, .unconfigured)
    }

    func testACharacteristicsErrors() {
        let documented: [MutableCharacteristicError] = [.unconfigured, .notSerializable, .notifyNotSupported]
        XCTAssertEqual(Set(documented).count, 3)
    }
}
