import CoreBluetooth
import Foundation

/// "Performing Common Peripheral Role Tasks" of Apple's Core Bluetooth Programming Guide, written for iOS: publishes a
/// service, advertises it, responds to requests, and sends updated values to subscribed centrals.
class PeripheralTasks: NSObject, CBPeripheralManagerDelegate {
    static let service = CBUUID(string: "180D")

    var peripheralManager: CBPeripheralManager!
    let measurement = CBMutableCharacteristic(
        type: CBUUID(string: "2A37"), properties: .notify, value: nil, permissions: .readable)
    let location = CBMutableCharacteristic(
        type: CBUUID(string: "2A38"), properties: .read, value: nil, permissions: .readable)
    let control = CBMutableCharacteristic(
        type: CBUUID(string: "2A39"), properties: .write, value: nil, permissions: .writeable)
    var locationValue = Data([1])
    var updates: [Data] = []
    var events: [String] = []

    override init() {
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil, options: nil)
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        peripheral.removeAllServices()
        let service = CBMutableService(type: Self.service, primary: true)
        service.characteristics = [measurement, location, control]
        peripheral.add(service)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error = error { return events.append("Error publishing \(error.localizedDescription)") }
        peripheral.startAdvertising([
            CBAdvertisementDataLocalNameKey: "Strap", CBAdvertisementDataServiceUUIDsKey: [service.uuid],
        ])
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        if let error = error { return events.append("Error advertising \(error.localizedDescription)") }
        events.append("Advertising")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        guard request.characteristic.uuid == location.uuid else { return }
        if request.offset > locationValue.count {
            return peripheral.respond(to: request, withResult: .invalidOffset)
        }
        request.value = locationValue.subdata(in: request.offset..<locationValue.count)
        peripheral.respond(to: request, withResult: .success)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for request in requests { events.append("Written \([UInt8](request.value!))") }
        peripheral.respond(to: requests[0], withResult: .success)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {
        events.append("Subscribed to \(characteristic.uuid)")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        events.append("Unsubscribed from \(characteristic.uuid)")
    }

    /// Sends values as fast as the queue of the manager takes them.
    func send(_ values: [Data]) {
        updates += values
        sendUpdates()
    }

    private func sendUpdates() {
        while let value = updates.first {
            let didSend = peripheralManager.updateValue(value, for: measurement, onSubscribedCentrals: nil)
            if !didSend { return }
            updates.removeFirst()
        }
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { sendUpdates() }
}
