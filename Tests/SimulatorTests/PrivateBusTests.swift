import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import TestBasics
import XCTest

@testable import BlueZSimulator

/// The simulator on a `dbus-daemon` of its own, in real time.
final class PrivateBusTests: XCTestCase, StartsPrograms {
    func testItIsOnTheBusWhenItIsThereAndGoneWhenItEnds() throws {
        let simulator = try Simulator.onPrivateBus(bluez: .v5_66)
        let owner = ownerOfBlueZ(on: simulator.address)
        XCTAssertNotNil(owner)
        simulator.end()
        simulator.end()
        XCTAssertNil(ownerOfBlueZ(on: simulator.address))
    }

    func testTwoOfThemDoNotMeet() throws {
        let first = try Simulator.onPrivateBus(room: .empty, bluez: .v5_66)
        let second = try Simulator.onPrivateBus(room: .empty, bluez: .v5_66)
        XCTAssertNotEqual(first.address, second.address)
    }

    func testASecondOrgBluezOnTheSameBusIsRefused() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty, bluez: .v5_66)
        XCTAssertThrowsError(try Simulator(address: simulator.address)) { error in
            XCTAssertEqual(error as? SimulatorError, .nameTaken)
        }
    }

    func testWithoutABusItSaysSo() {
        XCTAssertThrowsError(try Simulator(address: "unix:path=/no/such/bus")) { error in
            guard case .noBus? = error as? SimulatorError else { return XCTFail("\(error)") }
        }
    }

    func testOverAWireAFloodReportsEveryPeripheralOnceAndLosesNothing() throws {
        let simulator = try Simulator.onPrivateBus(room: .crowd(1000, interval: 3600), bluez: .v5_66)
        let added = Locked(0)
        let updated = Locked(0)
        let done = expectation(description: "all has come")
        let connection = Connection.open(.custom(simulator.address))
        let subscription = connection.subscribe(MatchRule(sender: "org.bluez")) { message in
            if message.hasMember("InterfacesAdded") { added.withLock { $0 += 1 } }
            guard message.hasMember("PropertiesChanged"), message.path != "/org/bluez/hci0" else { return }
            let count = updated.withLock { updated in
                updated += 1
                return updated
            }
            if count == 9000 { done.fulfill() }
        }
        let start = Message.call(
            destination: "org.bluez", path: "/org/bluez/hci0", interface: "org.bluez.Adapter1", member: "StartDiscovery"
        )
        connection.call(start) { _ in simulator.simulateFlood(updates: 10_000) }
        wait(for: [done], timeout: 60)
        XCTAssertEqual(added.withLock { $0 }, 1000)
        subscription.cancel()
        connection.close()
    }

    private func ownerOfBlueZ(on address: String) -> String? {
        let answered = expectation(description: "the bus has reported the owner, or is gone")
        answered.assertForOverFulfill = false
        let owner = Locked<String?>(nil)
        let connection = Connection.open(.custom(address)) { state in
            if case .closed = state { answered.fulfill() }
        }
        let watch = connection.watchName("org.bluez") { name in
            owner.withLock { $0 = name }
            answered.fulfill()
        }
        wait(for: [answered], timeout: 60)
        watch.cancel()
        connection.close()
        return owner.withLock { $0 }
    }
}
