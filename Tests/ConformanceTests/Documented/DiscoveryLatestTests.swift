import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case serviceNotFound
    // From the document's example of scanning.
    case unlikely
}

/// What the latest document says of discovery.
final class DiscoveryLatestTests: DocumentedCase, @unchecked Sendable {
    /// The document's `connectionFuture`.
    private func connection() throws -> (Peripheral, FutureStream<Void>) {
        let peripheral = try discoveredSensor()
        return (peripheral, peripheral.connect(connectionTimeout: 10.0))
    }

    // MARK: Declarations

    func testAllServicesAreDiscovered() throws {
        let discover: (Peripheral) -> (TimeInterval) -> Future<Void> = Peripheral.discoverAllServices(timeout:)
        let peripheral = try connectedSensor()
        try outcome(discover(peripheral)(TimeInterval.infinity))
        XCTAssertEqual(peripheral.services.map(\.uuid), Sensor.serviceUUIDs)
    }

    func testServicesAreDiscoveredByTheirUUIDs() throws {
        let discover: (Peripheral) -> ([CBUUID]?, TimeInterval) -> Future<Void> = Peripheral.discoverServices(
            _:timeout:)
        let peripheral = try connectedSensor()
        try outcome(discover(peripheral)([Sensor.serviceUUID], TimeInterval.infinity))
        XCTAssertEqual(peripheral.services.map(\.uuid), [Sensor.serviceUUID])
    }

    func testAllCharacteristicsAreDiscovered() throws {
        let discover: (Service) -> (TimeInterval) -> Future<Void> = Service.discoverAllCharacteristics(timeout:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        let service = try XCTUnwrap(peripheral.service(Sensor.serviceUUID))
        try outcome(discover(service)(TimeInterval.infinity))
        XCTAssertEqual(service.characteristics.count, 3)
    }

    func testCharacteristicsAreDiscoveredByTheirUUIDs() throws {
        let discover: (Service) -> ([CBUUID], TimeInterval) -> Future<Void> =
            Service.discoverCharacteristics(_:timeout:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        let service = try XCTUnwrap(peripheral.service(Sensor.serviceUUID))
        try outcome(discover(service)([Sensor.dataUUID], TimeInterval.infinity))
        XCTAssertEqual(service.characteristics.map(\.uuid), [Sensor.dataUUID])
    }

    func testServicesAreFoundByTheirUUIDOrNot() throws {
        let services: (Peripheral) -> (CBUUID) -> [Service]? = Peripheral.services(withUUID:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        XCTAssertEqual(services(peripheral)(Sensor.serviceUUID)?.count, 1)
        XCTAssertNil(services(peripheral)(CBUUID(string: "1809")))
    }

    func testCharacteristicsAreFoundByTheirUUIDOrNot() throws {
        let characteristics: (Service) -> (CBUUID) -> [Characteristic]? = Service.characteristics(withUUID:)
        let service = try XCTUnwrap(connectedCharacteristic(Sensor.dataUUID).service)
        XCTAssertEqual(characteristics(service)(Sensor.dataUUID)?.count, 1)
        XCTAssertNil(characteristics(service)(CBUUID(string: "2A19")))
    }

    func testAServiceDiscoveryThatTakesTooLongFails() throws {
        var slow = Sensor.peripheral
        slow.link.resolveLatency = 20
        let discovery: Future<Void> = try connectedSensor(slow).discoverAllServices(timeout: 2)
        XCTAssertEqual(failure(of: discovery) as? PeripheralError, .serviceDiscoveryTimeout)
    }

    // MARK: Examples

    /// The example, with its missing `return`, a `[weak peripheral]` for `[peripheral weak]`, and `services(withUUID:)`
    /// for `service.characteristics(withUUID:)`.
    func testDiscoveringAsInTheLatestDocument() throws {
        let (peripheral, connectionFuture) = try connection()
        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)
        let characteristicUUID = CBUUID(string: TISensorTag.AccelerometerService.Data.uuid)

        let discoveryFuture = connectionFuture.flatMap { [weak peripheral] () -> Future<Void> in
            guard let peripheral = peripheral else {
                throw AppError.unlikely
            }
            return peripheral.discoverServices([serviceUUID])
        }.flatMap { [weak peripheral] () -> Future<Void> in
            guard let peripheral = peripheral, let service = peripheral.services(withUUID: serviceUUID)?.first else {
                throw AppError.serviceNotFound
            }
            return service.discoverCharacteristics([characteristicUUID])
        }

        discoveryFuture.onSuccess { self.seen.note("discovered") }
        discoveryFuture.onFailure { error in
            switch error {
            case PeripheralError.disconnected:
                self.seen.note("disconnected")
                break
            case PeripheralError.forcedDisconnect:
                break
            case PeripheralError.connectionTimeout:
                break
            case PeripheralError.serviceDiscoveryTimeout:
                break
            case ServiceError.characteristicDiscoveryTimeout:
                break
            case AppError.serviceNotFound:
                break
            default:
                break
            }
        }

        eventually("the discovery") { seen.contains("discovered") }
        XCTAssertNotNil(peripheral.services.first?.characteristics(withUUID: characteristicUUID)?.first)
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { seen.contains("disconnected") }
    }

    /// The second example, with its missing parentheses and `return`.
    func testDiscoveringAllAsInTheLatestDocument() throws {
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        let connectionFuture: FutureStream<Void> = peripheral.connect()

        let discoveryFuture = connectionFuture.flatMap { [weak peripheral] () -> Future<[Void]> in
            guard let peripheral = peripheral else {
                throw AppError.unlikely
            }
            return peripheral.services.map { $0.discoverAllCharacteristics() }.sequence()
        }

        discoveryFuture.onSuccess { all in self.seen.note("\(all.count)") }
        eventually("the discovery") { seen.texts == ["4"] }
        XCTAssertEqual(peripheral.services.map { $0.characteristics.count }, [2, 1, 3, 1])
    }
}
