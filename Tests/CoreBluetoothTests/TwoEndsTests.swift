import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// A central and a peripheral, both written against Core Bluetooth, on two adapters of one machine: nothing is lost, and
/// everything arrives in its order.
final class TwoEndsTests: CoreBluetoothCase, @unchecked Sendable {
    override var adapters: [VirtualAdapter] { [VirtualAdapter(), VirtualAdapter(index: 1)] }

    private var sender: Sender!
    private var peripheral: CBPeripheral!

    override func setUp() {
        super.setUp()
        CBCentralManager.defaultConfiguration = .init(
            busAddress: simulator.address, adapter: "hci0", pairingPolicy: .justWorks)
        CBPeripheralManager.defaultConfiguration = .init(busAddress: simulator.address, adapter: "hci1")
        sender = Sender(queue: callbacks)
        eventually("service") { self.sender.isReady }
        start()
        central.scanForPeripherals(withServices: [Sender.service])
        expect("discovered Sender")
        central.stopScan()
        peripheral = recorder.peripherals[0]
        central.connect(peripheral)
        expect("connected Sender")
        peripheral.discoverServices([Sender.service])
        expect("services nil")
        peripheral.discoverCharacteristics(nil, for: peripheral.services![0])
        expect("characteristics \(Sender.service) nil")
        recorder.notesValues = false
        seen.clear()
    }

    override func tearDown() {
        peripheral = nil
        sender = nil
        super.tearDown()
    }

    func testAHundredThousandNotifications() {
        let count = 100_000
        var received = 0
        recorder.onValue = { characteristic in
            let number = Sender.number(characteristic.value)
            if number != received { XCTFail("\(number) instead of \(received)") }
            received += 1
        }
        sender.count = count
        peripheral.setNotifyValue(true, for: characteristic(Sender.values, of: peripheral))
        eventually("the notifications", limit: 3_000) { received == count }
        XCTAssertGreaterThan(sender.refusals, 100)
        XCTAssertEqual(seen.texts, ["notifying \(Sender.values) true nil"])
    }

    func testTenThousandWritesOfEachKind() {
        let commands = characteristic(Sender.commands, of: peripheral)
        let count = 10_000
        var next = 0
        let send: (CBPeripheral) -> Void = { peripheral in
            while next < count, peripheral.canSendWriteWithoutResponse {
                peripheral.writeValue(Sender.bytes(next), for: commands, type: .withoutResponse)
                next += 1
            }
        }
        recorder.onReady = send
        callbacks.sync { send(peripheral) }
        eventually("the writes without response", limit: 3_000) { self.sender.written.count == count }
        XCTAssertEqual(sender.written, Array(0..<count))

        sender.written = []
        let requests = characteristic(Sender.requests, of: peripheral)
        var confirmed = 0
        recorder.onWrite = { characteristic in
            confirmed += 1
            guard confirmed < count else { return }
            characteristic.service?.peripheral?.writeValue(
                Sender.bytes(confirmed), for: characteristic, type: .withResponse)
        }
        peripheral.writeValue(Sender.bytes(0), for: requests, type: .withResponse)
        eventually("the writes with response", limit: 3_000) { confirmed == count }
        XCTAssertEqual(sender.written, Array(0..<count))
        XCTAssertEqual(seen.texts, [])
    }

    func testARefusedWriteIsASuccessIfTheCharacteristicAlsoTakesWritesWithoutResponse() {
        recorder.notesValues = true
        sender.result = .writeNotPermitted
        for uuid in [Sender.requests, Sender.both] {
            peripheral.writeValue(Sender.bytes(7), for: characteristic(uuid, of: peripheral), type: .withResponse)
        }
        eventually("both responses", limit: 60) { self.seen.texts.count == 2 }
        XCTAssertEqual(
            seen.texts.sorted(),
            [
                "written \(Sender.requests) CBATTError.\(CBATTError.writeNotPermitted.rawValue)",
                "written \(Sender.both) nil",
            ])
        eventually("both requests", limit: 60) { self.sender.written == [7, 7] }
    }
}

/// A peripheral that sends numbers as fast as it can and notes the numbers that are written, as a program for iOS does.
private final class Sender: NSObject, CBPeripheralManagerDelegate {
    static let service = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
    static let values = CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
    static let commands = CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")
    static let requests = CBUUID(string: "6E400004-B5A3-F393-E0A9-E50E24DCCA9E")
    static let both = CBUUID(string: "6E400005-B5A3-F393-E0A9-E50E24DCCA9E")

    private var manager: CBPeripheralManager!
    private let characteristic = CBMutableCharacteristic(
        type: values, properties: .notify, value: nil, permissions: .readable)
    private var sent = 0
    var count = 0
    var refusals = 0
    var written: [Int] = []
    var result = CBATTError.Code.success
    var isReady = false

    init(queue: DispatchQueue) {
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: queue)
    }

    static func bytes(_ number: Int) -> Data { Data((0..<4).map { UInt8(number >> ($0 * 8) & 0xFF) }) }
    static func number(_ value: Data?) -> Int { value.map { $0.reversed().reduce(0) { $0 << 8 | Int($1) } } ?? -1 }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let service = CBMutableService(type: Self.service, primary: true)
        service.characteristics = [
            characteristic,
            CBMutableCharacteristic(
                type: Self.commands, properties: .writeWithoutResponse, value: nil, permissions: .writeable),
            CBMutableCharacteristic(type: Self.requests, properties: .write, value: nil, permissions: .writeable),
            CBMutableCharacteristic(
                type: Self.both, properties: [.write, .writeWithoutResponse], value: nil, permissions: .writeable),
        ]
        peripheral.add(service)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        XCTAssertNil(error)
        peripheral.startAdvertising([
            CBAdvertisementDataLocalNameKey: "Sender", CBAdvertisementDataServiceUUIDsKey: [service.uuid],
        ])
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
        XCTAssertNil(error)
        isReady = true
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) { send() }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { send() }

    private func send() {
        while sent < count {
            guard manager.updateValue(Self.bytes(sent), for: characteristic, onSubscribedCentrals: nil) else {
                refusals += 1
                return
            }
            sent += 1
        }
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        written += requests.map { Self.number($0.value) }
        peripheral.respond(to: requests[0], withResult: result)
    }
}
