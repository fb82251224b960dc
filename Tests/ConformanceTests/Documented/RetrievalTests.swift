import BlueCapKit
import BlueZSimulator
import XCTest

final class RetrievalTests: DocumentedCase, @unchecked Sendable {
    func testConnectedPeripheralsAreRetrievedByTheirServices() throws {
        let retrieve: (CentralManager) -> ([CBUUID]) -> [Peripheral] =
            CentralManager.retrieveConnectedPeripherals(withServices:)
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        XCTAssertEqual(retrieve(manager)([Sensor.serviceUUID]), [peripheral])
        XCTAssertEqual(retrieve(manager)([CBUUID(string: "1809")]), [])
    }

    func testPeripheralsAreRetrievedByTheirIdentifiers() throws {
        let retrieve: (CentralManager) -> ([UUID]) -> [Peripheral] =
            CentralManager.retrievePeripherals(withIdentifiers:)
        let peripheral = try connectedSensor()
        XCTAssertEqual(retrieve(manager)([peripheral.identifier, UUID()]), [peripheral])
        XCTAssertEqual(retrieve(manager)([]), [])
    }

    func testKnownPeripheralsAreRetrieved() throws {
        let retrieve: (CentralManager) -> () -> [Peripheral] = CentralManager.retrievePeripherals
        let peripheral = try discoveredSensor()
        XCTAssertEqual(retrieve(manager)(), [peripheral])
    }

    func testWhoIsRetrievedIsKnownFromThenOn() throws {
        let earlier = try connectedSensor()
        let manager = CentralManager(options: ["CentralManagerOptionBusAddressKey": simulator.address])
        eventually("poweredOn") { manager.poweredOn }
        XCTAssertEqual(manager.peripherals, [])
        let retrieved = manager.retrievePeripherals(withIdentifiers: [earlier.identifier])
        XCTAssertEqual(retrieved.map(\.name), ["SensorTag"])
        XCTAssertEqual(manager.peripherals, retrieved)
    }

    /// The example, with its label.
    func testRetrievingAsInTheDocuments() throws {
        let earlier = try outcome(connectedSensor().discoverAllServices())
        let manager = CentralManager(options: [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager-2" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address,
        ])
        eventually("poweredOn") { manager.poweredOn }

        let serviceUUID = CBUUID(string: TISensorTag.AccelerometerService.uuid)

        let peripherals = manager.retrieveConnectedPeripherals(withServices: [serviceUUID])

        XCTAssertEqual(peripherals.map(\.identifier), [earlier.identifier])
    }
}
