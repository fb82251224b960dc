import BlueCapKit
import BlueZSimulator
import XCTest

/// What BlueCap has at its head beside the documents.
final class BlueCapHeadTests: DocumentedCase, @unchecked Sendable {
    func testDiscoveredPeripheralsHaveTheirIdentifiers() throws {
        let peripheral = try discoveredSensor()
        let discoveredPeripherals: [UUID: Peripheral] = manager.discoveredPeripherals
        XCTAssertEqual(discoveredPeripherals, [peripheral.identifier: peripheral])
    }

    func testAManagerHasTheServicesOfItsPeripherals() throws {
        let peripheral = try outcome(connectedSensor().discoverAllServices())
        XCTAssertEqual(manager.services.map(\.uuid), peripheral.services.map(\.uuid))
    }

    func testARemovedPeripheralIsDiscoveredAgain() throws {
        scanForTheSensor().onSuccess { _ in self.seen.note("discovered") }
        eventually("the sensor") { seen.count == 1 }
        let identifier = try XCTUnwrap(manager.peripherals.first).identifier

        manager.removePeripheral(withIdentifier: UUID())
        XCTAssertEqual(manager.peripherals.count, 1)
        manager.removePeripheral(withIdentifier: identifier)

        XCTAssertEqual(manager.peripherals, [])
        eventually("the sensor again") { seen.count == 2 }
        XCTAssertEqual(manager.peripherals.first?.identifier, identifier)
    }

    func testAllPeripheralsAreRemoved() throws {
        simulator.add(VirtualPeripheral("C0:FF:EE:00:00:99", addressType: .random, interval: 0.1))
        _ = try discoveredSensor()
        manager.removeAllPeripherals()
        XCTAssertEqual(manager.peripherals, [])
        XCTAssertEqual(manager.discoveredPeripherals, [:])
    }

    func testARemovedPeripheralKeepsItsConnection() throws {
        let peripheral = try connectedSensor()
        manager.removePeripheral(withIdentifier: peripheral.identifier)
        pass(3)
        XCTAssertEqual(peripheral.state, .connected)
        _ = try outcome(peripheral.discoverAllServices())
        peripheral.disconnect()
        eventually("the end") { simulator.links.isEmpty }
    }

    func testAnInvalidatedManagerEndsItsStreamsAndGoesOn() {
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        let states = manager.whenStateChanges()
        states.onSuccess { self.seen.note("before \($0)") }
        let scan = manager.startScanning()
        settle()
        XCTAssertEqual(seen.texts, ["before poweredOn"])

        manager.invalidate()

        let later = manager.whenStateChanges()
        later.onSuccess { self.seen.note("after \($0)") }
        eventually("poweredOn") { seen.contains("after poweredOn") }
        simulator.simulatePowerOff()
        eventually("poweredOff") { seen.contains("after poweredOff") }
        XCTAssertFalse(seen.contains("before poweredOff"))
        XCTAssertFalse(manager.isScanning)
        withExtendedLifetime((states, scan)) {}
    }

    func testAnInvalidatedManagerScansAgain() {
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        manager.invalidate()
        eventually("poweredOn") { manager.poweredOn }
        manager.startScanning().onSuccess { _ in self.seen.note("discovered") }
        eventually("the sensor") { seen.contains("discovered") }
    }

    func testACharacteristicSaysWhatCanBeDoneWithIt() throws {
        let enabled = try connectedCharacteristic(Sensor.enabledUUID)
        XCTAssertTrue(enabled.canRead)
        XCTAssertTrue(enabled.canWrite)
        let data = try XCTUnwrap(enabled.service?.characteristic(Sensor.dataUUID))
        XCTAssertTrue(data.canRead)
        XCTAssertFalse(data.canWrite)
    }

    func testPendingReadsAndWritesAreCounted() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        simulator.simulateSilence(of: Sensor.address)
        let reads = (0..<3).map { _ in characteristic.read(timeout: 2) as Future<Characteristic> }
        let write = characteristic.write(data: Data([1]), timeout: 2) as Future<Characteristic>
        XCTAssertEqual(characteristic.pendingReadCount, 3)
        XCTAssertEqual(characteristic.pendingWriteCount, 1)
        eventually("the time-outs") { reads.allSatisfy(\.completed) && write.completed }
        XCTAssertEqual(characteristic.pendingReadCount, 0)
        XCTAssertEqual(characteristic.pendingWriteCount, 0)
    }

    func testAnyDataHasTextsByTheProfile() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let stringValue: (Data?) -> [String: String]? = characteristic.stringValue(_:)
        XCTAssertEqual(stringValue(Data([1]))?.values.first, "01")
        XCTAssertNil(stringValue(nil))
        XCTAssertEqual(characteristic.data(fromString: [characteristic.name: "0a"]), Data([0x0A]))
    }

    func testTheSensorsProfilesAreAddedByTheirContainer() throws {
        let profileManager = ProfileManager()
        TISensorTagProfiles.create(profileManager: profileManager)
        BLESIGGATTProfiles.create(profileManager: profileManager)
        NordicProfiles.create(profileManager: profileManager)
        GnosusProfiles.create(profileManager: profileManager)
        XCTAssertEqual(
            profileManager.services[CBUUID(string: Gnosus.HelloWorldService.uuid)]?.name, "Hello World")
        XCTAssertEqual(
            profileManager.services[Sensor.serviceUUID]?.characteristicProfile(withUUID: Sensor.enabledUUID).name,
            "Accelerometer Enabled")
    }

    func testRawValuesOfTheProfilesAreFailable() {
        if let period = TISensorTag.AccelerometerService.UpdatePeriod(rawValue: 100) {
            XCTAssertEqual(period.period, 1000)
        } else {
            XCTFail("100 stands for a period.")
        }
        XCTAssertEqual(TISensorTag.BarometerService.Data(rawValue1: 1, rawValue2: 2)!.rawValue1, 1)
    }

    @available(*, deprecated)
    func testFormerNamesHaveAReplacement() {
        XCTAssertEqual(TiSensorTag.AccelerometerService.uuid, TISensorTag.AccelerometerService.uuid)
        XCTAssertEqual(BLESIGGATT.BatteryService.uuid, BluetoothSIG.BatteryService.uuid)
        XCTAssertEqual(Nordic.BLEAddressService.uuid, Nordic.DeviceAddressService.uuid)
    }

    func testDataIsSerializedByItsOwnFunctions() {
        XCTAssertEqual(Data.serialize(UInt16(0x0102)), Data([2, 1]))
        XCTAssertEqual(Data.serialize(UInt16(1), value2: UInt8(2)), Data([1, 0, 2]))
        XCTAssertEqual(Data.serializeArray([UInt16(1), 2]), Data([1, 0, 2, 0]))
        XCTAssertEqual(Data.serializeArrays([UInt16(1)], values2: [UInt8(2)]), Data([1, 0, 2]))
        XCTAssertEqual(Data([0x0A, 0xFF]).hexStringValue(), "0aff")
    }
}
