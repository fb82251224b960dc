import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case characteristicNotFound
    case serviceNotFound
    case disconnected
    case connectionFailed
}

/// What the earliest and the middle document say of discovery.
final class DiscoveryTests: DocumentedCase, @unchecked Sendable {
    typealias Connection = FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>

    /// The documents' `connectionFuture`.
    private func connection() -> Connection {
        let scanFuture = scanForTheSensor()
        let manager: CentralManager = self.manager
        return scanFuture.flatMap { peripheral -> Connection in
            manager.stopScanning()
            self.discoveredPeripheral = peripheral
            return peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10.0)
        }
    }

    // MARK: Declarations

    func testAllServicesAreDiscovered() throws {
        let discover: (Peripheral) -> (TimeInterval) -> Future<Peripheral> = Peripheral.discoverAllServices(timeout:)
        let connected = try connectedSensor()
        let peripheral = try outcome(discover(connected)(TimeInterval.infinity))
        XCTAssertEqual(peripheral, connected)
        XCTAssertEqual(peripheral.services.map(\.uuid), Sensor.serviceUUIDs)
        _ = try outcome(connected.discoverAllServices())
    }

    func testServicesAreDiscoveredByTheirUUIDs() throws {
        let discover: (Peripheral) -> ([CBUUID]?, TimeInterval) -> Future<Peripheral> =
            Peripheral.discoverServices(_:timeout:)
        let connected = try connectedSensor()
        let peripheral = try outcome(discover(connected)([Sensor.serviceUUID], TimeInterval.infinity))
        XCTAssertEqual(peripheral.services.map(\.uuid), [Sensor.serviceUUID])
        XCTAssertEqual(try outcome(connected.discoverServices(nil)).services.count, Sensor.serviceUUIDs.count)
    }

    func testTheTextsFunctionDiscoversServicesWithTheirCharacteristics() throws {
        let discover: (Peripheral) -> ([CBUUID]?) -> Future<Peripheral> =
            Peripheral.discoverPeripheralServices(services:)
        let connected = try connectedSensor()
        let peripheral = try outcome(discover(connected)([Sensor.serviceUUID]))
        XCTAssertEqual(peripheral, connected)
        XCTAssertEqual(peripheral.services.map(\.uuid), [Sensor.serviceUUID])
        XCTAssertEqual(peripheral.services.first?.characteristics.count, 3)
        let services: [CBUUID]! = nil
        let all = try outcome(connected.discoverPeripheralServices(services: services))
        XCTAssertEqual(all.services.count, Sensor.serviceUUIDs.count)
        XCTAssertEqual(all.service(CBUUID(string: "180F"))?.characteristics.count, 1)
    }

    func testTheTextsFunctionFailsWithoutALink() throws {
        let error = failure(of: try discoveredSensor().discoverPeripheralServices(services: nil))
        XCTAssertEqual(error as? PeripheralError, .disconnected)
    }

    func testAllCharacteristicsAreDiscovered() throws {
        let discover: (Service) -> (TimeInterval) -> Future<Service> = Service.discoverAllCharacteristics(timeout:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        let service = try outcome(discover(XCTUnwrap(peripheral.service(Sensor.serviceUUID)))(TimeInterval.infinity))
        XCTAssertEqual(
            service.characteristics.map(\.uuid), [Sensor.dataUUID, Sensor.enabledUUID, Sensor.updatePeriodUUID])
        _ = try outcome(service.discoverAllCharacteristics())
    }

    func testCharacteristicsAreDiscoveredByTheirUUIDs() throws {
        let discover: (Service) -> ([CBUUID], TimeInterval) -> Future<Service> =
            Service.discoverCharacteristics(_:timeout:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        let found = try XCTUnwrap(peripheral.service(Sensor.serviceUUID))
        let service = try outcome(discover(found)([Sensor.dataUUID], TimeInterval.infinity))
        XCTAssertEqual(service.characteristics.map(\.uuid), [Sensor.dataUUID])
        _ = try outcome(service.discoverCharacteristics([Sensor.enabledUUID]))
        XCTAssertNotNil(service.characteristic(Sensor.enabledUUID))
    }

    func testAServiceIsFoundByItsUUIDOrNot() throws {
        let service: (Peripheral) -> (CBUUID) -> Service? = Peripheral.service
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        XCTAssertEqual(service(peripheral)(Sensor.serviceUUID)?.uuid, Sensor.serviceUUID)
        XCTAssertNil(service(peripheral)(CBUUID(string: "1809")))
    }

    func testACharacteristicIsFoundByItsUUIDOrNot() throws {
        let characteristic: (Service) -> (CBUUID) -> Characteristic? = Service.characteristic
        let service = try XCTUnwrap(connectedCharacteristic(Sensor.dataUUID).service)
        XCTAssertEqual(characteristic(service)(Sensor.enabledUUID)?.uuid, Sensor.enabledUUID)
        XCTAssertNil(characteristic(service)(CBUUID(string: "2A19")))
    }

    func testAServiceDiscoveryThatTakesTooLongFails() throws {
        var slow = Sensor.peripheral
        slow.link.resolveLatency = 20
        let peripheral = try connectedSensor(slow)
        let error = failure(of: peripheral.discoverAllServices(timeout: 2) as Future<Peripheral>)
        XCTAssertEqual(error as? PeripheralError, .serviceDiscoveryTimeout)
        XCTAssertEqual(
            failure(of: peripheral.discoverServices([Sensor.serviceUUID], timeout: 2) as Future<Peripheral>)
                as? PeripheralError, .serviceDiscoveryTimeout)
    }

    func testACharacteristicDiscoveryThatTakesTooLongFails() throws {
        var slow = Sensor.peripheral
        slow.link.resolveLatency = 20
        let peripheral = try outcome(connectedSensor(slow).discoverAllServices())
        let service = try XCTUnwrap(peripheral.service(Sensor.serviceUUID))
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        peripheral.reconnect()
        eventually("the link") { peripheral.state == .connected }
        let error = failure(of: service.discoverAllCharacteristics(timeout: 2) as Future<Service>)
        XCTAssertEqual(error as? ServiceError, .characteristicDiscoveryTimeout)
    }

    // MARK: Examples

    /// The earliest document's example, with its missing `return` and brace.
    func testDiscoveringAsInTheEarliestDocument() {
        let connectionFuture = connection()
        let (serviceUUID, dataUUID) = (Sensor.serviceUUID, Sensor.dataUUID)
        let (enabledUUID, updatePeriodUUID) = (Sensor.enabledUUID, Sensor.updatePeriodUUID)

        let discoveryFuture = connectionFuture.flatMap { (peripheral, connectionEvent) -> Future<Peripheral> in
            switch connectionEvent {
            case .connect:
                return peripheral.discoverServices([serviceUUID])
            case .timeout:
                throw AppError.disconnected
            case .disconnect:
                throw AppError.disconnected
            case .forceDisconnect:
                throw AppError.connectionFailed
            case .giveUp:
                throw AppError.connectionFailed
            }
        }.flatMap { peripheral -> Future<Service> in
            guard let service = peripheral.service(serviceUUID) else {
                throw AppError.serviceNotFound
            }
            return service.discoverCharacteristics([dataUUID, enabledUUID, updatePeriodUUID])
        }

        discoveryFuture.onSuccess { service in self.seen.note("\(service.characteristics.count)") }
        eventually("the characteristics") { seen.texts == ["3"] }
    }

    /// The middle document's example, with its missing `return` and brace, and an error for `onFailure`.
    func testDiscoveringAsInTheMiddleDocument() {
        let connectionFuture = connection()
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)
        let characteristicUUID = CBUUID(string: TISensorTag.AccelerometerService.Data.uuid)

        let discoveryFuture = connectionFuture.flatMap { (peripheral, connectionEvent) -> Future<Peripheral> in
            switch connectionEvent {
            case .connect:
                return peripheral.discoverServices([serviceUUID])
            case .timeout:
                throw AppError.disconnected
            case .disconnect:
                throw AppError.disconnected
            case .forceDisconnect:
                throw AppError.connectionFailed
            case .giveUp:
                throw AppError.connectionFailed
            }
        }.flatMap { peripheral -> Future<Service> in
            guard let service = peripheral.service(serviceUUID) else {
                throw AppError.serviceNotFound
            }
            return service.discoverCharacteristics([characteristicUUID])
        }

        discoveryFuture.onSuccess { service in self.seen.note("\(service.characteristics.map(\.uuid))") }
        discoveryFuture.onFailure { error in
            guard let appError = error as? AppError else {
                return
            }
            self.seen.note("\(appError)")
            switch appError {
            case .serviceNotFound, .characteristicNotFound:
                break
            case .disconnected:
                self.discoveredPeripheral?.reconnect()
            case .connectionFailed:
                self.discoveredPeripheral?.terminate()
            }
        }

        eventually("the characteristic") { seen.texts == ["[\(characteristicUUID)]"] }
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the second discovery") {
            seen.texts == ["[\(characteristicUUID)]", "disconnected", "[\(characteristicUUID)]"]
        }
    }

    /// The middle document's second example: all of all services.
    func testDiscoveringAllAsInTheMiddleDocument() {
        let connectionFuture = connection()
        let serviceUUID = Sensor.serviceUUID

        let discoveryFuture = connectionFuture.flatMap { (peripheral, connectionEvent) -> Future<Peripheral> in
            switch connectionEvent {
            case .connect:
                return peripheral.discoverAllServices()
            case .timeout:
                throw AppError.disconnected
            case .disconnect:
                throw AppError.disconnected
            case .forceDisconnect:
                throw AppError.connectionFailed
            case .giveUp:
                throw AppError.connectionFailed
            }
        }.flatMap { peripheral -> Future<[Service]> in
            guard peripheral.service(serviceUUID) != nil else {
                throw AppError.serviceNotFound
            }
            return peripheral.services.map { $0.discoverAllCharacteristics() }.sequence()
        }

        discoveryFuture.onSuccess { services in
            self.seen.note("\(services.map { $0.characteristics.count })")
        }
        eventually("the characteristics") { seen.texts == ["[2, 1, 3, 1]"] }
    }
}
