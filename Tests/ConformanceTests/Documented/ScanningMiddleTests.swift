import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case invalidState
    case resetting
    case poweredOff
    case unknown
}

final class ScanningMiddleTests: DocumentedCase, @unchecked Sendable {
    /// The document's example; `self.manager` is made before.
    private func scan() {
        let manager: CentralManager = self.manager
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)

        let scanFuture = manager.whenStateChanges().flatMap { state -> FutureStream<Peripheral> in
            switch state {
            case .poweredOn:
                return self.manager.startScanning(forServiceUUIDs: [serviceUUID], capacity: 10)
            case .poweredOff:
                throw AppError.poweredOff
            case .unauthorized, .unsupported:
                throw AppError.invalidState
            case .resetting:
                throw AppError.resetting
            case .unknown:
                throw AppError.unknown
            }
        }

        scanFuture.onSuccess { peripheral in
            self.discoveredPeripheral = peripheral
        }

        scanFuture.onFailure { error in
            guard let appError = error as? AppError else {
                return
            }
            switch appError {
            case .invalidState:
                break
            case .resetting:
                self.seen.note("reset")
                manager.reset()
            case .poweredOff:
                break
            case .unknown:
                break
            }
        }
    }

    func testAScanKeepsWhatItDiscovered() {
        simulator.add(Sensor.peripheral)
        manager = documentedManager()
        scan()
        eventually("the sensor") { discoveredPeripheral != nil }
        XCTAssertEqual(discoveredPeripheral?.name, "SensorTag")
    }

    func testAResetAnswersTheDaemonsDeathAndTheScanBeginsAnew() {
        manager = documentedManager()
        scan()
        eventually("the scan") { manager.isScanning }
        simulator.simulateDaemonDeath()
        eventually("the reset") { seen.contains("reset") }
        simulator.simulateDaemonReturn()
        eventually("the scan again") { manager.poweredOn && manager.isScanning }
    }
}
