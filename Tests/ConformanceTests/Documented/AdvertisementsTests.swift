import BlueCapKit
import BlueZSimulator
import XCTest

final class AdvertisementsTests: DocumentedCase, @unchecked Sendable {
    private func advertisements() throws -> PeripheralAdvertisements {
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        _ = manager.startScanning()
        eventually("the sensor") { !manager.peripherals.isEmpty }
        return try XCTUnwrap(manager.peripherals.first).advertisements
    }

    func testAPeripheralHasItsAdvertisements() throws {
        let advertisements: (Peripheral) -> PeripheralAdvertisements = { peripheral in peripheral.advertisements }
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        _ = manager.startScanning()
        eventually("the sensor") { !manager.peripherals.isEmpty }
        XCTAssertEqual(manager.peripherals.map { advertisements($0).localName }, ["SensorTag"])
    }

    func testTheLocalName() throws {
        let localName: String? = try advertisements().localName
        XCTAssertEqual(localName, "SensorTag")
    }

    func testTheManufacturersDataInBothSpellings() throws {
        let advertisements = try advertisements()
        let manufactuereData: Data? = advertisements.manufactuereData
        XCTAssertEqual(manufactuereData, Data([0x0D, 0x00, 3, 0, 0]))
        XCTAssertEqual(advertisements.manufacturerData, manufactuereData)
    }

    func testTheTransmissionPower() throws {
        let txPower: NSNumber? = try advertisements().txPower
        XCTAssertEqual(txPower, 4)
    }

    func testWhetherItIsConnectableIsNotReportedByBlueZ() throws {
        let isConnectable: NSNumber? = try advertisements().isConnectable
        XCTAssertNil(isConnectable)
    }

    func testTheServices() throws {
        let serviceUUIDs: [CBUUID]? = try advertisements().serviceUUIDs
        XCTAssertEqual(serviceUUIDs, [Sensor.serviceUUID])
    }

    func testTheServicesData() throws {
        let serviceData: [CBUUID: Data]? = try advertisements().serviceData
        XCTAssertEqual(serviceData, [CBUUID(string: "180F"): Data([99])])
    }

    func testOverflowServicesAreNotReportedByBlueZ() throws {
        let overflowServiceUUIDs: [CBUUID]? = try advertisements().overflowServiceUUIDs
        XCTAssertNil(overflowServiceUUIDs)
    }

    func testSolicitedServicesAreNotReportedByBlueZ() throws {
        let solicitedServiceUUIDs: [CBUUID]? = try advertisements().solicitedServiceUUIDs
        XCTAssertNil(solicitedServiceUUIDs)
    }

    func testAllPropertiesMayBeSet() {
        var advertisements = PeripheralAdvertisements()
        advertisements.localName = "Mine"
        advertisements.manufactuereData = Data([0x0D, 0x00, 1])
        advertisements.txPower = 1
        advertisements.isConnectable = true
        advertisements.serviceUUIDs = [Sensor.serviceUUID]
        advertisements.serviceData = [Sensor.serviceUUID: Data()]
        advertisements.overflowServiceUUIDs = []
        advertisements.solicitedServiceUUIDs = []
        XCTAssertEqual(advertisements.manufacturerData, Data([0x0D, 0x00, 1]))
    }
}
