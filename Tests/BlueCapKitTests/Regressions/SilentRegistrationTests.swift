import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// If `bluetoothd` received the call and did not reply, `add` and `startAdvertising` reported nothing for more than three minutes,
/// and then a refusal; after an error of an unknown name `add` reported nothing for half a minute.
final class SilentRegistrationTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)

    private lazy var manager = try! PeripheralManager(configuration: .init(busAddress: simulator.address))

    override func setUp() { simulator.expect("power", within: 5) { manager.poweredOn } }

    private func error(_ future: Future<Void>) -> PeripheralManagerError? {
        future.result?.error as? PeripheralManagerError
    }

    func testADaemonThatDoesNotAnswerIsWaitedForTenSecondsAndHasNotRefused() {
        simulator.simulateIgnoredRegistrations()
        let added = manager.add(MutableService(uuid: "180F"))
        let started = manager.startAdvertising("Battery")
        simulator.advance(by: 10.1)
        XCTAssertEqual(error(added), .serviceTimeout)
        XCTAssertEqual(error(started), .startAdvertisingTimeout)
    }

    func testAnErrorOfAnUnknownNameFailsAtOnceWithItsWords() {
        let strange = DaemonError(name: "com.example.Error.Strange", message: "Out of cheese")
        simulator.simulateRegistrationFailures(1, error: strange)
        simulator.simulateAdvertisementFailures(1, error: strange)
        let added = manager.add(MutableService(uuid: "180F"))
        let started = manager.startAdvertising("Battery")
        simulator.advance(by: 0.4)
        let failure = BusError(name: strange.name, message: strange.message)
        XCTAssertEqual(error(added), .serviceRefused(failure))
        XCTAssertEqual(error(started), .advertisementRefused(failure))
    }

    /// After one lost reply a service was not registered for a day.
    func testAServiceAndAnAdvertisementComeBackIfOneReplyToEachIsLostAfterARestart() {
        let added = manager.add(MutableService(uuid: "180F"))
        let started = manager.startAdvertising("Battery")
        XCTAssertTrue(simulator.advance(until: { added.completed && started.completed }, limit: 5))
        for call in ["RegisterApplication", "RegisterAdvertisement"] { simulator.simulateUnansweredCalls(1, of: call) }
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateDaemonReturn()
        simulator.advance(by: 10)
        XCTAssertTrue(simulator.applications.isEmpty && simulator.advertisements.isEmpty)
        simulator.expect("the service", within: 15) { !simulator.applications.isEmpty }
        simulator.expect("the advertisement", within: 15) { !simulator.advertisements.isEmpty }
    }

    /// The services that were registered before an `add` without a reply were registered again only after that reply.
    func testTheOtherServicesComeBackAfterAnAddWithoutAnAnswer() {
        let first = manager.add(MutableService(uuid: "180F"))
        XCTAssertTrue(simulator.advance(until: { first.completed }, limit: 5))
        simulator.simulateUnansweredCalls(1, of: "RegisterApplication")
        let second = manager.add(MutableService(uuid: "180D"))
        XCTAssertTrue(simulator.advance(until: { second.completed }, limit: 11))
        XCTAssertEqual(error(second), .serviceTimeout)
        XCTAssertTrue(simulator.advance(until: { [simulator] in !simulator.applications.isEmpty }, limit: 15))
    }

    /// It failed for a day, although nothing was advertised.
    func testStopAdvertisingSucceedsAfterAStartThatTimedOut() {
        simulator.simulateUnansweredCalls(1, of: "RegisterAdvertisement")
        let started = manager.startAdvertising("Battery", timeout: 2)
        XCTAssertTrue(simulator.advance(until: { started.completed }, limit: 5))
        XCTAssertEqual(error(started), .startAdvertisingTimeout)
        for _ in 1...2 {
            let stopped = manager.stopAdvertising(timeout: 5)
            simulator.advance(by: 6)
            guard case .success? = stopped.result else { return XCTFail("\(String(describing: stopped.result))") }
        }
    }
}
