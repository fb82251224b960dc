import CoreBluetooth
import Foundation

/// The model of an app for iOS: finds a heart rate sensor, stays connected to it, and reports the heart rate.
final class HeartRateMonitor: NSObject {
    enum Status: Equatable {
        case unavailable
        case searching
        case connecting(name: String)
        case connected(name: String)
    }

    struct Reading {
        let beatsPerMinute: Int
        let hasContact: Bool?
        let intervals: [TimeInterval]
    }

    static let heartRateService = CBUUID(string: "180D")
    static let heartRateMeasurement = CBUUID(string: "2A37")
    static let bodySensorLocation = CBUUID(string: "2A38")
    static let heartRateControlPoint = CBUUID(string: "2A39")

    var onStatus: ((Status) -> Void)?
    var onReading: ((Reading) -> Void)?
    var onLocation: ((String) -> Void)?

    private(set) var status = Status.unavailable {
        didSet { if status != oldValue { onStatus?(status) } }
    }

    private var centralManager: CBCentralManager!
    private var sensor: CBPeripheral?
    private var controlPoint: CBCharacteristic?

    override init() {
        super.init()
        centralManager = CBCentralManager(delegate: self, queue: nil)
    }

    /// Sets the energy that the sensor has counted to zero.
    func resetEnergyExpended() {
        guard let sensor = sensor, let controlPoint = controlPoint else { return }
        sensor.writeValue(Data([1]), for: controlPoint, type: .withResponse)
    }

    func disconnect() {
        guard let sensor = sensor else { return }
        self.sensor = nil
        centralManager.cancelPeripheralConnection(sensor)
    }

    private func search() {
        status = .searching
        centralManager.scanForPeripherals(withServices: [Self.heartRateService])
    }

    private func reading(from data: Data) -> Reading? {
        let bytes = [UInt8](data)
        guard bytes.count >= 2 else { return nil }
        let isWide = bytes[0] & 0x01 != 0
        guard bytes.count >= (isWide ? 3 : 2) else { return nil }
        var index = isWide ? 3 : 2
        let rate = isWide ? Int(bytes[1]) | Int(bytes[2]) << 8 : Int(bytes[1])
        let hasContact = bytes[0] & 0x04 != 0 ? bytes[0] & 0x02 != 0 : nil
        if bytes[0] & 0x08 != 0 { index += 2 }
        var intervals: [TimeInterval] = []
        while bytes[0] & 0x10 != 0, index + 1 < bytes.count {
            intervals.append(TimeInterval(Int(bytes[index]) | Int(bytes[index + 1]) << 8) / 1024)
            index += 2
        }
        return Reading(beatsPerMinute: rate, hasContact: hasContact, intervals: intervals)
    }
}

extension HeartRateMonitor: CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        switch central.state {
        case .poweredOn:
            if let known = sensor { central.connect(known, options: nil) } else { search() }
        case .unknown, .resetting, .unsupported, .unauthorized, .poweredOff:
            status = .unavailable
        @unknown default:
            status = .unavailable
        }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        guard (advertisementData[CBAdvertisementDataIsConnectable] as? NSNumber)?.boolValue ?? false else { return }
        let name = advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? peripheral.name ?? "Unnamed"
        central.stopScan()
        sensor = peripheral
        peripheral.delegate = self
        status = .connecting(name: name)
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        status = .connected(name: peripheral.name ?? "Unnamed")
        peripheral.discoverServices([Self.heartRateService])
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        sensor = nil
        search()
    }

    func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) {
        controlPoint = nil
        guard peripheral === sensor else {
            status = .unavailable
            return
        }
        status = .connecting(name: peripheral.name ?? "Unnamed")
        central.connect(peripheral, options: nil)
    }
}

extension HeartRateMonitor: CBPeripheralDelegate {
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        guard let services = peripheral.services else { return }
        for service in services where service.uuid == Self.heartRateService {
            peripheral.discoverCharacteristics(nil, for: service)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        for characteristic in service.characteristics ?? [] {
            switch characteristic.uuid {
            case Self.heartRateMeasurement where characteristic.properties.contains(.notify):
                peripheral.setNotifyValue(true, for: characteristic)
            case Self.bodySensorLocation where characteristic.properties.contains(.read):
                peripheral.readValue(for: characteristic)
            case Self.heartRateControlPoint:
                controlPoint = characteristic
            default:
                break
            }
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        guard error == nil, let value = characteristic.value else { return }
        switch characteristic.uuid {
        case Self.heartRateMeasurement:
            if let reading = reading(from: value) { onReading?(reading) }
        case Self.bodySensorLocation:
            let places = ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"]
            if let place = value.first, Int(place) < places.count { onLocation?(places[Int(place)]) }
        default:
            break
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        peripheral.discoverServices([Self.heartRateService])
    }
}
