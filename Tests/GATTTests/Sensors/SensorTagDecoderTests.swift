import TestBasics
import XCTest

@testable import BlueCapGATT

final class SensorTagDecoderTests: RandomTestCase {
    private func ruuvi(_ hexadecimal: String) -> SensorReading? {
        RuuviDecoder().reading(in: AdvertisementFields(manufacturerData: [0x0499: bytes(hexadecimal)]))
    }

    private func thermometer(_ hexadecimal: String, address: String? = nil) -> SensorReading? {
        XiaomiThermometerDecoder().reading(
            in: AdvertisementFields(
                address: address.flatMap { BluetoothAddress($0) }, serviceData: [CBUUID(0x181A): bytes(hexadecimal)]))
    }

    /// Checks the numbers of a reading by the names of their quantities, exactly.
    private func check(_ reading: SensorReading?, _ numbers: [String: Double], line: UInt = #line) {
        let found = (reading?.values ?? []).map { value -> (String, Double) in
            guard case .number(let number) = value.value else { return (value.name, .nan) }
            return (value.name, number)
        }
        XCTAssertEqual(Dictionary(uniqueKeysWithValues: found), numbers, line: line)
    }

    // MARK: Ruuvi, with the test vectors of docs.ruuvi.com

    func testRuuviFormat5IsDecodedAsPublished() {
        let reading = ruuvi("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F")
        check(
            reading,
            [
                "temperature": 24.3, "pressure": 1000.44, "humidity": 53.49, "acceleration_x": 0.004,
                "acceleration_y": -0.004, "acceleration_z": 1.036, "tx_power": 4, "voltage": 2.977,
                "movement_count": 66,
            ])
        XCTAssertEqual(reading?.format, "ruuvi_5")
        XCTAssertEqual(reading?.sequenceNumber, 205)
        XCTAssertEqual(reading?.address, BluetoothAddress("CB:B8:33:4C:88:4F"))
        XCTAssertEqual(
            reading?.values.map(\.unit), ["°C", "%", "hPa", "g", "g", "g", "V", "dBm", ""])
    }

    func testTheHighestValuesOfRuuviFormat5AreDecodedAsPublished() {
        let reading = ruuvi("057FFFFFFEFFFE7FFF7FFF7FFFFFDEFEFFFECBB8334C884F")
        check(
            reading,
            [
                "temperature": 163.835, "pressure": 1155.34, "humidity": 163.835, "acceleration_x": 32.767,
                "acceleration_y": 32.767, "acceleration_z": 32.767, "tx_power": 20, "voltage": 3.646,
                "movement_count": 254,
            ])
        XCTAssertEqual(reading?.sequenceNumber, 65_534)
    }

    func testTheLowestValuesOfRuuviFormat5AreDecodedAsPublished() {
        let reading = ruuvi("058001000000008001800180010000000000CBB8334C884F")
        check(
            reading,
            [
                "temperature": -163.835, "pressure": 500, "humidity": 0, "acceleration_x": -32.767,
                "acceleration_y": -32.767, "acceleration_z": -32.767, "tx_power": -40, "voltage": 1.6,
                "movement_count": 0,
            ])
        XCTAssertEqual(reading?.sequenceNumber, 0)
    }

    func testValuesOfRuuviFormat5ThatAreNotAvailableAreOmitted() {
        XCTAssertNil(ruuvi("058000FFFFFFFF800080008000FFFFFFFFFFFFFFFFFFFFFF"))
        // As before, but with a temperature.
        let reading = ruuvi("0512FCFFFFFFFF800080008000FFFFFFFFFFFFFFFFFFFFFF")
        check(reading, ["temperature": 24.3])
        XCTAssertNotNil(reading)
        XCTAssertNil(reading?.sequenceNumber)
        XCTAssertNil(reading?.address)
    }

    func testRuuviFormat3IsDecodedAsPublished() {
        let reading = ruuvi("03291A1ECE1EFC18F94202CA0B53")
        check(
            reading,
            [
                "temperature": 26.3, "pressure": 1027.66, "humidity": 20.5, "acceleration_x": -1,
                "acceleration_y": -1.726, "acceleration_z": 0.714, "voltage": 2.899,
            ])
        XCTAssertEqual(reading?.format, "ruuvi_3")
        check(
            ruuvi("03FF7F63FFFF7FFF7FFF7FFFFFFF"),
            [
                "temperature": 127.99, "pressure": 1155.35, "humidity": 127.5, "acceleration_x": 32.767,
                "acceleration_y": 32.767, "acceleration_z": 32.767, "voltage": 65.535,
            ])
        check(
            ruuvi("0300FF6300008001800180010000"),
            [
                "temperature": -127.99, "pressure": 500, "humidity": 0, "acceleration_x": -32.767,
                "acceleration_y": -32.767, "acceleration_z": -32.767, "voltage": 0,
            ])
    }

    func testATemperatureOfRuuviFormat3HasASignBit() {
        XCTAssertEqual(ruuvi("030081450000000000000000 0000")?[.temperature]?.value, .number(-1.69))
        XCTAssertEqual(ruuvi("030001450000000000000000 0000")?[.temperature]?.value, .number(1.69))
        XCTAssertEqual(
            ruuvi("030080000000000000000000 0000")?[.temperature]?.value, .number(0), "no negative zero")
        XCTAssertNil(ruuvi("030001640000000000000000 0000")?[.temperature], "100 hundredths are not allowed")
    }

    func testOtherFormatsOfRuuviAreNotDecoded() {
        XCTAssertNil(ruuvi(""))
        XCTAssertNil(ruuvi("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C88"), "one byte is missing")
        XCTAssertNil(ruuvi("03291A1ECE1EFC18F94202CA0B"), "one byte is missing")
        XCTAssertNil(ruuvi("0612FC5394C37C0004FFFC040CAC364200CDCBB8334C884F"))
        XCTAssertNil(
            RuuviDecoder().reading(
                in: AdvertisementFields(manufacturerData: [0x004C: bytes("03291A1ECE1EFC18F94202CA0B53")])))
    }

    // MARK: Eddystone telemetry

    func testEddystoneTelemetryIsAReading() {
        let decoder = EddystoneTelemetryDecoder()
        func reading(_ hexadecimal: String) -> SensorReading? {
            decoder.reading(in: AdvertisementFields(serviceData: [Eddystone.service: bytes(hexadecimal)]))
        }
        let telemetry = reading("20000BB8158000010002 0000025D")
        check(
            telemetry, ["voltage": 3, "temperature": 21.5, "advertisement_count": 65_538, "uptime": 60.5])
        XCTAssertEqual(telemetry?.format, "eddystone_tlm")
        XCTAssertEqual(telemetry?.sequenceNumber, 65_538)
        check(reading("20000000800000000000 00000000"), ["advertisement_count": 0, "uptime": 0])
        XCTAssertNil(reading("20010BB8158000010002 0000025D"), "encrypted")
        XCTAssertNil(reading("1000036100"), "a link")
    }

    // MARK: Thermometers, with the samples of the firmware's own test program

    func testTheFormatOfATC1441IsDecoded() {
        let reading = thermometer("A4C138AABBCC00CE33430A6EC3")
        check(reading, ["temperature": 20.6, "humidity": 51, "battery": 67, "voltage": 2.67])
        XCTAssertEqual(reading?.format, "atc1441")
        XCTAssertEqual(reading?.sequenceNumber, 0xC3)
        XCTAssertEqual(reading?.address, BluetoothAddress("A4:C1:38:AA:BB:CC"))
        XCTAssertEqual(
            thermometer("A4C138AABBCCFF9C33430A6EC3")?[.temperature]?.value, .number(-10), "below zero")
    }

    func testTheFormatOfPvvxIsDecoded() {
        let reading = thermometer("CCBBAA38C1A46C07FA13D60A52090F")
        check(
            reading,
            ["temperature": 19, "humidity": 51.14, "voltage": 2.774, "battery": 82, "status_flags": 15])
        XCTAssertEqual(reading?.format, "pvvx")
        XCTAssertEqual(reading?.sequenceNumber, 9)
        XCTAssertEqual(reading?.address, BluetoothAddress("A4:C1:38:AA:BB:CC"))
        XCTAssertEqual(
            thermometer("CCBBAA38C1A418FCFA13D60A52090F")?[.temperature]?.value, .number(-10), "below zero")
    }

    func testDataWithAnotherAddressIsNotAThermometers() {
        for data in ["A4C138AABBCC00CE33430A6EC3", "CCBBAA38C1A46C07FA13D60A52090F"] {
            XCTAssertNotNil(thermometer(data, address: "A4:C1:38:AA:BB:CC"))
            XCTAssertNil(thermometer(data, address: "A4:C1:38:AA:BB:CD"))
        }
    }

    func testOtherDataOfTheServiceAreNotAThermometers() {
        for count in 0..<30 where count != 13 && count != 15 {
            XCTAssertNil(thermometer(String(repeating: "00", count: count)), "\(count) bytes")
        }
        XCTAssertNil(thermometer("BD86C53FFAB900C1515859"), "encrypted")
    }

    // MARK: All decoders

    func testAllReadingsOfAnAdvertisementAreFound() {
        let advertisement = AdvertisementFields(
            manufacturerData: [0x0499: bytes("03291A1ECE1EFC18F94202CA0B53"), 0x004C: Data([1])],
            serviceData: [
                CBUUID(0xFCD2): bytes("4002C40903BF13"), CBUUID(0x181A): bytes("A4C138AABBCC00CE33430A6EC3"),
                Eddystone.service: bytes("20000BB8158000010002 0000025D"), CBUUID(0x180F): Data([90]),
            ])
        XCTAssertEqual(
            AdvertisementDecoders.standard.readings(in: advertisement).map(\.format),
            ["bthome_v2", "ruuvi_3", "eddystone_tlm", "atc1441", "service_data"])
        XCTAssertEqual(AdvertisementDecoders.standard.readings(in: AdvertisementFields()), [])
        XCTAssertEqual(AdvertisementDecoders([RuuviDecoder()]).readings(in: advertisement).map(\.format), ["ruuvi_3"])
    }

    func testADecoderOfAProgramIsAppliedToo() {
        struct RainGauge: AdvertisementDecoder {
            func reading(in advertisement: AdvertisementFields) -> SensorReading? {
                guard advertisement.localName == "Rain", let tenths = advertisement.manufacturerData[0xFFFF]?.first
                else { return nil }
                return SensorReading(
                    format: "rain", values: [SensorValue("rain_today", .number(Double(tenths) / 10), unit: "mm")])
            }
        }
        var decoders = AdvertisementDecoders.standard
        decoders.decoders.append(RainGauge())
        let readings = decoders.readings(
            in: AdvertisementFields(localName: "Rain", manufacturerData: [0xFFFF: Data([12])]))
        check(readings.first, ["rain_today": 1.2])
        XCTAssertEqual(readings.count, 1)
    }

    func testSlicesOfDataAreDecodedAsTheirBytes() {
        let advertisement = AdvertisementFields(
            manufacturerData: [0x0499: (Data([0x99, 0x04]) + bytes("03291A1ECE1EFC18F94202CA0B53")).dropFirst(2)],
            serviceData: [CBUUID(0xFCD2): (Data([0xD2, 0xFC]) + bytes("4002C409")).dropFirst(2)])
        XCTAssertEqual(
            AdvertisementDecoders.standard.readings(in: advertisement).map { $0[.temperature]?.value },
            [.number(25), .number(26.3)])
    }

    func testAnyBytesAreDecodedOrRefusedAndNeverTrap() {
        var random = TestRandom(self)
        var count = 0
        for round in 0..<20_000 {
            let information: [UInt8] = [0x40, 0x41, 0x42, 0x43, 0x44, random.bytes(1)[0]]
            let format: [UInt8] = [3, 5, random.bytes(1)[0]]
            let advertisement = AdvertisementFields(
                manufacturerData: [0x0499: Data([format[random.below(3)]] + random.bytes(random.below(30)))],
                serviceData: [
                    CBUUID(0xFCD2): Data([information[random.below(6)]] + random.bytes(random.below(30))),
                    CBUUID(0x181A): Data(random.bytes(random.below(20))),
                    Eddystone.service: Data([0x20, 0x00] + random.bytes(random.below(20))),
                ])
            for reading in AdvertisementDecoders.standard.readings(in: advertisement) {
                count += 1
                XCTAssertEqual(reading.values.isEmpty, reading.isEncrypted, "round \(round): \(reading)")
                XCTAssertEqual(
                    Set(reading.values.map(\.name)).count, reading.values.count, "round \(round): \(reading)")
                for case .number(let number) in reading.values.map(\.value) {
                    XCTAssertTrue(number.isFinite, "round \(round): \(reading)")
                }
            }
        }
        XCTAssertGreaterThan(count, 10_000)
    }

    func testObjectsOfBTHomeInAnyOrderNeverTrap() {
        var random = TestRandom(self)
        let identifiers = Array(0...UInt8(0x65)) + [0xF0, 0xF1, 0xF2]
        for _ in 0..<20_000 {
            let objects = (0..<random.below(12)).flatMap { _ in
                [identifiers[random.below(identifiers.count)]] + random.bytes(random.below(5))
            }
            let reading = BTHomeDecoder().reading(
                in: AdvertisementFields(serviceData: [CBUUID(0xFCD2): Data([0x40] + objects)]))
            let names = reading?.values.map(\.name) ?? []
            XCTAssertEqual(Set(names).count, names.count, Data(objects).hexadecimal)
        }
    }
}
