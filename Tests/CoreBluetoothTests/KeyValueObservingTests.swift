import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// `observe(_:options:changeHandler:)`, as programs use it on Apple's platforms.
final class KeyValueObservingTests: CoreBluetoothCase, @unchecked Sendable {
    private func text<Value>(_ change: NSKeyValueObservedChange<Value>) -> String {
        "\(change.oldValue.map { "\($0)" } ?? "-") \(change.newValue.map { "\($0)" } ?? "-")"
    }

    func testTheStateIsReportedBeforeTheDelegateIsCalled() {
        let seen = seen
        central = CBCentralManager(delegate: recorder, queue: callbacks)
        let observation = central.observe(\.state, options: [.initial, .new, .old]) { central, change in
            seen.note("observed \(self.text(change)) \(central.state.rawValue)")
        }
        expect("state 5")
        XCTAssertEqual(seen.texts, ["observed - unknown 0", "observed unknown poweredOn 5", "state 5"])
        seen.clear()
        simulator.simulatePowerOff()
        expect("state 4")
        XCTAssertEqual(seen.texts, ["observed poweredOn poweredOff 4", "state 4"])
        seen.clear()
        observation.invalidate()
        simulator.simulatePowerOn()
        expectOnly("state 5")
    }

    func testTheScanIsObserved() {
        let seen = seen
        start()
        seen.clear()
        var observation: NSKeyValueObservation? = central.observe(\.isScanning, options: .new) { _, change in
            dispatchPrecondition(condition: .onQueue(self.callbacks))
            seen.note(self.text(change))
        }
        central.scanForPeripherals(withServices: nil)
        settle()
        central.stopScan()
        settle()
        central.scanForPeripherals(withServices: nil)
        settle()
        simulator.simulatePowerOff()
        expect("state 4")
        XCTAssertEqual(seen.texts, ["- true", "- false", "- true", "- false", "state 4"])
        seen.clear()
        withExtendedLifetime(observation) {}
        observation = nil
        simulator.simulatePowerOn()
        expect("state 5")
        central.scanForPeripherals(withServices: nil)
        settle()
        XCTAssertEqual(seen.texts, ["state 5"], "The observation has ended with its object.")
    }

    func testTheStateOfAPeripheralIsObserved() {
        let seen = seen
        let peripheral = find()
        seen.clear()
        let observation = peripheral.observe(\.state, options: [.old, .new]) { _, change in
            seen.note("\(change.oldValue!.rawValue) \(change.newValue!.rawValue)")
        }
        central.connect(peripheral)
        expect("connected Strap 1")
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        XCTAssertEqual(
            seen.texts.filter { $0.count == 3 }, ["0 1", "1 2", "2 3", "3 0"], "disconnected, connecting, connected, …")
        observation.invalidate()
    }

    func testTheAdvertisementIsObserved() {
        let seen = seen
        let manager = CBPeripheralManager(delegate: nil, queue: callbacks)
        eventually("power") { manager.state == .poweredOn }
        let observation = manager.observe(\.isAdvertising, options: [.new]) { _, change in seen.note(self.text(change))
        }
        manager.startAdvertising([CBAdvertisementDataLocalNameKey: "Strap"])
        eventually("the advertisement") { !self.simulator.advertisements.isEmpty }
        manager.stopAdvertising()
        eventually("the end") { self.simulator.advertisements.isEmpty }
        XCTAssertEqual(seen.texts, ["- true", "- false"])
        observation.invalidate()
    }
}
