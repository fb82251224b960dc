import BlueCapKit
import BlueZSimulator
import XCTest

/// What the Swift 5 language mode alone takes: closures that change the variables they captured, as the documents' do
/// with `discoveredPeripheral`.
final class CapturedVariablesTests: DocumentedCase, @unchecked Sendable {
    func testScanningKeepsWhatItDiscoveredInAVariable() {
        simulator.add(Sensor.peripheral)
        let manager = documentedManager()
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)

        var discoveredPeripheral: Peripheral?

        let scanFuture = manager.whenStateChanges().flatMap { state -> FutureStream<Peripheral> in
            switch state {
            case .poweredOn:
                return manager.startScanning(forServiceUUIDs: [serviceUUID], capacity: 10)
            default:
                throw CentralManagerError.isPoweredOff
            }
        }

        scanFuture.onSuccess { peripheral in
            discoveredPeripheral = peripheral
        }

        let connectionFuture = scanFuture.flatMap { [weak manager] peripheral -> FutureStream<Void> in
            manager?.stopScanning()
            discoveredPeripheral = peripheral
            return peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10.0)
        }

        var connections = 0
        connectionFuture.onSuccess {
            connections += 1
        }

        connectionFuture.onFailure { error in
            switch error {
            case PeripheralError.disconnected:
                discoveredPeripheral?.reconnect()
                break
            default:
                break
            }
        }

        eventually("the link") { connections == 1 }
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the link again") { connections == 2 }
        XCTAssertEqual(discoveredPeripheral?.name, "SensorTag")
    }

    func testNotificationsAreCountedInAVariable() throws {
        let characteristic = try connectedCharacteristic(Sensor.dataUUID)
        var updates = [Data]()

        let notificationFuture = characteristic.startNotifying().flatMap {
            characteristic -> FutureStream<(characteristic: Characteristic, data: Data?)> in
            characteristic.receiveNotificationUpdates(capacity: 10)
        }
        notificationFuture.onSuccess { (characteristic, data) in
            guard let data = data else { return }
            updates.append(data)
        }

        eventually("the subscription") { characteristic.isNotifying }
        settle()
        simulator.notify(Sensor.address, characteristic: AttributeSelector(Sensor.dataUUID), value: [1, 2, 3])
        eventually("the update") { updates == [Data([1, 2, 3])] }
    }
}
