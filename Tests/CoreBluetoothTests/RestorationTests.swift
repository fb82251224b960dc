@testable import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// What a process finds that follows one that was killed.
///
/// A manager that keeps its links when it is released leaves what a killed process leaves.
final class RestorationTests: CoreBluetoothCase, @unchecked Sendable {
    private var folder = ""
    private var options: [String: Any] = [:]

    override func setUp() {
        super.setUp()
        folder = NSTemporaryDirectory() + "corebluetooth-tests-" + UUID().uuidString
        options = [
            CBCentralManagerOptionRestoreIdentifierKey: "central", "CentralManagerOptionStateDirectoryKey": folder,
            "CentralManagerOptionKeepsLinksKey": true,
        ]
    }

    override func tearDown() {
        super.tearDown()
        waitForTheDisk()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func waitForTheDisk() {
        RestorationKeeper.waitForAll()
        settle()
    }

    /// - Parameter delegate: That of the second process; `nil` for the recorder.
    private func restart(_ delegate: (any CBCentralManagerDelegate)? = nil) {
        pass(1)
        waitForTheDisk()
        central = nil
        recorder.peripherals = []
        settle()
        waitForTheDisk()
        seen.clear()
        central = CBCentralManager(delegate: delegate ?? recorder, queue: callbacks, options: options)
        waitForTheDisk()
        expect("state 5")
    }

    private func begin() {
        central = CBCentralManager(delegate: recorder, queue: callbacks, options: options)
        waitForTheDisk()
        expect("state 5")
    }

    func testNothingIsRestoredOnTheFirstRun() {
        begin()
        XCTAssertEqual(seen.texts, ["state 5"])
    }

    func testAConnectedPeripheralIsRestoredBeforeTheState() throws {
        begin()
        let identifier = discover().identifier
        let measurement = characteristic(Self.measurement, of: recorder.peripherals[0])
        recorder.peripherals[0].setNotifyValue(true, for: measurement)
        expect("notifying 2A37 true nil")
        restart()
        XCTAssertEqual(seen.texts, ["restore \(CBCentralManagerRestoredStatePeripheralsKey)", "state 5"])
        let peripherals = recorder.restoredPeripherals
        let peripheral = try XCTUnwrap(peripherals?.first)
        XCTAssertEqual(peripheral.identifier, identifier)
        XCTAssertTrue(central.retrievePeripherals(withIdentifiers: [identifier]).first === peripheral)
        peripheral.delegate = recorder
        eventually("the link") { peripheral.state == .connected }
        pass(2)
        XCTAssertEqual(seen.texts.count, 2, "A link that was up is not reported with didConnect.")

        discover(on: peripheral)
        let restored = characteristic(Self.measurement, of: peripheral)
        XCTAssertTrue(restored.isNotifying, "The subscription was resumed.")
        simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [0, 61])
        settle()
        XCTAssertEqual(seen.texts, ["value 2A37 [0, 61] nil"])
        seen.clear()
        simulator.simulateLinkLoss(of: Self.address)
        expect("disconnected CBError.peripheralDisconnected")
        pass(30)
        XCTAssertEqual(peripheral.state, .disconnected)
    }

    private func subscribe() {
        let peripheral = discover()
        peripheral.setNotifyValue(true, for: characteristic(Self.measurement, of: peripheral))
    }

    /// As programs do: in the first callback with `poweredOn`, before BlueCapKit has resumed the subscription.
    private func discoverRestoredAtOnce() {
        recorder.onState = { [recorder] _ in
            for peripheral in recorder.restoredPeripherals ?? [] {
                XCTAssertEqual(peripheral.state, .connected)
                peripheral.delegate = recorder
                peripheral.discoverServices(nil)
            }
        }
        recorder.onServices = { peripheral in
            for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
        }
    }

    func testASubscriptionIsRestoredIfTheServicesAreDiscoveredAtOnce() throws {
        begin()
        subscribe()
        expect("notifying 2A37 true nil")
        discoverRestoredAtOnce()
        restart()
        expect("characteristics 180D nil")
        let peripherals = recorder.restoredPeripherals
        let peripheral = try XCTUnwrap(peripherals?.first)
        XCTAssertTrue(characteristic(Self.measurement, of: peripheral).isNotifying)
        pass(2)
        expectNotification(61)
    }

    func testARestoredSubscriptionThatIsRefusedIsReported() throws {
        begin()
        subscribe()
        expect("notifying 2A37 true nil")
        discoverRestoredAtOnce()
        simulator.simulateRefusedCalls(of: "StartNotify", error: .notSupported)
        // The refusal comes after the discovery.
        simulator.simulateSlowReplies(by: 0.5)
        restart()
        expect("notifying 2A37 false CBATTError.6")
        let peripherals = recorder.restoredPeripherals
        let measurement = characteristic(Self.measurement, of: try XCTUnwrap(peripherals?.first))
        XCTAssertFalse(measurement.isNotifying)
        peripherals?[0].setNotifyValue(true, for: measurement)
        expect("notifying 2A37 true nil")
        simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [0, 61])
        expect("value 2A37 [0, 61] nil")
    }

    /// Swift on Linux cannot call a method that only a subclass of the conforming class has. Nothing ends that the program
    /// does not know of.
    func testWithoutAMethodForThemRestoredConnectionsAreKeptAndAMessageSaysSo() throws {
        begin()
        connect()
        let delegate = RestoringSubclass(seen)
        restart(delegate)
        pass(60)
        XCTAssertEqual(simulator.links.count, 1)
        XCTAssertEqual(seen.texts.count, 2, "\(seen.texts)")
        XCTAssertTrue(
            seen.texts[0].hasPrefix("log RestoringSubclass has no centralManager(_:willRestoreState:)"), seen.texts[0])
        let peripheral = try XCTUnwrap(central.retrieveConnectedPeripherals(withServices: [Self.heartRate]).first)
        peripheral.delegate = recorder
        discover(on: peripheral)
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the end of the link") { self.seen.texts.last == "lost" }
    }

    func testARequestedConnectionIsRestored() throws {
        begin()
        let peripheral = find()
        simulator.simulateOutOfRange(of: Self.address)
        central.connect(peripheral)
        restart()
        let restored = recorder.restoredPeripherals
        XCTAssertEqual(restored?.first?.state, .connecting)
        simulator.simulateOutOfRange(false, of: Self.address)
        expect("connected Strap 1", limit: 300)
    }

    func testAScanIsResumedWithItsServices() {
        begin()
        central.scanForPeripherals(
            withServices: [Self.heartRate], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        restart()
        XCTAssertEqual(recorder.restored[CBCentralManagerRestoredStateScanServicesKey] as? [CBUUID], [Self.heartRate])
        let options = recorder.restored[CBCentralManagerRestoredStateScanOptionsKey] as? [String: Any]
        XCTAssertEqual(options?[CBCentralManagerScanOptionAllowDuplicatesKey] as? Bool, true)
        XCTAssertTrue(central.isScanning)
        simulator.add(Self.virtual(), behavior: strap)
        expect("discovered Strap 1")
    }

    func testAConnectOfARestoredPeripheralIsReportedOnce() throws {
        begin()
        connect()
        recorder.onState = { [recorder] central in
            let peripherals = recorder.restoredPeripherals
            for peripheral in peripherals ?? [] { central.connect(peripheral) }
        }
        restart()
        pass(10)
        XCTAssertEqual(
            seen.texts, ["restore \(CBCentralManagerRestoredStatePeripheralsKey)", "state 5", "connected Strap 1"])
    }

    func testAnIdentifierInUseIsALogMessage() {
        begin()
        let other = CBCentralManager(delegate: recorder, queue: callbacks, options: options)
        waitForTheDisk()
        eventually("the state of both") { self.seen.texts.filter { $0 == "state 5" }.count == 2 }
        XCTAssertTrue(seen.texts.contains { $0.hasPrefix("log Another running manager saves its state") })
        withExtendedLifetime(other) {}
    }
}

/// A library's delegate. As on iOS, a subclass adds the methods that restoration needs.
private class RestoringBase: NSObject, CBCentralManagerDelegate {
    let seen: Notes

    init(_ seen: Notes) { self.seen = seen }

    func centralManagerDidUpdateState(_ central: CBCentralManager) { seen.note("state \(central.state.rawValue)") }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        seen.note("lost")
    }
}

private final class RestoringSubclass: RestoringBase {
    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        XCTFail("Swift on Linux cannot call it; if it can now, CoreBluetooth.md has to change.")
    }
}
