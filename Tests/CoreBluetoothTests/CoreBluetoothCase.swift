import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// A central manager on a simulator in virtual time, and a heart rate strap.
// Unchecked: the delegates write on the callback queue; the test reads after `settle`.
class CoreBluetoothCase: XCTestCase, VirtualTimeCase, @unchecked Sendable {
    static let address: VirtualAddress = "C0:00:00:00:00:01"
    static let heartRate = CBUUID(string: "180D")
    static let measurement = CBUUID(string: "2A37")
    static let location = CBUUID(string: "2A38")
    static let control = CBUUID(string: "2A39")

    /// The adapters of the machine.
    var adapters: [VirtualAdapter] { [VirtualAdapter()] }
    private(set) lazy var simulator = Simulator.inProcess(room: .empty, adapters: adapters)
    let callbacks = DispatchQueue(label: "callbacks")
    let strap = Strap()
    let seen = Notes()
    var notedTexts: [String] { seen.texts }
    lazy var recorder = Recorder(seen)
    var central: CBCentralManager!

    override func setUp() {
        let seen = seen
        CBManager.setLogHandler { seen.note("log \($0)") }
        CBCentralManager.defaultConfiguration.busAddress = simulator.address
        CBPeripheralManager.defaultConfiguration.busAddress = simulator.address
    }

    override func tearDown() {
        settle()
        central = nil
        recorder.peripherals = []
        settle()
        CBManager.setLogHandler(nil)
        CBCentralManager.defaultConfiguration = .init(pairingPolicy: .justWorks)
        CBPeripheralManager.defaultConfiguration = .init()
    }

    /// A strap with a service of each kind of characteristic, and device information.
    static func virtual(
        _ number: Int = 1, link: VirtualLink = VirtualLink(), security: VirtualSecurity = VirtualSecurity(),
        protection: AttributeSecurity = .none
    ) -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualAddress(stringLiteral: "C0:00:00:00:00:0\(number)"), addressType: .random,
            advertisement: Advertisement(
                localName: "Strap \(number)", serviceUUIDs: ["180D"], manufacturerData: [0x004C: [1, 2]],
                serviceData: ["180D": [9]], txPower: 4),
            interval: 0.1, services: services(protection: protection), link: link, security: security)
    }

    static func services(protection: AttributeSecurity = .none) -> [VirtualService] {
        [
            VirtualService(
                "180D",
                characteristics: [
                    VirtualCharacteristic("2A37", [.notify], value: [0, 60]),
                    VirtualCharacteristic("2A38", [.read, .write], value: [1], security: protection),
                    VirtualCharacteristic(
                        "2A39", [.write, .writeWithoutResponse],
                        descriptors: [VirtualDescriptor("2901", value: Array("Control".utf8))]),
                ]),
            VirtualService("180A", characteristics: [VirtualCharacteristic("2A29", [.read], value: [80])]),
        ]
    }

    // MARK: Time

    /// Runs the main queue until something is noted.
    func runMainQueue() {
        for _ in 0..<100 where seen.texts.isEmpty {
            simulator.run()
            _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01))
        }
    }

    /// Lets everything happen that can happen now.
    func settle() {
        for _ in 0..<4 {
            simulator.run()
            callbacks.sync {}
            simulator.run()
        }
    }

    /// Waits for a note, which is the only one.
    func expectOnly(_ text: String, limit: TimeInterval = 60, file: StaticString = #filePath, line: UInt = #line) {
        expect(text, limit: limit, file: file, line: line)
        XCTAssertEqual(seen.texts, [text], file: file, line: line)
    }

    // MARK: Beginnings

    func start(options: [String: Any]? = nil) {
        central = CBCentralManager(delegate: recorder, queue: callbacks, options: options)
        expect("state 5")
    }

    /// Started, and the strap is found.
    @discardableResult
    func find(_ virtual: VirtualPeripheral = virtual()) -> CBPeripheral {
        if central == nil { start() }
        simulator.add(virtual, behavior: strap)
        central.scanForPeripherals(withServices: [Self.heartRate])
        expect("discovered \(virtual.name ?? "")")
        central.stopScan()
        return recorder.peripherals.first { $0.name == virtual.name }!
    }

    @discardableResult
    func connect(_ virtual: VirtualPeripheral = virtual()) -> CBPeripheral {
        let peripheral = find(virtual)
        central.connect(peripheral)
        expect("connected Strap 1")
        return peripheral
    }

    /// Connected, and all services and characteristics are discovered.
    func discover(_ virtual: VirtualPeripheral = virtual()) -> CBPeripheral {
        let peripheral = connect(virtual)
        discover(on: peripheral)
        return peripheral
    }

    func discover(on peripheral: CBPeripheral) {
        seen.clear()
        peripheral.discoverServices(nil)
        expect("services nil")
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
        expect("characteristics 180D nil")
        expect("characteristics 180A nil")
        seen.clear()
    }

    /// The same, with one of the characteristics.
    func discover(_ uuid: CBUUID) -> (CBPeripheral, CBCharacteristic) {
        let peripheral = discover()
        return (peripheral, characteristic(uuid, of: peripheral))
    }

    func subscribe(to characteristic: CBCharacteristic, file: StaticString = #filePath, line: UInt = #line) {
        characteristic.service?.peripheral?.setNotifyValue(true, for: characteristic)
        expect("notifying \(characteristic.uuid) true nil", file: file, line: line)
    }

    /// The peripheral notifies a rate, which is reported once.
    func expectNotification(_ rate: UInt8, _ note: String = "", file: StaticString = #filePath, line: UInt = #line) {
        seen.clear()
        simulator.notify(Self.address, characteristic: .uuid("2A37"), value: [0, rate])
        settle()
        XCTAssertEqual(seen.texts, ["value 2A37 [0, \(rate)] nil"], note, file: file, line: line)
    }

    func characteristic(_ uuid: CBUUID, of peripheral: CBPeripheral) -> CBCharacteristic {
        peripheral.services!.flatMap { $0.characteristics ?? [] }.first { $0.uuid == uuid }!
    }
}

/// A delegate that notes every call, written as for iOS.
class Recorder: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    let seen: Notes
    var peripherals: [CBPeripheral] = []
    var advertisementData: [String: Any] = [:]
    var restored: [String: Any] = [:]
    var restoredPeripherals: [CBPeripheral]? {
        restored[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral]
    }
    var onValue: ((CBCharacteristic) -> Void)?
    var onWrite: ((CBCharacteristic) -> Void)?
    var onReady: ((CBPeripheral) -> Void)?
    var onState: ((CBCentralManager) -> Void)?
    var onServices: ((CBPeripheral) -> Void)?
    var onConnection: ((CBCentralManager, CBPeripheral) -> Void)?
    var onDisconnection: ((CBCentralManager, CBPeripheral) -> Void)?
    /// Whether values and writes are noted.
    var notesValues = true

    init(_ seen: Notes) { self.seen = seen }

    func text(_ error: (any Error)?) -> String {
        switch error {
        case nil: "nil"
        case let error as CBError: "CBError.\(error.code)"
        case let error as CBATTError: "CBATTError.\(error.code.rawValue)"
        default: "\(error!)"
        }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        seen.note("state \(central.state.rawValue)")
        onState?(central)
    }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        restored = dict
        seen.note("restore \(dict.keys.sorted().joined(separator: " "))")
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        self.advertisementData = advertisementData
        if !peripherals.contains(peripheral) { peripherals.append(peripheral) }
        seen.note("discovered \(peripheral.name ?? "nil")")
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        seen.note("connected \(peripheral.name ?? "nil")")
        peripheral.delegate = self
        onConnection?(central, peripheral)
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        seen.note("failed \(text(error))")
    }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        seen.note("disconnected \(text(error))")
        onDisconnection?(central, peripheral)
    }

    func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) {
        seen.note("event \(event.rawValue)")
    }

    func peripheralDidUpdateName(_ peripheral: CBPeripheral) { seen.note("name \(peripheral.name ?? "nil")") }

    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        seen.note("modified \(invalidatedServices.map(\.uuid.uuidString).joined(separator: " "))")
    }

    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
        seen.note("rssi \(RSSI) \(text(error))")
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        seen.note("services \(text(error))")
        onServices?(peripheral)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) {
        seen.note("included \(service.uuid) \(text(error))")
    }

    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {
        seen.note("characteristics \(service.uuid) \(text(error))")
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if notesValues {
            let bytes = characteristic.value.map { Array($0) } ?? []
            seen.note("value \(characteristic.uuid) \(bytes) \(text(error))")
        }
        onValue?(characteristic)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if notesValues { seen.note("written \(characteristic.uuid) \(text(error))") }
        onWrite?(characteristic)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        seen.note("notifying \(characteristic.uuid) \(characteristic.isNotifying) \(text(error))")
    }

    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        seen.note("descriptors \(characteristic.uuid) \(text(error))")
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
        seen.note("descriptor \(descriptor.uuid) \(descriptor.value ?? "nil") \(text(error))")
    }

    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?) {
        seen.note("descriptor written \(descriptor.uuid) \(text(error))")
    }

    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {
        if notesValues { seen.note("ready") }
        onReady?(peripheral)
    }

    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        seen.note("channel \(channel == nil ? "nil" : "open") \(text(error))")
    }
}

/// A delegate that has both methods for the end of a connection.
final class TimestampRecorder: NSObject, CBCentralManagerDelegate {
    let seen: Notes

    init(_ seen: Notes) { self.seen = seen }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {}

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { seen.note("again") }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        XCTFail("Replaced by the method with a time stamp.")
    }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?
    ) {
        seen.note("lost \(isReconnecting) \(error == nil)")
    }
}
