import BlueCapKit
import BlueZSimulator
import XCTest

final class RSSITests: DocumentedCase, @unchecked Sendable {
    /// Connects to the sensor while it goes on advertising: BlueZ reports signal strengths of advertisements only.
    private func peripheral() throws -> Peripheral {
        _ = scanForTheSensor()
        eventually("the sensor") { !manager.peripherals.isEmpty }
        let peripheral = manager.peripherals[0]
        peripheral.connect()
        eventually("the link") { peripheral.state == .connected }
        eventually("the scan, which was paused") { simulator.adapters[0].isDiscovering }
        pass(4)
        simulator.simulateSighting(of: Sensor.address)
        pass(1)
        return peripheral
    }

    func testTheStrengthIsRead() throws {
        let readRSSI: (Peripheral) -> () -> Future<Int> = Peripheral.readRSSI
        XCTAssertEqual(try outcome(readRSSI(peripheral())()), -52)
    }

    func testTheStrengthIsPolled() throws {
        let startPollingRSSI: (Peripheral) -> (Double, Int) -> FutureStream<Int> =
            Peripheral.startPollingRSSI(period:capacity:)
        startPollingRSSI(try peripheral())(2, Int.max).onSuccess { rssi in self.seen.note("\(rssi)") }
        eventually("a third reading", limit: 7) { seen.count >= 3 }
        XCTAssertEqual(Set(seen.texts), ["-52"])
    }

    func testThePeriodIsTenSecondsWhenNothingElseIsSaid() throws {
        let peripheral = try peripheral()
        peripheral.startPollingRSSI().onSuccess { _ in self.seen.note("a reading") }
        pass(15)
        XCTAssertEqual(seen.count, 2)
    }

    func testPollingIsStopped() throws {
        let stopPollingRSSI: (Peripheral) -> () -> Void = Peripheral.stopPollingRSSI
        let peripheral = try peripheral()
        peripheral.startPollingRSSI(period: 1).onSuccess { _ in self.seen.note("a reading") }
        eventually("a reading") { seen.count > 0 }
        stopPollingRSSI(peripheral)()
        let count = seen.count
        pass(5)
        XCTAssertEqual(seen.count, count)
    }

    func testPollingGoesOnWhereThereIsNoStrength() throws {
        let polling = try discoveredSensor().startPollingRSSI(period: 1)
        polling.onFailure { error in self.seen.note("\(error as? PeripheralError == .disconnected)") }
        eventually("a third failure", limit: 5) { seen.count >= 3 }
        XCTAssertEqual(Set(seen.texts), ["true"])
    }

    func testWithoutALinkThereIsNoStrength() throws {
        XCTAssertEqual(failure(of: try discoveredSensor().readRSSI()) as? PeripheralError, .disconnected)
    }
}
