import BlueCapGATT
import BlueCapProfiles
import XCTest

/// BlueCap's names of the ready profiles.
final class BlueCapProfileTests: XCTestCase {
    private func profiles(of create: (ProfileManager) -> Void) -> [CBUUID: ServiceProfile] {
        let manager = ProfileManager()
        create(manager)
        return manager.services
    }

    func testTheProfileContainersAddTheirProfiles() {
        XCTAssertEqual(
            Set(profiles(of: BLESIGGATTProfiles.create(profileManager:)).keys),
            Set(BluetoothSIG.serviceProfiles.map(\.uuid)))
        XCTAssertEqual(
            Set(profiles(of: TISensorTagProfiles.create(profileManager:)).keys),
            Set(TISensorTag.serviceProfiles.map(\.uuid)))
        XCTAssertEqual(
            Set(profiles(of: NordicProfiles.create(profileManager:)).keys), Set(Nordic.serviceProfiles.map(\.uuid)))
        XCTAssertEqual(
            Set(profiles(of: GnosusProfiles.create(profileManager:)).keys),
            [CBUUID(string: Gnosus.HelloWorldService.uuid), CBUUID(string: Gnosus.LocationService.uuid)])
    }

    @available(*, deprecated)
    func testFormerNamesAreThoseOfToday() {
        XCTAssertTrue(TiSensorTag.self == TISensorTag.self)
        XCTAssertTrue(BLESIGGATT.self == BluetoothSIG.self)
        XCTAssertTrue(Nordic.BLEAddressService.self == Nordic.DeviceAddressService.self)
        XCTAssertEqual(BLESIGGATT.BatteryService.Level(rawValue: 100)?.rawValue, 100)
    }

    func testRawValuesOfProfilesAreFailable() throws {
        guard let period = TISensorTag.AccelerometerService.UpdatePeriod(rawValue: 20),
            let slow = TISensorTag.MagnetometerService.UpdatePeriod(rawValue: 0),
            let weather = TISensorTag.BarometerService.Data(rawValue1: 1, rawValue2: 2),
            let temperature = Nordic.DeviceTemperatureService.Data(rawValue: 85),
            let greeting = Gnosus.HelloWorldService.UpdatePeriod(rawValue: 5000)
        else { return XCTFail("Each of these numbers stands for a value.") }
        XCTAssertEqual(period.period, 200)
        XCTAssertEqual(slow.period, 10)
        XCTAssertEqual(weather.pressureRaw, 2)
        XCTAssertEqual(temperature.value, 21.25)
        XCTAssertEqual(greeting.period, 5000)
    }

    func testAPlaceIsInHundredthsOfADegree() throws {
        typealias Place = Gnosus.LocationService.LatitudeAndLongitude
        let place = try XCTUnwrap(Place(latitude: 37.75276, longitude: -122.413234))
        XCTAssertEqual(place.rawValue, [3775, -12241])
        XCTAssertEqual(place.latitude, 37.75)
        XCTAssertEqual(place.serialize(), Place.initialValue)
        XCTAssertEqual(Place(stringValue: place.stringValue), place)
        XCTAssertEqual(Place(stringValue: ["latitude": "37.75", "longitude": "-122.41"]), place)
        XCTAssertNil(Place(latitude: 90.01, longitude: 0))
        XCTAssertNil(Place(latitude: 0, longitude: .nan))
        XCTAssertNil(Place(rawValue: [1]))
        XCTAssertNil(Place(stringValue: ["latitude": "1"]))
    }

    func testAServiceProfileHasItsCharacteristicsByTheirUUIDs() {
        let profile = ConfiguredServiceProfile<Gnosus.HelloWorldService>()
        profile.addCharacteristic(StringCharacteristicProfile<Gnosus.HelloWorldService.Greeting>())
        let greeting = CBUUID(string: Gnosus.HelloWorldService.Greeting.uuid)
        XCTAssertEqual(profile.characteristic[greeting]?.name, "Hello World Greeting")
        XCTAssertEqual(profile.characteristicProfile(withUUID: greeting).name, "Hello World Greeting")
        XCTAssertEqual(profile.characteristicProfile(withUUID: CBUUID(string: "2A00")).name, "Unknown")
        XCTAssertEqual(profile.characteristicProfile(withUUID: CBUUID(string: "2A00")).uuid, CBUUID(string: "2A00"))
    }
}
