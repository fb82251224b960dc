import BlueCapKit
import BlueZSimulator
import XCTest

private enum Enabled: UInt8, RawDeserializable, StringDeserializable, CharacteristicConfigurable {
    case no = 0
    case yes = 1
    static let uuid = TISensorTag.AccelerometerService.Enabled.uuid
    static let name = "Switch"
    static let permissions: CBAttributePermissions = [.readable]
    static let properties: CBCharacteristicProperties = [.read, .write]
    static let initialValue: Data? = SerDe.serialize(Enabled.no)
    static let stringValues = ["No", "Yes"]
    var stringValue: [String: String] { [Enabled.name: self == .yes ? "Yes" : "No"] }

    init?(stringValue: [String: String]) {
        guard let text = stringValue[Enabled.name] else { return nil }
        self = text == "Yes" ? .yes : .no
    }
}

private enum Label: CharacteristicConfigurable {
    static let name = "Label"
    static let uuid = "FFF3"
}

private enum Accelerometer: ServiceConfigurable {
    static let name = "My Accelerometer"
    static let uuid = TISensorTag.AccelerometerService.uuid
    static let tag = "Mine"
}

/// The contract of profiles that the documents build on.
final class ProfilesTests: DocumentedCase, @unchecked Sendable {
    func testTextsOfAValue() {
        let stringValues: [String] = Enabled.stringValues
        let value = Enabled(stringValue: ["Switch": "Yes"])
        XCTAssertEqual(stringValues, ["No", "Yes"])
        XCTAssertEqual(value?.stringValue, ["Switch": "Yes"])
    }

    func testACharacteristicProfile() {
        let initial = Data([1])
        let profile = CharacteristicProfile(
            uuid: "FFF9", name: "Nine", permissions: [.readable], properties: [.read], initialValue: initial)
        XCTAssertEqual(profile.uuid, CBUUID(string: "FFF9"))
        XCTAssertEqual(profile.name, "Nine")
        XCTAssertEqual(profile.initialValue, initial)
        XCTAssertTrue(profile.propertyEnabled(.read))
        XCTAssertFalse(profile.permissionEnabled(.writeable))
        XCTAssertEqual(profile.stringValues, [])
        XCTAssertEqual(profile.stringValue(Data([0x0A])), ["Nine": "0a"])
        XCTAssertEqual(profile.data(fromString: ["Nine": "0a"]), Data([0x0A]))
    }

    func testACharacteristicProfilesDefaults() {
        let profile = CharacteristicProfile(uuid: "FFF9")
        XCTAssertEqual(profile.permissions, [.readable, .writeable])
        XCTAssertEqual(profile.properties, [.read, .write, .notify])
        XCTAssertNil(profile.initialValue)
    }

    func testProfilesOfConfiguredTypes() {
        let raw = RawCharacteristicProfile<Enabled>()
        XCTAssertEqual(raw.name, "Switch")
        XCTAssertEqual(raw.stringValue(Data([1])), ["Switch": "Yes"])
        let array = RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>()
        XCTAssertEqual(array.uuid, CBUUID(string: TISensorTag.AccelerometerService.Data.uuid))
        let pair = RawPairCharacteristicProfile<TISensorTag.BarometerService.Data>()
        XCTAssertEqual(pair.initialValue?.count, 4)
        let arrayPair = RawArrayPairCharacteristicProfile<TISensorTag.BarometerService.Calibration>()
        XCTAssertEqual(arrayPair.initialValue?.count, 16)
        let text = StringCharacteristicProfile<Label>()
        XCTAssertEqual(text.stringValue(Data("hello".utf8)), ["Label": "hello"])
        XCTAssertEqual(text.data(fromString: ["Label": "hello"]), Data("hello".utf8))
    }

    func testServiceProfiles() {
        let profile = ServiceProfile(uuid: "FFF0", name: "Lamp", tag: "House")
        profile.addCharacteristic(StringCharacteristicProfile<Label>())
        XCTAssertEqual(profile.characteristics.map(\.name), ["Label"])
        let configured = ConfiguredServiceProfile<Accelerometer>()
        XCTAssertEqual(configured.tag, "Mine")
        XCTAssertEqual(configured.name, "My Accelerometer")
    }

    func testAProfileManagerKnowsServicesByUUIDAndTag() {
        let manager = ProfileManager()
        manager.addService(ConfiguredServiceProfile<Accelerometer>())
        let services: [CBUUID: ServiceProfile] = manager.services
        XCTAssertEqual(services[Sensor.serviceUUID]?.name, "My Accelerometer")
        XCTAssertEqual(manager.service(tag: "Mine").count, 1)
    }

    func testAProfileManagerNamesWhatIsDiscovered() throws {
        let service = ConfiguredServiceProfile<Accelerometer>()
        service.addCharacteristic(RawCharacteristicProfile<Enabled>())
        let profileManager = ProfileManager()
        profileManager.addService(service)
        let manager = CentralManager(
            profileManager: profileManager, options: ["CentralManagerOptionBusAddressKey": simulator.address])
        eventually("poweredOn") { manager.poweredOn }
        simulator.add(Sensor.peripheral)
        _ = manager.startScanning()
        eventually("the sensor") { !manager.peripherals.isEmpty }
        let peripheral = manager.peripherals[0]
        peripheral.connect()
        eventually("the link") { peripheral.state == .connected }
        _ = try outcome(peripheral.discoverServices([Sensor.serviceUUID]))
        let found = try outcome(XCTUnwrap(peripheral.services.first).discoverAllCharacteristics())
        let characteristic = try XCTUnwrap(found.characteristic(Sensor.enabledUUID))

        XCTAssertEqual(found.name, "My Accelerometer")
        XCTAssertEqual(characteristic.name, "Switch")
        _ = try outcome(characteristic.write(string: ["Switch": "Yes"]))
        _ = try outcome(characteristic.read())
        XCTAssertEqual(characteristic.stringValue, ["Switch": "Yes"])
    }

    func testTheSensorTagsProfilesAreReady() {
        let names = TISensorTag.serviceProfiles.map(\.name)
        XCTAssertEqual(names.count, 8)
        for word in [
            "Accelerometer", "Magnetometer", "Gyroscope", "Temperature", "Barometer", "Hygrometer", "Key", "Test",
        ] {
            XCTAssertTrue(names.contains { $0.contains(word) }, "\(word) is missing in \(names)")
        }
    }

    func testThePublicServicesProfilesAreReady() {
        let ready = ProfileManager.ready.services
        for uuid in [
            "1800", "180A", "180F", "180D", "1809", "1805", "181A", "1816", "1814", "1803", "1802", "1804",
            "6E400001-B5A3-F393-E0A9-E50E24DCCA9E",
        ] {
            XCTAssertNotNil(ready[CBUUID(string: uuid)], uuid)
        }
    }

    // MARK: Core Bluetooth's vocabulary

    func testUUIDsAreEqualAcrossTheirForms() {
        XCTAssertEqual(CBUUID(string: "180D"), CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB"))
        XCTAssertEqual(CBUUID(string: "0000180D"), CBUUID(data: Data([0x18, 0x0D])))
    }

    func testTheVocabularyIsThere() {
        XCTAssertEqual(CBPeripheralState.connected.rawValue, 2)
        XCTAssertEqual(CBCharacteristicProperties.notify.rawValue, 0x10)
        XCTAssertEqual(CBAttributePermissions.writeable.rawValue, 0x02)
        XCTAssertEqual(CBCharacteristicWriteType.withoutResponse.rawValue, 1)
        XCTAssertEqual(CBATTError.Code.readNotPermitted.rawValue, 2)
        func request(_ request: any CBATTRequestInjectable, _ central: any CBCentralInjectable) {}
        XCTAssertEqual(CBCentralManagerScanOptionAllowDuplicatesKey, "kCBScanOptionAllowDuplicates")
        XCTAssertEqual(CBCentralManagerOptionRestoreIdentifierKey, "kCBInitOptionRestoreIdentifier")
    }
}
