import BlueCapGATT
import BlueCapProfiles
import XCTest

final class TISensorTagTests: XCTestCase {
    func testTheDocumentsNamesAreThere() {
        XCTAssertEqual(
            CBUUID(string: TISensorTag.AccelerometerService.uuid),
            CBUUID(string: "F000AA10-0451-4000-B000-000000000000"))
        XCTAssertEqual(TISensorTag.AccelerometerService.UUID, TISensorTag.AccelerometerService.uuid)
        XCTAssertEqual(
            CBUUID(string: TISensorTag.AccelerometerService.Data.uuid),
            CBUUID(string: "F000AA11-0451-4000-B000-000000000000"))
        XCTAssertEqual(Serde.serialize(TISensorTag.AccelerometerService.Enabled.yes), Data([1]))
        XCTAssertEqual(
            RawArrayCharacteristicProfile<TISensorTag.AccelerometerService.Data>().uuid,
            CBUUID(string: "F000AA11-0451-4000-B000-000000000000"))
    }

    func testAccelerationIsInGAndTurnedWithTheBoard() throws {
        let value = try XCTUnwrap(TISensorTag.AccelerometerService.Data.deserialize(Data([0xC0, 0x20, 0x40])))

        XCTAssertEqual([value.x, value.y, value.z], [1, -0.5, 1])
        XCTAssertEqual(value.stringValue["x"], "1.00")
        XCTAssertEqual(value.stringValue["xRaw"], "-64")
        XCTAssertEqual(TISensorTag.AccelerometerService.Data(x: 1, y: -0.5, z: 1), value)
        XCTAssertNil(TISensorTag.AccelerometerService.Data(x: 2.5, y: 0, z: 0))
        XCTAssertNil(TISensorTag.AccelerometerService.Data(x: .nan, y: 0, z: 0))
        XCTAssertEqual(TISensorTag.AccelerometerService.Data.deserialize(Data(count: 3))?.stringValue["x"], "0.00")
    }

    func testAxesCanBeTypedAsQuantitiesToo() {
        let typed = TISensorTag.AccelerometerService.Data(stringValue: ["x": "1", "y": "-0.5", "z": "1.0"])

        XCTAssertEqual(typed?.rawValue, [-64, 32, 64])
        XCTAssertNil(TISensorTag.AccelerometerService.Data(stringValue: ["x": "1", "y": "1"]))
        XCTAssertNil(TISensorTag.AccelerometerService.Data(stringValue: ["xRaw": "1", "yRaw": "1", "zRaw": "200"]))
    }

    func testAxesOfTwoBytesAreScaledToTheirRanges() {
        let field = TISensorTag.MagnetometerService.Data(rawValue: [-32768, 0, 16384])
        XCTAssertEqual(field.map { [$0.x, $0.y, $0.z] }, [1000, 0, 500])
        let rotation = TISensorTag.GyroscopeService.Data(rawValue: [0, 16384, -32768])
        XCTAssertEqual(rotation.map { [$0.x, $0.y, $0.z] }, [0, -125, -250])
    }

    func testPeriodsAreInMilliseconds() throws {
        let period = try XCTUnwrap(TISensorTag.AccelerometerService.UpdatePeriod(rawValue: 100))
        XCTAssertEqual(period.period, 1000)
        XCTAssertEqual(TISensorTag.AccelerometerService.UpdatePeriod(stringValue: ["period": "1000"]), period)
        XCTAssertNil(TISensorTag.AccelerometerService.UpdatePeriod(stringValue: ["period": "2560"]))
    }

    /// The data sheets' own examples: SHT21 6.1 and 6.2, and the calibration that the barometer's profile begins with.
    func testClimateIsInItsUnits() throws {
        let air = TISensorTag.HygrometerService.Data(temperatureRaw: 0x6350 + 0x0A, humidityRaw: 0x6350 + 2)
        XCTAssertEqual(air.humidity, 42.5, accuracy: 0.1)
        XCTAssertEqual(air.temperature, 21.3, accuracy: 0.1)

        let bytes = try XCTUnwrap(TISensorTag.BarometerService.Calibration.initialValue)
        let calibration = try XCTUnwrap(TISensorTag.BarometerService.Calibration.deserialize(bytes))
        XCTAssertEqual(calibration.c4, 36174)
        XCTAssertEqual(calibration.c7, -2369)
        let weather = try XCTUnwrap(TISensorTag.BarometerService.Data(rawValue1: -2343, rawValue2: 33995))
        XCTAssertEqual(weather.temperature(calibration), 18.6, accuracy: 0.1)
        XCTAssertEqual(weather.pressure(calibration), 101_500, accuracy: 2000)

        let body = TISensorTag.TemperatureService.Data(objectRaw: -172, ambientRaw: 3388)
        XCTAssertEqual(body.ambient, 26.47, accuracy: 0.01)
        XCTAssertEqual(body.object, 26.5, accuracy: 10)
    }

    func testSwitchesAndKeysHaveTexts() {
        XCTAssertEqual(TISensorTag.HygrometerService.Enabled.yes.stringValue, ["Hygrometer Enabled": "Yes"])
        XCTAssertTrue(TISensorTag.AccelerometerService.Enabled(boolValue: true).boolValue)
        XCTAssertEqual(TISensorTag.GyroscopeService.Enabled.xzAxis.stringValue, ["Gyroscope Enabled": "XZAxis"])
        XCTAssertEqual(TISensorTag.KeyPressedService.State.both.stringValue, ["Key Pressed": "Both"])
        XCTAssertEqual(
            TISensorTag.SensorTagTestService.Data([.thermometer, .barometer]).stringValue,
            ["Test Data": "Thermometer, Barometer"])
    }
}
