import BlueCapKit
import BlueZSimulator
import XCTest

/// The error enums are the union of what the documents list; each case is thrown where they say.
final class ErrorsTests: DocumentedCase, @unchecked Sendable {
    // MARK: Declarations

    func testCharacteristicErrors() {
        let earliest: [CharacteristicError] = [
            .readTimeout, .writeTimeout, .notSerializable, .readNotSupported, .writeNotSupported, .notifyNotSupported,
        ]
        let latest: [CharacteristicError] = [.unconfigured]
        XCTAssertEqual(Set(earliest + latest).count, 7)
    }

    func testPeripheralErrors() {
        let earliest: [PeripheralError] = [.disconnected, .noServices, .serviceDiscoveryTimeout]
        let latest: [PeripheralError] = [.forcedDisconnect, .connectionTimeout]
        XCTAssertEqual(Set(earliest + latest).count, 5)
    }

    func testCentralManagerErrors() {
        let earliest: [CentralManagerError] = [
            .isScanning, .isPoweredOff, .restoreFailed, .peripheralScanTimeout, .unsupported,
        ]
        XCTAssertEqual(Set(earliest).count, 5)
        let latest: [CentralManagerError] = [.serviceScanTimeout]
        XCTAssertEqual(latest, [.peripheralScanTimeout])
    }

    func testServiceErrors() {
        let documented: [ServiceError] = [
            .characteristicDiscoveryTimeout, .characteristicDiscoveryInProgress, .unconfigured,
        ]
        XCTAssertEqual(Set(documented).count, 3)
    }

    func testErrorsAreSwiftErrorsWithATextThatHelps() {
        let errors: [any Swift.Error] = [
            CharacteristicError.readTimeout, PeripheralError.disconnected, CentralManagerError.isPoweredOff,
            ServiceError.unconfigured,
        ]
        for error in errors { XCTAssertGreaterThan(error.localizedDescription.count, 20) }
    }

    /// The documented `switch` over any error distinguishes the errors, by the cases and by the alias.
    func testErrorsAreDistinguishedInASwitch() {
        func name(_ error: any Error) -> String {
            switch error {
            case CharacteristicError.readTimeout: "readTimeout"
            case PeripheralError.disconnected: "disconnected"
            case ServiceError.characteristicDiscoveryTimeout: "characteristicDiscoveryTimeout"
            case CentralManagerError.serviceScanTimeout: "serviceScanTimeout"
            default: "another"
            }
        }
        XCTAssertEqual(name(CharacteristicError.readTimeout), "readTimeout")
        XCTAssertEqual(name(PeripheralError.disconnected), "disconnected")
        XCTAssertEqual(name(ServiceError.characteristicDiscoveryTimeout), "characteristicDiscoveryTimeout")
        XCTAssertEqual(name(CentralManagerError.peripheralScanTimeout), "serviceScanTimeout")
        XCTAssertEqual(name(CentralManagerError.isScanning), "another")
    }

    // MARK: Calls that throw them

    func testWhatACharacteristicCannotDoIsRefused() throws {
        var sensor = Sensor.peripheral
        sensor.services[0].characteristics[1].flags = [.writeWithoutResponse]
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID, of: sensor)
        XCTAssertEqual(
            failure(of: characteristic.read() as Future<Characteristic>) as? CharacteristicError, .readNotSupported)
        XCTAssertEqual(
            failure(of: characteristic.write(data: Data()) as Future<Characteristic>) as? CharacteristicError,
            .writeNotSupported)
    }

    func testWithoutALinkNothingIsDone() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let peripheral = characteristic.peripheral
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        XCTAssertEqual(failure(of: characteristic.read() as Future<Void>) as? PeripheralError, .disconnected)
        XCTAssertEqual(failure(of: peripheral.discoverAllServices() as Future<Void>) as? PeripheralError, .disconnected)
    }

    func testAPeripheralWithoutServices() throws {
        simulator.add(Sensor.peripheral)
        simulator.simulateUnresolvedServices(of: Sensor.address)
        let discovery: Future<Peripheral> = try connectedSensor().discoverAllServices()
        XCTAssertEqual(failure(of: discovery) as? PeripheralError, .noServices)
    }

    func testASecondScanIsRefused() {
        let manager = poweredManager()
        _ = manager.startScanning()
        manager.startScanning().onFailure { error in self.seen.note("\(error as? CentralManagerError == .isScanning)") }
        eventually("the refusal") { seen.texts == ["true"] }
    }

    func testAScanWithoutPowerIsRefused() {
        let manager = poweredManager()
        simulator.simulatePowerOff()
        eventually("off") { manager.poweredOff }
        manager.startScanning().onFailure { error in
            self.seen.note("\(error as? CentralManagerError == .isPoweredOff)")
        }
        eventually("the refusal") { seen.texts == ["true"] }
    }

    func testAScanWithoutAnAdapterIsRefused() {
        let manager = poweredManager()
        simulator.simulateAdapterRemoval()
        eventually("unsupported") { manager.state == .unsupported }
        manager.startScanning().onFailure { error in
            self.seen.note("\(error as? CentralManagerError == .unsupported)")
        }
        eventually("the refusal") { seen.texts == ["true"] }
    }
}
