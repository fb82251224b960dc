import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

/// Connections and disconnections that are asked for while others are under way.
final class ConnectionOrderTests: BluejayCase, @unchecked Swift.Sendable {
    func testAConnectionAfterCancellingEverythingWaitsForTheEndOfTheOneBefore() {
        let identifier = connect()
        bluejay.cancelEverything()
        bluejay.connect(identifier) { [seen] in seen.note("again", $0) }
        expect("again Strap 1")
        XCTAssertTrue(bluejay.isConnected)
        XCTAssertTrue(bluejay.shouldAutoReconnect)
        XCTAssertEqual(seen.count, 1)
    }

    func testAnImmediateDisconnectionDoesNotWaitForAQueuedOne() {
        connect()
        bluejay.scan(
            serviceIdentifiers: nil, discovery: { _, _ in .continue },
            stopped: { [seen] _, error in seen.note("scan", error) })
        bluejay.disconnect { [seen] in seen.note("queued", $0) }
        pass(5)
        XCTAssertEqual(seen.texts, [])
        bluejay.disconnect(immediate: true) { [seen] in seen.note("immediate", $0) }
        expect("immediate Strap 1")
        XCTAssertEqual(
            Set(seen.texts.dropLast()), ["scan explicitDisconnect", "queued explicitDisconnect"], "\(seen.texts)")
        XCTAssertFalse(bluejay.isConnected || bluejay.shouldAutoReconnect)
    }

    func testWhoDisconnectsWhileBluetoothIsOffStaysDisconnected() {
        connect()
        simulator.simulatePowerOff()
        eventually("the attempt") { bluejay.isConnecting }
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        simulator.simulatePowerOn()
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
        pass(10)
        XCTAssertFalse(bluejay.isConnected || bluejay.isConnecting || bluejay.shouldAutoReconnect)
    }

    func testADisconnectionWithoutAConnectionIsRefusedWhileBluetoothIsOff() {
        start()
        simulator.simulatePowerOff()
        eventually("the end") { !bluejay.isBluetoothAvailable }
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect bluetoothUnavailable")
    }
}

final class ObserverTests: BluejayCase, @unchecked Swift.Sendable {
    func testAnObserverThatRegistersDuringAReportReceivesItOnce() {
        callbacks.suspend()
        bluejay.start(mode: .new(options))
        simulator.run()
        simulator.advance(by: 1)
        XCTAssertTrue(bluejay.isBluetoothAvailable)
        let observer = Observer(seen)
        bluejay.register(observer: observer)
        callbacks.resume()
        settle()
        XCTAssertEqual(seen.texts, ["available true"])
    }

    func testARemovedObserverReceivesNothingMore() {
        start()
        let (first, second) = (Observer(seen), Observer(seen))
        for observer in [first, second, first] {
            bluejay.register(observer: observer)
            settle()
        }
        XCTAssertEqual(seen.texts, ["available true", "available true", "available true"])
        callbacks.suspend()
        simulator.simulatePowerOff()
        simulator.run()
        bluejay.unregister(observer: first)
        callbacks.resume()
        eventually("the end") { seen.count > 3 }
        XCTAssertEqual(seen.texts.dropFirst(3), ["available false"])
        withExtendedLifetime((first, second)) {}
    }
}
