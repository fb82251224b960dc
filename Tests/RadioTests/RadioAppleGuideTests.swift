import BlueCapKit
import CoreBluetooth
@testable import CoreBluetoothPrograms
@testable import HeartRateMonitorExample
import XCTest

/// Ring 4: the programs of Apple's guide on real `bluetoothd`, the central ones on `hci0`, the peripheral one on `hci1`.
final class RadioAppleGuideTests: XCTestCase {
    private var peripheral: PeripheralTasks!

    override func setUpWithError() throws {
        try RadioLab.reset()
        CBCentralManager.defaultConfiguration.adapter = "hci0"
        CBPeripheralManager.defaultConfiguration.adapter = "hci1"
        peripheral = PeripheralTasks()
        wait("the advertisement") { $0.peripheral.events.last == "Advertising" }
    }

    override func tearDown() {
        peripheral = nil
        CBCentralManager.defaultConfiguration = .init(pairingPolicy: .justWorks)
        CBPeripheralManager.defaultConfiguration = .init()
    }

    /// Runs the main queue, on which the delegates are called, until the condition holds.
    private func wait(
        _ what: String, file: StaticString = #filePath, line: UInt = #line,
        until condition: (RadioAppleGuideTests) -> Bool
    ) {
        let end = Date(timeIntervalSinceNow: 90)
        while !condition(self) {
            guard Date() < end else {
                return XCTFail("\(what) did not happen; \(peripheral.events)", file: file, line: line)
            }
            _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.05))
        }
    }

    /// Sends a value as soon as a central has subscribed.
    private func send(_ bytes: [UInt8]...) {
        wait("the subscription") { $0.peripheral.events.last == "Subscribed to 2A37" }
        peripheral.send(bytes.map { Data($0) })
    }

    func testTheTasksOfBothRoles() {
        let central = CentralTasks()
        wait("the tasks of the central") { _ in central.events.contains("Wrote 2A39 ") }
        wait("the value") { _ in central.events.contains("Value 2A38 [1]") }
        wait("the subscription") { _ in central.events.contains("Subscribed 2A37") }
        XCTAssertTrue(peripheral.events.contains("Written [7]"))
        XCTAssertEqual(central.events.first, "Discovered Strap")
        wait("the subscription") { $0.peripheral.events.contains("Subscribed to 2A37") }
        peripheral.send((0..<200).map { Data([0, UInt8($0)]) })
        wait("the values") { _ in central.events.last == "Value 2A37 [0, 199]" }
        XCTAssertEqual(
            central.events.filter { $0.hasPrefix("Value 2A37") }, (0..<200).map { "Value 2A37 [0, \($0)]" })
        central.centralManager.cancelPeripheralConnection(central.discoveredPeripheral!)
        wait("the end of the subscription") { $0.peripheral.events.last == "Unsubscribed from 2A37" }
    }

    func testARestoredProgramContinues() {
        let folder = NSTemporaryDirectory() + "corebluetooth-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        CBCentralManager.defaultConfiguration.stateDirectory = folder
        CBCentralManager.defaultConfiguration.keepsLinks = true
        var program: RestoringProgram? = RestoringProgram()
        wait("the subscription") { _ in program?.events.last == "Subscribed" }
        let file = folder + "/central/myCentralManagerIdentifier.json"
        wait("the state on the disk") { _ in
            (try? String(contentsOfFile: file, encoding: .utf8))?.contains("2A37") == true
        }
        // As if the process had been killed: the link stays.
        program?.centralManager = nil
        program = nil

        let next = RestoringProgram()
        wait("the subscription") { _ in next.events.contains("Subscribed") }
        XCTAssertEqual(next.events.first, "Restored")
        peripheral.send([Data([0, 64])])
        wait("the value") { _ in next.events.last == "Value [0, 64]" }
        next.peripherals.forEach { next.centralManager.cancelPeripheralConnection($0) }
        wait("the end of the subscription") { $0.peripheral.events.last == "Unsubscribed from 2A37" }
    }

    func testAFrugalProgramRetrievesAndDisconnects() {
        let program = FrugalProgram(knownIdentifier: nil)
        send([0, 65])
        wait("the end") { _ in program.events.last == "Disconnected true" }
        XCTAssertEqual(program.events, ["Discovered", "Value [0, 65]", "Disconnected true"])
        wait("the end of the subscription") { $0.peripheral.events.last == "Unsubscribed from 2A37" }
        let next = FrugalProgram(knownIdentifier: program.knownIdentifier)
        send([0, 66])
        wait("the end") { _ in next.events.last == "Disconnected true" }
        XCTAssertEqual(next.events, ["Retrieved", "Value [0, 66]", "Disconnected true"])
    }

    func testTheHeartRateMonitorFollowsItsSensorOverARestartOfTheDaemon() throws {
        let monitor = HeartRateMonitor()
        var readings: [Int] = []
        monitor.onReading = { readings.append($0.beatsPerMinute) }
        send([0, 61])
        wait("the heart rate") { _ in readings == [61] }
        peripheral.events = []
        try RadioLab.order(.server, "bluetoothd", "restart")
        send([0, 62])
        wait("the heart rate") { _ in readings.last == 62 }
        monitor.disconnect()
        wait("the end of the subscription") { $0.peripheral.events.last == "Unsubscribed from 2A37" }
    }

    /// BlueZ reports the ends of the links before that of the power, and the program receives the state first.
    func testTheEndOfThePowerIsReportedBeforeThatOfTheConnection() throws {
        let notes = PowerNotes()
        wait("the connection") { _ in notes.events.last == "connected" }
        try RadioLab.order(.server, "power", "hci0", "off")
        wait("the end of the connection") { _ in notes.events.contains { $0.hasPrefix("disconnected") } }
        XCTAssertEqual(notes.events, ["state 5", "connected", "state 4", "disconnected 0"])
        try RadioLab.order(.server, "power", "hci0", "on")
        wait("the power") { _ in notes.events.last == "state 5" }
    }
}

/// A program that connects to the first heart rate sensor.
private final class PowerNotes: NSObject, CBCentralManagerDelegate {
    private(set) var events: [String] = []
    private var central: CBCentralManager!
    private var sensor: CBPeripheral?

    override init() {
        super.init()
        central = CBCentralManager(delegate: self, queue: nil)
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        events.append("state \(central.state.rawValue)")
        if central.state == .poweredOn, sensor == nil {
            central.scanForPeripherals(withServices: [CBUUID(string: "180D")])
        }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        guard sensor == nil else { return }
        sensor = peripheral
        central.stopScan()
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { events.append("connected") }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        events.append("disconnected \((error as? CBError)?.code.rawValue ?? -1)")
    }
}
