import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

/// The tests of Bluejay's guide: a heart rate sensor as in its demo, in a simulated room in virtual time.
///
/// Callbacks run on a queue of the test, since the main queue runs only while a test runs it; one test does that.
// Unchecked: what callbacks write here the test's thread reads after `settle` alone; `seen` has a lock of its own.
class DocumentedBluejayCase: XCTestCase, VirtualTimeCase, @unchecked Swift.Sendable {
    static let address: VirtualAddress = "C0:FF:EE:00:18:0D"

    let simulator = Simulator.inProcess(room: .empty)
    let seen = Notes()
    let callbacks = DispatchQueue(label: "callbacks")
    /// The guide's `bluejay`.
    var bluejay: Bluejay!
    private var stateHome: URL!

    /// What LightBlue Explorer calls a heart rate sensor, and two services of other examples.
    static let sensor = VirtualPeripheral(
        address, addressType: .random,
        advertisement: Advertisement(localName: "Heart", serviceUUIDs: ["180D", "180A"]),
        interval: 0.1,
        services: [
            VirtualService(
                "180D",
                characteristics: [
                    VirtualCharacteristic("2A37", [.notify], value: [0, 60]),
                    VirtualCharacteristic("2A38", [.read, .write], value: [1]),
                ]),
            VirtualService("180A", characteristics: [VirtualCharacteristic("2A25", [.read], value: Array("S-7".utf8))]),
            VirtualService(
                "2456E1B9-26E2-8F83-E744-F34F01E9D701",
                characteristics: [
                    VirtualCharacteristic("2456E1B9-26E2-8F83-E744-F34F01E9D703", [.notify]),
                    VirtualCharacteristic("2456E1B9-26E2-8F83-E744-F34F01E9D704", [.write]),
                ]),
        ])

    override func setUpWithError() throws {
        stateHome = FileManager.default.temporaryDirectory.appendingPathComponent("bluejay-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: stateHome, withIntermediateDirectories: true)
        setenv("XDG_STATE_HOME", stateHome.path, 1)
        // The environment sets what the examples leave open.
        setenv("DBUS_SYSTEM_BUS_ADDRESS", simulator.address, 1)
        bluejay = Bluejay(callbackQueue: callbacks)
    }

    override func tearDownWithError() throws {
        settle()
        bluejay = nil
        settle()
        unsetenv("XDG_STATE_HOME")
        unsetenv("DBUS_SYSTEM_BUS_ADDRESS")
        try FileManager.default.removeItem(at: stateHome)
    }

    // MARK: Beginnings

    func startBluejay() {
        bluejay.start()
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
    }

    /// Started, with the sensor in the room and found.
    func discoveredSensor(_ peripheral: VirtualPeripheral = DocumentedBluejayCase.sensor) -> PeripheralIdentifier {
        if !bluejay.hasStarted { startBluejay() }
        simulator.add(peripheral)
        var found: PeripheralIdentifier?
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { discovery, _ in
                found = discovery.peripheralIdentifier
                return .stop
            }, stopped: { _, _ in })
        eventually("the sensor") { found != nil && !bluejay.isScanning }
        return found ?? PeripheralIdentifier(uuid: UUID(), name: nil)
    }

    @discardableResult
    func connectedSensor() -> PeripheralIdentifier {
        let identifier = discoveredSensor()
        bluejay.connect(identifier) { _ in }
        eventually("the connection") { bluejay.isConnected }
        return identifier
    }

    func notify(_ bytes: [UInt8], from uuid: String = "2A37") {
        simulator.notify(Self.address, characteristic: .uuid(uuid), value: bytes)
        settle()
    }

    /// Waits until a central is subscribed.
    func awaitListen(_ uuid: String = "2A37") {
        eventually("the listen") { !simulator.subscriptions(to: .uuid(uuid), at: Self.address).isEmpty }
        pass(0.3)
    }

    // MARK: Waiting

    /// Runs all work that is due now: of the simulator, of callbacks, of the background task.
    func settle() {
        for _ in 0..<4 {
            simulator.run()
            waitForTheDisk()
            simulator.run()
            callbacks.sync {}
            if let bluejay { XCTAssertTrue(bluejay.awaitBackgroundTask()) }
        }
        simulator.run()
    }

    var notedTexts: [String] { seen.texts }
}
