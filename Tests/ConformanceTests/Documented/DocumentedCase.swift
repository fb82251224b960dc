import BlueCapKit
import BlueZSimulator
// The tests of this folder import what the documents import; the waits come with the case.
@_exported import TestSupport
import XCTest

/// Where the documents' declarations and examples are tried: the sensor that they speak of, in a simulated room.
///
/// Time is virtual. Handlers run where the documents have them run, on the default context, which is a queue of its own;
/// `settle` waits for it, so that every run is the same.
///
/// This folder is compiled twice, in the Swift 6 language mode and, for the documents are older, in that of Swift 5.
// Unchecked: what handlers write here the test's thread reads after `settle` alone; `seen` has a lock of its own.
class DocumentedCase: XCTestCase, VirtualTimeCase, @unchecked Sendable {
    let simulator = Simulator.inProcess(room: .empty)
    /// What handlers of the test were called with.
    let seen = Notes()
    /// The manager of examples that say `self.manager`.
    var manager: CentralManager!
    /// The peripheral of examples that keep what they discovered.
    var discoveredPeripheral: Peripheral?
    /// Decides whether the sensor accepts connections.
    let shyness = Shyness()
    /// Where managers keep what they restore, for this test alone.
    private var stateHome: URL!

    override func setUpWithError() throws {
        stateHome = FileManager.default.temporaryDirectory.appendingPathComponent("conformance-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: stateHome, withIntermediateDirectories: true)
        setenv("XDG_STATE_HOME", stateHome.path, 1)
    }

    override func tearDownWithError() throws {
        settle()
        (manager, discoveredPeripheral) = (nil, nil)
        settle()
        unsetenv("XDG_STATE_HOME")
        try FileManager.default.removeItem(at: stateHome)
    }

    // MARK: The documents' manager

    /// A manager as each documented example makes it. The bus address is the only thing of ours.
    func documentedManager() -> CentralManager {
        CentralManager(options: [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address,
        ])
    }

    /// The same, when it has found Bluetooth on.
    func poweredManager() -> CentralManager {
        let manager = documentedManager()
        eventually("poweredOn") { manager.poweredOn }
        return manager
    }

    /// The sensor is in the room, `manager` has found Bluetooth on, and scans for it: the documents' `scanFuture`.
    func scanForTheSensor(_ sensor: VirtualPeripheral = Sensor.peripheral) -> FutureStream<Peripheral> {
        simulator.add(sensor, behavior: shyness)
        manager = poweredManager()
        return manager.startScanning(forServiceUUIDs: [Sensor.serviceUUID], capacity: 10)
    }

    /// The sensor, discovered and not connected.
    func discoveredSensor(_ sensor: VirtualPeripheral = Sensor.peripheral) throws -> Peripheral {
        _ = scanForTheSensor(sensor)
        eventually("the sensor") { !manager.peripherals.isEmpty }
        manager.stopScanning()
        return try XCTUnwrap(manager.peripherals.first)
    }

    /// The sensor, connected.
    func connectedSensor(_ sensor: VirtualPeripheral = Sensor.peripheral) throws -> Peripheral {
        let peripheral = try discoveredSensor(sensor)
        peripheral.connect()
        eventually("the link") { peripheral.state == .connected }
        return peripheral
    }

    /// A characteristic of a connected peripheral: what the documents' short examples begin with.
    func connectedCharacteristic(
        _ uuid: CBUUID, of sensor: VirtualPeripheral = Sensor.peripheral
    ) throws -> Characteristic {
        let peripheral = try outcome(connectedSensor(sensor).discoverServices([Sensor.serviceUUID]))
        let service = try outcome(XCTUnwrap(peripheral.service(Sensor.serviceUUID)).discoverAllCharacteristics())
        return try XCTUnwrap(service.characteristic(uuid))
    }

    // MARK: Waiting

    /// Runs all work that is due now: of the simulator and of the handlers.
    func settle() {
        for _ in 0..<4 {
            simulator.run()
            waitForTheDisk()
            simulator.run()
            (QueueContext.futuresDefault as? QueueContext)?.queue.sync {}
        }
        simulator.run()
    }

    var notedTexts: [String] { seen.texts }
}

/// A peripheral that can ignore connection requests.
// Unchecked: `ignores` is set and asked on the test's thread, which drives the simulator.
final class Shyness: PeripheralBehavior, @unchecked Sendable {
    var ignores = false

    func connectRequested(to peripheral: VirtualPeripheral, at seconds: TimeInterval) -> ConnectionAnswer {
        ignores ? .ignore : .accept(after: 0)
    }
}
