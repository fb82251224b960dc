import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case invalidState
    case resetting
    case poweredOff
    case unsupported
    case unlikely
}

final class PeripheralServicesTests: PeripheralCase, @unchecked Sendable {
    func testStateChangesAreAStream() {
        let whenStateChanges: (PeripheralManager) -> () -> FutureStream<ManagerState> = PeripheralManager
            .whenStateChanges
        XCTAssertEqual(whenStateChanges(poweredPeripheralManager())().count, 1)
    }

    func testServicesAreAddedAndRemoved() throws {
        let add: (PeripheralManager) -> (MutableService) -> Future<Void> = PeripheralManager.add
        let remove: (PeripheralManager) -> (MutableService) -> Void = PeripheralManager.remove
        let removeAllServices: (PeripheralManager) -> () -> Void = PeripheralManager.removeAllServices
        let manager = poweredPeripheralManager()
        let (first, _) = accelerometer()
        let second = MutableService(profile: ConfiguredServiceProfile<TISensorTag.MagnetometerService>())
        try outcome(add(manager)(first))
        try outcome(add(manager)(second))
        XCTAssertEqual(manager.services, [first, second])
        remove(manager)(first)
        settle()
        XCTAssertEqual(manager.services, [second])
        removeAllServices(manager)()
        settle()
        XCTAssertEqual(offered, [])
    }

    func testAServiceHasItsCharacteristics() {
        let service = MutableService(uuid: TISensorTag.AccelerometerService.uuid)
        let characteristics: [MutableCharacteristic] = service.characteristics
        XCTAssertEqual(characteristics, [])
        let byHand = MutableCharacteristic(
            uuid: "2A19", properties: [.read, .notify], permissions: [.readable], value: Data([80]))
        service.characteristics = [byHand]
        XCTAssertEqual(service.characteristics, [byHand])
        XCTAssertEqual(byHand.service, service)
    }

    func testCharacteristicsAreMadeFromProfiles() {
        let profile = ConfiguredServiceProfile<TISensorTag.AccelerometerService>()
        profile.addCharacteristic(RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>())
        profile.addCharacteristic(RawCharacteristicProfile<TISensorTag.AccelerometerService.Enabled>())
        let service = MutableService(profile: profile)
        service.characteristicsFromProfiles()
        XCTAssertEqual(service.characteristics.map(\.name), ["Accelerometer Data", "Accelerometer Enabled"])
        XCTAssertEqual(service.characteristics[1].value, TISensorTag.AccelerometerService.Enabled.no.serialize())
    }

    // MARK: Examples

    func testStateChangesAreProcessedAsDocumented() {
        let manager = PeripheralManager(options: [
            CBPeripheralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.peripheral-manager-documentation"
                as NSString,
            "PeripheralManagerOptionBusAddressKey": simulator.address,
        ])

        let stateChangeFuture = manager.whenStateChanges()

        stateChangeFuture.onSuccess { state in
            switch state {
            case .poweredOn:
                self.seen.note("on")
            case .poweredOff, .unauthorized:
                self.seen.note("off")
            case .resetting:
                self.seen.note("resetting")
            case .unknown:
                break
            case .unsupported:
                break
            }
        }

        eventually("on") { seen.contains("on") }
        simulator.simulatePowerOff()
        eventually("off") { seen.contains("off") }
        simulator.simulateDaemonDeath()
        eventually("resetting") { seen.contains("resetting") }
    }

    /// The document's example, and the one on advertising that goes on from it; `accelerometerService` is made before.
    private func serve(_ accelerometerService: MutableService, with manager: PeripheralManager) {
        let addServiceFuture = manager.whenStateChanges().flatMap { [weak manager] state -> Future<Void> in
            guard let manager = manager else {
                throw AppError.unlikely
            }
            switch state {
            case .poweredOn:
                manager.removeAllServices()
                return manager.add(accelerometerService)
            case .poweredOff:
                throw AppError.poweredOff
            case .unauthorized, .unknown:
                throw AppError.invalidState
            case .unsupported:
                throw AppError.unsupported
            case .resetting:
                throw AppError.resetting
            }
        }

        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)

        let startAdvertiseFuture = addServiceFuture.flatMap { [weak manager] _ -> Future<Void> in
            guard let manager = manager else {
                throw AppError.unlikely
            }
            return manager.startAdvertising(TISensorTag.AccelerometerService.name, uuids: [serviceUUID])
        }

        startAdvertiseFuture.onFailure { [weak manager] error in
            guard let manager = manager else {
                return
            }
            switch error {
            case AppError.poweredOff:
                self.seen.note("poweredOff")
            case AppError.resetting:
                self.seen.note("reset")
                manager.reset()
            case AppError.unsupported:
                self.seen.note("unsupported")
            default:
                self.seen.note("\(error)")
            }
        }
    }

    func testAServiceIsAddedAndAdvertisedWhenThePowerIsOn() {
        let manager = documentedPeripheralManager()
        let (service, _) = accelerometer()
        serve(service, with: manager)
        eventually("the service") { service.isAdded && simulator.advertisements.count == 1 }
        XCTAssertEqual(offered, [TISensorTag.AccelerometerService.uuid])
        XCTAssertTrue(manager.isAdvertising)
        XCTAssertEqual(
            simulator.advertisements.first?.scanResponse, [17, 9] + Array(TISensorTag.AccelerometerService.name.utf8))
        XCTAssertEqual(seen.texts, [])
    }

    func testThePowersEndIsAnErrorOfTheApplication() {
        simulator.simulatePowerOff()
        let manager = documentedPeripheralManager()
        let (service, _) = accelerometer()
        serve(service, with: manager)
        eventually("poweredOff") { seen.contains("poweredOff") }
        simulator.simulatePowerOn()
        eventually("the service") { service.isAdded && simulator.advertisements.count == 1 }
        withExtendedLifetime(manager) {}
    }

    func testAResetAnswersTheDaemonsDeathAndAllBeginsAnew() {
        let manager = documentedPeripheralManager()
        let (service, _) = accelerometer()
        serve(service, with: manager)
        eventually("the service") { service.isAdded && simulator.advertisements.count == 1 }
        simulator.simulateDaemonDeath()
        eventually("the reset") { seen.contains("reset") }
        simulator.simulateDaemonReturn()
        eventually("the service again") { service.isAdded && simulator.advertisements.count == 1 }
        XCTAssertEqual(offered, [TISensorTag.AccelerometerService.uuid])
        withExtendedLifetime(manager) {}
    }
}
