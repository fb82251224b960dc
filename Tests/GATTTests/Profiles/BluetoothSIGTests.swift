import BlueCapGATT
import BlueCapProfiles
import XCTest

final class BluetoothSIGTests: XCTestCase {
    private typealias HeartRate = BluetoothSIG.HeartRateService.Measurement
    private typealias Thermometer = BluetoothSIG.HealthThermometerService
    private typealias Sensing = BluetoothSIG.EnvironmentalSensingService
    private typealias Cycling = BluetoothSIG.CyclingSpeedAndCadenceService.Measurement
    private typealias Running = BluetoothSIG.RunningSpeedAndCadenceService.Measurement

    func testAHeartRateHasWhatItsFlagsAnnounce() {
        let table: [([UInt8], HeartRate?)] = [
            ([0x00, 72], HeartRate(beatsPerMinute: 72)),
            ([0x01, 0x2C, 0x01], HeartRate(beatsPerMinute: 300)),
            ([0x06, 72], HeartRate(beatsPerMinute: 72, isInContact: true)),
            ([0x04, 72], HeartRate(beatsPerMinute: 72, isInContact: false)),
            ([0x08, 72, 5, 1], HeartRate(beatsPerMinute: 72, energyExpended: 261)),
            ([0x10, 72, 0, 4, 1, 4], HeartRate(beatsPerMinute: 72, intervals: [1024, 1025])),
            (
                [0x1E, 72, 5, 0, 0, 4],
                HeartRate(beatsPerMinute: 72, isInContact: true, energyExpended: 5, intervals: [1024])
            ),
            ([], nil), ([0x00], nil), ([0x01, 72], nil), ([0x08, 72, 1], nil),
        ]
        for (bytes, expected) in table {
            XCTAssertEqual(HeartRate.deserialize(Data(bytes)), expected, "\(bytes)")
            if let expected {
                XCTAssertEqual(Array(expected.serialize()), bytes)
                XCTAssertEqual(HeartRate(stringValue: expected.stringValue), expected)
            }
        }
        XCTAssertEqual(HeartRate(beatsPerMinute: 72).stringValue, ["Heart Rate": "72 bpm"])
    }

    func testATemperatureIsADecimalNumber() throws {
        // 36.4 °C is 364 · 10^-1.
        let bytes = Data([0x06, 0x6C, 0x01, 0x00, 0xFF, 0xE8, 0x07, 2, 29, 13, 5, 0, 3])
        let value = try XCTUnwrap(Thermometer.TemperatureMeasurement.deserialize(bytes))

        XCTAssertEqual(value.temperature.value, 36.4)
        XCTAssertEqual(value.type, .ear)
        XCTAssertEqual(value.serialize(), bytes)
        XCTAssertEqual(
            value.stringValue, ["Temperature": "36.4 °C", "Time": "2024-02-29T13:05:00", "Type": "Ear"])
        XCTAssertEqual(Thermometer.TemperatureMeasurement(stringValue: value.stringValue), value)
        for count in 0..<bytes.count {
            XCTAssertNil(Thermometer.TemperatureMeasurement.deserialize(bytes.prefix(count)))
        }
        XCTAssertEqual(Thermometer.TemperatureMeasurement.deserialize(bytes + [0]), value, "what follows is ignored")
    }

    func testAFieldThatIsNotKnownDoesNotVoidTheOthers() throws {
        let bytes = Data([0x06, 0x6C, 0x01, 0x00, 0xFF, 0xE8, 0x07, 2, 29, 13, 5, 0, 3])
        var (place, month) = (bytes, bytes)
        place[12] = 0x7F
        month[7] = 13
        let unplaced = try XCTUnwrap(Thermometer.TemperatureMeasurement.deserialize(place))
        XCTAssertEqual(unplaced.stringValue, ["Temperature": "36.4 °C", "Time": "2024-02-29T13:05:00"])
        let untimed = try XCTUnwrap(Thermometer.TemperatureMeasurement.deserialize(month))
        XCTAssertEqual(untimed.stringValue, ["Temperature": "36.4 °C", "Type": "Ear"])

        let time = Data([0xE8, 0x07, 2, 29, 13, 5, 59, 9, 128, 1])
        XCTAssertEqual(BluetoothSIG.CurrentTimeService.CurrentTime.deserialize(time)?.dayOfWeek, 0)
        XCTAssertEqual(
            BluetoothSIG.HeartRateService.Measurement.deserialize(Data([0x10, 72, 0, 4, 9]))?.intervals, [1024],
            "half an interval is ignored")
        XCTAssertEqual(
            BluetoothSIG.HeartRateService.Measurement.deserialize(Data([0x00, 72, 1]))?.beatsPerMinute, 72)
    }

    func testFahrenheitIsConvertedAndNoNumberStaysNone() throws {
        let hot = Thermometer.IntermediateTemperature(
            temperature: MedicalFloat(98.6, decimals: 1), isFahrenheit: true)
        XCTAssertEqual(hot.celsius, 37, accuracy: 0.001)
        XCTAssertEqual(hot.stringValue, ["Temperature": "98.6 °F"])
        XCTAssertEqual(Thermometer.IntermediateTemperature(stringValue: hot.stringValue), hot)

        let none = Thermometer.IntermediateTemperature.deserialize(Data([0, 0xFF, 0xFF, 0x7F, 0]))
        XCTAssertEqual(none?.celsius.isNaN, true)
        XCTAssertEqual(none?.stringValue, ["Temperature": "unknown °C"])
        XCTAssertEqual(MedicalFloat(1e9, decimals: 1), .notANumber)
        XCTAssertEqual(MedicalFloat(-1.25, decimals: 2).value, -1.25)
    }

    func testQuantitiesHaveTheirUnits() {
        XCTAssertEqual(Sensing.Temperature.deserialize(Data([0x59, 0x08]))?.stringValue, ["Temperature": "21.37 °C"])
        XCTAssertEqual(Sensing.Temperature(-0.01)?.serialize(), Data([0xFF, 0xFF]))
        XCTAssertEqual(Sensing.Temperature(stringValue: ["Temperature": "21.37"])?.rawValue, 2137)
        XCTAssertEqual(Sensing.Temperature(stringValue: ["Temperature": "21.37°C"])?.rawValue, 2137)
        XCTAssertNil(Sensing.Temperature(stringValue: ["Temperature": "warm"]))
        XCTAssertNil(Sensing.Temperature(400))
        XCTAssertNil(Sensing.Temperature(.nan))
        XCTAssertNil(Sensing.Temperature(rawValue: .min).value)
        XCTAssertEqual(Sensing.Temperature(rawValue: .min).stringValue, ["Temperature": "unknown"])
        XCTAssertEqual(Sensing.Pressure(101_325)?.stringValue, ["Pressure": "101325.0 Pa"])
        XCTAssertEqual(Sensing.Elevation(-0.02)?.serialize(), Data([0xFE, 0xFF, 0xFF]))
        XCTAssertEqual(Sensing.Elevation.deserialize(Data([0xFE, 0xFF, 0xFF]))?.stringValue, ["Elevation": "-0.02 m"])
        XCTAssertEqual(Sensing.PollenConcentration.deserialize(Data([1, 2, 3]))?.value, 197_121)
        XCTAssertEqual(Sensing.UVIndex(7)?.stringValue, ["UV Index": "7"])
        XCTAssertEqual(
            Sensing.MagneticFluxDensity3D(rawValue: [10, -20, 5])?.stringValue,
            ["x": "1.0 µT", "y": "-2.0 µT", "z": "0.5 µT"])
        XCTAssertEqual(Nordic.DeviceTemperatureService.Data(21.25)?.stringValue.first?.value, "21.25 °C")
    }

    func testPercentAndPowerHaveTheirLimits() {
        XCTAssertEqual(
            BluetoothSIG.BatteryService.Level.deserialize(Data([100]))?.stringValue, ["Battery Level": "100 %"])
        XCTAssertNil(BluetoothSIG.BatteryService.Level.deserialize(Data([101])))
        XCTAssertEqual(BluetoothSIG.TxPowerService.Level(-20)?.serialize(), Data([0xEC]))
        XCTAssertNil(BluetoothSIG.TxPowerService.Level.deserialize(Data([21])))
    }

    func testSpeedComesFromTwoMeasurementsAcrossTheCountersEnds() throws {
        let first = Cycling(
            wheel: .init(revolutions: .max, lastEvent: 0xFE00), crank: .init(revolutions: .max, lastEvent: 0xFC00))
        let second = try XCTUnwrap(Cycling.deserialize(Data([3, 2, 0, 0, 0, 0, 2, 1, 0, 0, 4])))

        XCTAssertEqual(second.wheelRevolutionsPerSecond(since: first), 3)
        XCTAssertEqual(second.cadence(since: first), 60)
        XCTAssertNil(second.cadence(since: second))
        XCTAssertEqual(Cycling(stringValue: second.stringValue), second)
        XCTAssertNil(Cycling.deserialize(Data([1, 2, 0, 0, 0, 0])))
        XCTAssertNil(Cycling(stringValue: ["Wheel Revolutions": "1"]))
    }

    func testARunnersMeasurementHasWhatItsFlagsAnnounce() throws {
        let bytes = Data([7, 0x80, 3, 180, 120, 0, 0x10, 0x27, 0, 0])
        let value = try XCTUnwrap(Running.deserialize(bytes))

        XCTAssertEqual(value.speed, 3.5)
        XCTAssertEqual(value.totalDistance, 1000)
        XCTAssertEqual(value.serialize(), bytes)
        XCTAssertEqual(Running(stringValue: value.stringValue), value)
        XCTAssertEqual(value.stringValue["Stride Length"], "120 cm")
        for count in 0..<bytes.count { XCTAssertNil(Running.deserialize(bytes.prefix(count))) }
    }

    func testTimeIsReadAndOutOfRangeIsNone() throws {
        let bytes = Data([0xE8, 0x07, 2, 29, 13, 5, 59, 4, 128, 1])
        let value = try XCTUnwrap(BluetoothSIG.CurrentTimeService.CurrentTime.deserialize(bytes))
        XCTAssertEqual(value.time.year, 2024)
        XCTAssertEqual(value.adjustReason, .manual)
        XCTAssertEqual(value.stringValue["Time"], "2024-02-29T13:05:59")
        var wrong = bytes
        wrong[4] = 24
        XCTAssertNil(BluetoothSIG.CurrentTimeService.CurrentTime.deserialize(wrong))

        let zone = BluetoothSIG.CurrentTimeService.LocalTimeInformation.deserialize(Data([0xE8, 4]))
        XCTAssertEqual(zone?.secondsFromUTC, -18000)
    }

    func testDevicesSayWhoTheyAre() {
        let device = BluetoothSIG.DeviceInformationService.PnPID.deserialize(
            Data([2, 0x6D, 0x04, 0x19, 0xB0, 0x13, 2]))
        XCTAssertEqual(device?.vendor, 0x046D)
        XCTAssertEqual(device?.stringValue["Product Version"], "0213")
        let identifier = BluetoothSIG.DeviceInformationService.SystemID(rawValue: 0x0001_02FF_FE03_0405)
        XCTAssertEqual(identifier.organizationIdentifier, 0x000102)
        XCTAssertEqual(identifier.stringValue, ["System ID": "000102fffe030405"])
        XCTAssertEqual(
            BluetoothSIG.GenericAccessService.Appearance(rawValue: 0x03C2).stringValue,
            ["Appearance": "962", "Kind": "Mouse"])
        XCTAssertEqual(
            Nordic.DeviceAddressService.Address.deserialize(Data([0x56, 0x34, 0x12, 0xDF, 0x26, 0xC0]))?.stringValue,
            ["Device Address": "C0:26:DF:12:34:56"])
    }

    func testAlertsAreTheSameWordsInBothServices() {
        XCTAssertEqual(BluetoothSIG.LinkLossService.AlertLevel.high.stringValue, ["Alert Level": "High Alert"])
        XCTAssertEqual(SerDe.serialize(BluetoothSIG.ImmediateAlertService.AlertLevel.mild), Data([1]))
        XCTAssertNil(BluetoothSIG.LinkLossService.AlertLevel.deserialize(Data([3])))
    }
}
