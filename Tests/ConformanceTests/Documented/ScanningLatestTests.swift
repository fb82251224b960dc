import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case unauthorized
    case unknown
    case unsupported
    case resetting
    case poweredOff
    case poweredOn
    case unlikely
    // The document throws it and forgets to list it.
    case invalidState
}

final class ScanningLatestTests: DocumentedCase, @unchecked Sendable {
    /// The document's example, with the two omissions of its `guard` and `case default` mended.
    private func scan(with manager: CentralManager) {
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)

        let scanFuture = manager.whenStateChanges().flatMap { [weak manager] state -> FutureStream<Peripheral> in
            guard let manager = manager else {
                throw AppError.unlikely
            }
            switch state {
            case .poweredOn:
                return manager.startScanning(forServiceUUIDs: [serviceUUID], capacity: 10)
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

        scanFuture.onFailure { [weak manager] error in
            guard let manager = manager, let appError = error as? AppError else {
                return
            }
            switch appError {
            case AppError.invalidState:
                self.seen.note("invalidState")
                manager.stopScanning()
                break
            case AppError.resetting:
                self.seen.note("reset")
                manager.stopScanning()
                manager.reset()
            case AppError.poweredOff:
                self.seen.note("poweredOff")
                manager.stopScanning()
                break
            case AppError.unknown:
                manager.stopScanning()
                break
            default:
                break
            }
        }
    }

    func testAScanKeepsWhatItDiscovered() {
        simulator.add(Sensor.peripheral)
        let manager = documentedManager()
        scan(with: manager)
        eventually("the sensor") { discoveredPeripheral != nil }
        XCTAssertEqual(discoveredPeripheral?.name, "SensorTag")
    }

    func testThePowersEndStopsTheScan() {
        let manager = documentedManager()
        scan(with: manager)
        eventually("the scan") { manager.isScanning }
        simulator.simulatePowerOff()
        eventually("poweredOff") { seen.contains("poweredOff") && !manager.isScanning }
    }

    func testAResetAnswersTheDaemonsDeathAndTheScanBeginsAnew() {
        let manager = documentedManager()
        scan(with: manager)
        eventually("the scan") { manager.isScanning }
        simulator.simulateDaemonDeath()
        eventually("the reset") { seen.contains("reset") }
        simulator.simulateDaemonReturn()
        eventually("the scan again") { manager.poweredOn && manager.isScanning }
    }

    func testAnAdapterThatIsGoneStopsTheScan() {
        let manager = documentedManager()
        scan(with: manager)
        eventually("the scan") { manager.isScanning }
        simulator.simulateAdapterRemoval()
        eventually("unsupported") { seen.contains("invalidState") && !manager.isScanning }
    }
}
