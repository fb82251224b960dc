import BlueCapKit
import BlueZSimulator
import Foundation
import Futures
import XCTest

/// `add` and `startAdvertising` were silent for more than three minutes if `bluetoothd` accepted the call and did not answer,
/// and then said that it had refused; after an error of an unknown name `add` was silent for half a minute.
final class SilentRegistrationTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)

    private func poweredOnManager() -> PeripheralManager {
        let manager = PeripheralManager(options: [PeripheralManagerOptionBusAddressKey: simulator.address])
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        return manager
    }

    private func error(_ future: Future<Void>) -> PeripheralManagerError? {
        guard case .failure(let error)? = future.result else { return nil }
        return error as? PeripheralManagerError
    }

    func testADaemonThatDoesNotAnswerIsWaitedForTenSecondsAndHasNotRefused() {
        let manager = poweredOnManager()
        simulator.simulateIgnoredRegistrations()
        let added = manager.add(MutableService(uuid: "180F"))
        let started = manager.startAdvertising("Battery")
        simulator.advance(by: 10.1)
        XCTAssertEqual(error(added), .serviceTimeout)
        XCTAssertEqual(error(started), .startAdvertisingTimeout)
        withExtendedLifetime(manager) {}
    }

    func testAnErrorOfAnUnknownNameFailsAtOnceWithItsWords() {
        let manager = poweredOnManager()
        let strange = DaemonError(name: "com.example.Error.Strange", message: "Out of cheese")
        simulator.simulateRegistrationFailures(1, error: strange)
        simulator.simulateAdvertisementFailures(1, error: strange)
        let added = manager.add(MutableService(uuid: "180F"))
        let started = manager.startAdvertising("Battery")
        simulator.advance(by: 0.4)
        let failure = BusFailure(name: strange.name, message: strange.message)
        XCTAssertEqual(error(added), .serviceRefused(failure))
        XCTAssertEqual(error(started), .advertisementRefused(failure))
        withExtendedLifetime(manager) {}
    }
}
