import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// What `add` and `startAdvertising` ask of a daemon that does not answer ends in time, and leaves nothing behind.
final class RegistrationTimeoutTests: PeripheralStage {
    /// What a future fails with, and after how many seconds.
    private func failure<T>(
        _ future: Future<T>, after began: TimeInterval
    ) -> (error: PeripheralManagerError?, seconds: TimeInterval) {
        let error = managerError(of: future)
        return (error, simulator.seconds - began)
    }

    func testAServiceThatBlueZDoesNotAnswerForFailsInTime() throws {
        let (heart, battery) = (Self.heart(), Self.battery())
        simulator.simulateIgnoredRegistrations()
        let began = simulator.seconds
        let byDefault = manager.add(heart)
        let short = manager.add(battery, timeout: 3)
        let first = failure(short, after: began)
        XCTAssertEqual(first.error, .serviceTimeout)
        XCTAssertEqual(first.seconds, 3, accuracy: 0.1)
        XCTAssertEqual(manager.services, [])
        let second = failure(byDefault, after: began)
        XCTAssertEqual(second.error, .serviceTimeout)
        XCTAssertEqual(second.seconds, PeripheralManager.defaultTimeout.seconds, accuracy: 0.1)
        XCTAssertTrue("\(PeripheralManagerError.serviceTimeout)".contains("did not answer in time"))
        XCTAssertThrowsError(try heart.characteristics[0].update(withData: Data()))
    }

    func testALateYesIsTakenBack() throws {
        let manager = manager
        simulator.simulateIgnoredRegistrations()
        let added = manager.add(Self.heart(), timeout: 2)
        let started = manager.startAdvertising("Strap", timeout: 2)
        XCTAssertEqual(managerError(of: added), .serviceTimeout)
        XCTAssertEqual(managerError(of: started), .startAdvertisingTimeout)
        XCTAssertFalse(manager.isAdvertising)
        simulator.advance(by: 300)
        simulator.simulateIgnoredRegistrations(false)
        simulator.advance(by: 1)
        XCTAssertEqual(offered(), [])
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testAServiceWhoseAddTimedOutCanBeAddedAgain() throws {
        let service = Self.heart()
        simulator.simulateIgnoredRegistrations()
        XCTAssertEqual(managerError(of: manager.add(service, timeout: 1)), .serviceTimeout)
        simulator.simulateIgnoredRegistrations(false)
        try value(of: manager.add(service, timeout: 1))
        XCTAssertEqual(offered(), ["180D"])
    }

    func testEveryKindOfAdvertisementHasATimeout() throws {
        let manager = manager
        simulator.simulateIgnoredRegistrations()
        let region = BeaconRegion(proximityUUID: UUID(), identifier: "beacon", major: 1, minor: 1)
        var began = simulator.seconds
        let byName = failure(manager.startAdvertising("Strap", uuids: nil, timeout: 2), after: began)
        began = simulator.seconds
        let byRegion = failure(manager.startAdvertising(region, timeout: 3), after: began)
        began = simulator.seconds
        let byData = failure(manager.startAdvertising(AdvertisingData(localName: "a"), timeout: 4), after: began)
        began = simulator.seconds
        let byDefault = failure(manager.startAdvertising("Strap"), after: began)
        for (outcome, seconds) in [(byName, 2), (byRegion, 3), (byData, 4), (byDefault, 10)] {
            XCTAssertEqual(outcome.error, .startAdvertisingTimeout)
            XCTAssertEqual(outcome.seconds, TimeInterval(seconds), accuracy: 0.1)
        }
        XCTAssertEqual(manager.advertisements, [])
        simulator.simulateIgnoredRegistrations(false)
        simulator.advance(by: 1)
        try value(of: manager.startAdvertising("Strap"))
        XCTAssertEqual(simulator.advertisements.count, 1, "Those that failed are gone.")
    }

    func testOneTimeoutCoversPowerAndRegistration() throws {
        simulator.simulatePowerOff()
        let manager = unreadyManager()
        let began = simulator.seconds
        let added = manager.add(Self.heart(), timeout: 5)
        let started = manager.startAdvertising("Strap", timeout: 3)
        let off = failure(started, after: began)
        XCTAssertEqual(off.error, .notPoweredOn(.poweredOff))
        XCTAssertEqual(off.seconds, 3, accuracy: 0.1)
        simulator.simulateIgnoredRegistrations()
        simulator.simulatePowerOn()
        let outcome = failure(added, after: began)
        XCTAssertEqual(outcome.error, .serviceTimeout)
        XCTAssertEqual(outcome.seconds, 5, accuracy: 0.1)
    }

    func testWithoutALimitTheAnswerIsWaitedFor() throws {
        let manager = manager
        simulator.simulateIgnoredRegistrations()
        let added = manager.add(Self.heart(), timeout: .infinity)
        let started = manager.startAdvertising("Strap", timeout: .infinity)
        simulator.advance(by: 300)
        XCTAssertNil(added.result)
        XCTAssertNil(started.result)
        simulator.simulateIgnoredRegistrations(false)
        try value(of: added, within: 1)
        try value(of: started, within: 1)
    }

    func testASecondAddSharesTheTimeoutOfTheFirst() {
        let service = Self.heart()
        simulator.simulateIgnoredRegistrations()
        let began = simulator.seconds
        let first = manager.add(service, timeout: 2)
        let second = manager.add(service, timeout: 60)
        XCTAssertEqual(managerError(of: first), .serviceTimeout)
        let outcome = failure(second, after: began)
        XCTAssertEqual(outcome.error, .serviceTimeout)
        XCTAssertEqual(outcome.seconds, 2, accuracy: 0.1)
    }

    func testTheLimitsOfADaemonThatDoesNotAnswerFailInTime() {
        let manager = manager
        simulator.simulateSlowReplies(by: 3_600)
        var began = simulator.seconds
        let short = failure(manager.advertisingLimits(timeout: 2), after: began)
        XCTAssertEqual(short.error, .advertisingLimitsTimeout)
        XCTAssertEqual(short.seconds, 2, accuracy: 0.1)
        began = simulator.seconds
        let byDefault = failure(manager.advertisingLimits(), after: began)
        XCTAssertEqual(byDefault.error, .advertisingLimitsTimeout)
        XCTAssertEqual(byDefault.seconds, PeripheralManager.defaultTimeout.seconds, accuracy: 0.1)
        began = simulator.seconds
        let started = failure(manager.startAdvertising("Strap", timeout: 4), after: began)
        XCTAssertEqual(started.error, .startAdvertisingTimeout)
        XCTAssertEqual(started.seconds, 4, accuracy: 0.1)
    }

    func testWithoutACallTheMethodsAreThoseWithoutATimeout() throws {
        let (add, limits) = (manager.add, manager.advertisingLimits)
        try value(of: add(Self.heart()))
        try value(of: limits())
        let advertise: (String, [CBUUID]?) -> Future<Void> = manager.startAdvertising
        try value(of: advertise("Strap", nil))
    }

    // MARK: Errors

    func testAnErrorThatPassesIsTriedAgainAndThenNamed() throws {
        let manager = manager
        simulator.simulateRegistrationFailures(2, error: .inProgress)
        try value(of: manager.add(Self.battery()))
        simulator.simulateRegistrationFailures(100, error: .inProgress)
        var began = simulator.seconds
        let refused = PeripheralManagerError.serviceRefused(
            BusError(name: DaemonError.inProgress.name, message: DaemonError.inProgress.message))
        let byDefault = failure(manager.add(Self.heart()), after: began)
        XCTAssertEqual(byDefault.error, refused)
        XCTAssertEqual(byDefault.seconds, 7.5, accuracy: 0.1)
        began = simulator.seconds
        let short = failure(manager.add(Self.heart(), timeout: 2), after: began)
        XCTAssertEqual(short.error, refused, "bluetoothd did answer.")
        XCTAssertEqual(short.seconds, 2, accuracy: 0.1)
    }

    func testARestoredManagerGoesOnWithoutALimit() throws {
        try serve(Self.heart())
        simulator.simulateDaemonDeath()
        wait { manager.state == .resetting }
        simulator.simulateIgnoredRegistrations()
        simulator.simulateDaemonReturn()
        simulator.advance(by: 300)
        XCTAssertEqual(manager.services.count, 1)
        XCTAssertTrue(manager.isAdvertising)
        simulator.simulateIgnoredRegistrations(false)
        wait(30) { self.offered() == ["180D"] && self.simulator.advertisements.count == 1 }
    }
}
