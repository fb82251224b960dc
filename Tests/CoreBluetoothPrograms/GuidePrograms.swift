import CoreBluetooth
import Foundation

// Programs as Apple's Core Bluetooth Programming Guide describes them, chapter by chapter, written for iOS.

/// "Performing Common Central Role Tasks": discovers, connects, explores, reads, writes and subscribes.
class CentralTasks: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    var centralManager: CBCentralManager!
    var discoveredPeripheral: CBPeripheral?
    var events: [String] = []

    override init() {
        super.init()
        centralManager = CBCentralManager(delegate: self, queue: nil, options: nil)
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: nil, options: nil) }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        events.append("Discovered \(peripheral.name ?? "")")
        discoveredPeripheral = peripheral
        central.stopScan()
        central.connect(peripheral, options: nil)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.delegate = self
        peripheral.discoverServices(nil)
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services! {
            events.append("Service \(service.uuid.uuidString)")
            peripheral.discoverCharacteristics(nil, for: service)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        for characteristic in service.characteristics! {
            events.append("Characteristic \(characteristic.uuid.uuidString)")
            if characteristic.properties.contains(.read) { peripheral.readValue(for: characteristic) }
            if characteristic.properties.contains(.notify) { peripheral.setNotifyValue(true, for: characteristic) }
            if characteristic.properties.contains(.write) {
                peripheral.writeValue(Data([7]), for: characteristic, type: .withResponse)
            }
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        if let error = error { return events.append("Error \(error.localizedDescription)") }
        events.append("Value \(characteristic.uuid.uuidString) \([UInt8](characteristic.value!))")
    }

    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?) {
        events.append("Wrote \(characteristic.uuid.uuidString) \(error?.localizedDescription ?? "")")
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        if let error = error { return events.append("Error \(error.localizedDescription)") }
        events.append("Subscribed \(characteristic.uuid.uuidString)")
    }
}

/// "Core Bluetooth Background Processing": state preservation and restoration.
class RestoringProgram: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    static let service = CBUUID(string: "180D")
    static let measurement = CBUUID(string: "2A37")

    var centralManager: CBCentralManager!
    var peripherals: [CBPeripheral] = []
    var events: [String] = []

    override init() {
        super.init()
        centralManager = CBCentralManager(
            delegate: self, queue: nil,
            options: [CBCentralManagerOptionRestoreIdentifierKey: "myCentralManagerIdentifier"])
    }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        events.append("Restored")
        peripherals = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? []
        for peripheral in peripherals { peripheral.delegate = self }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        if peripherals.isEmpty { return central.scanForPeripherals(withServices: [Self.service]) }
        for peripheral in peripherals {
            // Continues where the earlier process was.
            guard peripheral.state == .connected else {
                central.connect(peripheral)
                continue
            }
            let index = peripheral.services?.firstIndex { $0.uuid == Self.service }
            if index == nil { peripheral.discoverServices([Self.service]) }
        }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        central.stopScan()
        peripherals.append(peripheral)
        peripheral.delegate = self
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([Self.service])
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics([Self.measurement], for: service)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        for characteristic in service.characteristics ?? [] {
            if characteristic.isNotifying { events.append("Still subscribed") }
            peripheral.setNotifyValue(true, for: characteristic)
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        events.append("Subscribed")
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        events.append("Value \([UInt8](characteristic.value ?? Data()))")
    }
}

/// "Best Practices for Interacting with a Remote Peripheral Device": retrieves before it scans, asks only for what it
/// needs, and disconnects when it has it.
class FrugalProgram: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    static let service = CBUUID(string: "180D")
    static let measurement = CBUUID(string: "2A37")

    var centralManager: CBCentralManager!
    var peripheral: CBPeripheral?
    var knownIdentifier: UUID?
    var events: [String] = []

    init(knownIdentifier: UUID?) {
        self.knownIdentifier = knownIdentifier
        super.init()
        centralManager = CBCentralManager(delegate: self, queue: nil)
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        let known = knownIdentifier.map { central.retrievePeripherals(withIdentifiers: [$0]) } ?? []
        if let peripheral = known.first ?? central.retrieveConnectedPeripherals(withServices: [Self.service]).first {
            events.append("Retrieved")
            return connect(peripheral)
        }
        central.scanForPeripherals(withServices: [Self.service], options: nil)
    }

    func connect(_ peripheral: CBPeripheral) {
        self.peripheral = peripheral
        knownIdentifier = peripheral.identifier
        peripheral.delegate = self
        centralManager.connect(peripheral, options: [CBConnectPeripheralOptionNotifyOnDisconnectionKey: true])
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        events.append("Discovered")
        central.stopScan()
        connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([Self.service])
    }

    func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) {
        events.append("Disconnected \(error == nil)")
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        guard let service = peripheral.services?.first else { return }
        peripheral.discoverCharacteristics([Self.measurement], for: service)
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        guard let characteristic = service.characteristics?.first else { return }
        peripheral.setNotifyValue(true, for: characteristic)
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        events.append("Value \([UInt8](characteristic.value ?? Data()))")
        peripheral.setNotifyValue(false, for: characteristic)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        if !characteristic.isNotifying { centralManager.cancelPeripheralConnection(peripheral) }
    }
}
