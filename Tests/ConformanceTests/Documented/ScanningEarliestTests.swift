import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case invalidState
    case resetting
    case poweredOff
    case unknown
}

final class ScanningEarliestTests: DocumentedCase, @unchecked Sendable {
    /// The document's example; `self.manager` is made before.
    private func scan() -> FutureStream<Peripheral> {
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.UUID)

        let scanFuture = manager.whenStateChanges().flatMap { [unowned self] state -> FutureStream<Peripheral> in
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

        scanFuture.onFailure { error in
            guard let appError = error as? AppError else {
                return
            }
            self.seen.note("\(appError)")
        }
        return scanFuture
    }

    func testAScanBeginsWhenThePowerIsOn() {
        simulator.add(Sensor.peripheral)
        manager = documentedManager()
        scan().onSuccess { self.seen.note($0.name) }
        eventually("the sensor") { seen.contains("SensorTag") }
    }

    func testThePowersEndIsAnErrorOfTheApplication() {
        manager = documentedManager()
        _ = scan()
        eventually("the scan") { manager.isScanning }
        simulator.simulatePowerOff()
        eventually("poweredOff") { seen.contains("poweredOff") }
    }
}
