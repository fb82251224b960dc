import XCTest

@testable import BlueCapGATT

/// The objects, examples and results are those of the page <https://bthome.io/format> in April 2026.
final class BTHomeDecoderTests: XCTestCase {
    private func reading(_ hexadecimal: String) -> SensorReading? {
        BTHomeDecoder().reading(in: AdvertisementFields(serviceData: [CBUUID(0xFCD2): bytes(hexadecimal)]))
    }

    /// Checks that the service data, without the byte of device information, has these values.
    private func check(_ objects: String, _ expected: [SensorValue], line: UInt = #line) {
        XCTAssertEqual(reading("40" + objects)?.values ?? [], expected, objects, line: line)
    }

    // MARK: The published table

    func testEachNumberOfTheTableIsDecodedAsPublished() {
        let table: [(String, SensorQuantity, Double, String)] = [
            ("518756", "acceleration", 22.151, "m/s²"), ("630057D0FF", "acceleration", -3.123456, "m/s²"),
            ("0161", "battery", 97, "%"), ("6001", "channel", 1, ""), ("12E204", "co2", 1250, "ppm"),
            ("56E803", "conductivity", 1000, "µS/cm"), ("0960", "count", 96, ""), ("3D0960", "count", 24_585, ""),
            ("3E2A2C0960", "count", 1_611_213_866, ""), ("59EA", "count", -22, ""), ("5AEAEA", "count", -5398, ""),
            ("5BEA0234EA", "count", -365_690_134, ""), ("434E34", "current", 13.39, "A"),
            ("5D02EA", "current", -5.63, "A"), ("08CA06", "dewpoint", 17.38, "°C"),
            ("5E9F8C", "direction", 359.99, "°"), ("400C00", "distance", 12, "mm"), ("414E00", "distance", 7.8, "m"),
            ("424E3400", "duration", 13.39, "s"), ("4D12138A14", "energy", 344_593.17, "kWh"),
            ("0A138A14", "energy", 1346.067, "kWh"), ("4B138A14", "gas", 1346.067, "m³"),
            ("4C41018A01", "gas", 25_821.505, "m³"), ("528756", "gyroscope", 22.151, "°/s"),
            ("03BF13", "humidity", 50.55, "%"), ("2E23", "humidity", 35, "%"),
            ("05138A14", "illuminance", 13_460.67, "lx"), ("6402", "light_level", 2, ""),
            ("065E1F", "mass", 80.3, "kg"),
            ("073E1D", "mass", 74.86, "lb"), ("14020C", "moisture", 30.74, "%"), ("2F23", "moisture", 35, "%"),
            ("0D120C", "pm2_5", 3090, "µg/m³"), ("0E021C", "pm10", 7170, "µg/m³"), ("0B021B00", "power", 69.14, "W"),
            ("5C02FBFFFF", "power", -12.78, "W"), ("5FA00F", "precipitation", 400, "mm"),
            ("04138A01", "pressure", 1008.83, "hPa"), ("3F020C", "rotation", 307.4, "°"),
            ("61AC0D", "rotational_speed", 3500, "rpm"), ("6503", "settings_revision", 3, ""),
            ("444E34", "speed", 133.9, "m/s"), ("624099DFFF", "speed", -2.123456, "m/s"),
            ("57EA", "temperature", -22, "°C"), ("58EA", "temperature", -7.7, "°C"),
            ("451101", "temperature", 27.3, "°C"), ("02CA09", "temperature", 25.06, "°C"),
            ("505D396164", "timestamp", 1_684_093_277, "s"), ("133301", "tvoc", 307, "µg/m³"),
            ("0C020C", "voltage", 3.074, "V"), ("4A020C", "voltage", 307.4, "V"),
            ("4E87562A01", "volume", 19_551.879, "L"), ("478756", "volume", 2215.1, "L"),
            ("48DC87", "volume", 34_780, "mL"), ("5587562A01", "volume_storage", 19_551.879, "L"),
            ("49DC87", "volume_flow_rate", 34.78, "m³/h"), ("4632", "uv_index", 5, ""),
            ("4F87562A01", "water", 19_551.879, "L"), ("F00100", "device_type_id", 1, ""),
        ]
        for (object, quantity, number, unit) in table {
            // Exactly: the number is the one nearest to the decimal fraction.
            check(object, [SensorValue(quantity, .number(number), unit: unit)])
        }
    }

    func testEachStateOfTheTableIsDecoded() {
        let states: [UInt8: SensorQuantity] = [
            0x15: "battery_low", 0x16: "battery_charging", 0x17: "carbon_monoxide", 0x18: "cold", 0x19: "connectivity",
            0x1A: "door", 0x1B: "garage_door", 0x1C: "gas_detected", 0x0F: "generic_boolean", 0x1D: "heat",
            0x1E: "light", 0x1F: "lock", 0x20: "moisture_detected", 0x21: "motion", 0x22: "moving", 0x23: "occupancy",
            0x11: "opening", 0x24: "plug", 0x10: "power_on", 0x25: "presence", 0x26: "problem", 0x27: "running",
            0x28: "safety", 0x29: "smoke", 0x2A: "sound", 0x2B: "tamper", 0x2C: "vibration", 0x2D: "window",
        ]
        XCTAssertEqual(states.count, 28)
        for (identifier, quantity) in states {
            for state: UInt8 in [0, 1] {
                check(Data([identifier, state]).hexadecimal, [SensorValue(quantity, .flag(state == 1))])
            }
        }
    }

    func testTextsAndVersionsAreDecodedAsPublished() {
        check("530C48656C6C6F20576F726C6421", [SensorValue("text", .text("Hello World!"))])
        check("540C48656C6C6F20576F726C6421", [SensorValue("raw", .text("48656c6c6f20576f726c6421"))])
        check("F100010204", [SensorValue("firmware_version", .text("4.2.1.0"))])
        check("F2000106", [SensorValue("firmware_version", .text("6.1.0"))])
    }

    func testATextThatIsNotUTF8HasNoValueAndWhatFollowsIsRead() {
        check("5301876502", [SensorValue("settings_revision", .number(2))])
    }

    func testTheExampleOfThePageIsDecoded() {
        XCTAssertEqual(
            reading("4002C40903BF13"),
            SensorReading(
                format: "bthome_v2",
                values: [
                    SensorValue(.temperature, .number(25), unit: "°C"),
                    SensorValue(.humidity, .number(50.55), unit: "%"),
                ]))
    }

    // MARK: Several objects, events, and the packet identifier

    func testSeveralObjectsOfOneQuantityAreNumbered() {
        let reading = reading("4002CA0902CF0902CF0803B71803B717015D")
        XCTAssertEqual(
            reading?.values.map(\.name),
            ["temperature_1", "temperature_2", "temperature_3", "humidity_1", "humidity_2", "battery"])
        XCTAssertEqual(reading?.values[1], SensorValue(.temperature, .number(25.11), unit: "°C", number: 2))
        // Objects of different resolutions are of one quantity too.
        check(
            "02CA09451101",
            [
                SensorValue(.temperature, .number(25.06), unit: "°C", number: 1),
                SensorValue(.temperature, .number(27.3), unit: "°C", number: 2),
            ])
    }

    func testTheEventsOfAButtonAreDecodedAsPublished() {
        let events = [
            "3A01": "press", "3A02": "double_press", "3A03": "triple_press", "3A04": "long_press",
            "3A05": "long_double_press", "3A06": "long_triple_press", "3A80": "hold_press",
        ]
        for (object, event) in events { check(object, [SensorValue(.button, .text(event))]) }
        XCTAssertNil(reading("403A00"), "no event")
        XCTAssertNil(reading("403AFE"), "an event that is not in the table")
    }

    func testAnEventThatDidNotOccurCountsInTheNumbers() {
        check("3A003A01", [SensorValue(.button, .text("press"), number: 2)])
        check(
            "3A003A013A03",
            [
                SensorValue(.button, .text("press"), number: 2),
                SensorValue(.button, .text("triple_press"), number: 3),
            ])
        check(
            "3C00003C020A",
            [
                SensorValue(.dimmer, .text("rotate_right"), number: 2),
                SensorValue(.dimmerSteps, .number(10), number: 2),
            ])
    }

    func testTheEventsOfADimmerHaveTheirSteps() {
        check("3C0103", [SensorValue(.dimmer, .text("rotate_left")), SensorValue(.dimmerSteps, .number(3))])
        check("3C020A", [SensorValue(.dimmer, .text("rotate_right")), SensorValue(.dimmerSteps, .number(10))])
        XCTAssertNil(reading("403C0000"))
    }

    func testCommandsAreDecodedAsPublished() {
        check("3B0000", [SensorValue(.command, .text("off"))])
        check("3B0001", [SensorValue(.command, .text("on"))])
        check("3B0002", [SensorValue(.command, .text("toggle"))])
        check("3B010305", [SensorValue(.command, .text("step_up")), SensorValue(.commandSteps, .number(5))])
        check("3B010405", [SensorValue(.command, .text("step_down")), SensorValue(.commandSteps, .number(5))])
        // An operation that is not in the table, with two bytes of arguments, and what follows it.
        check("3B0299AABB3C0103", [SensorValue(.dimmer, .text("rotate_left")), SensorValue(.dimmerSteps, .number(3))])
    }

    func testThePacketIdentifierIsTheSequenceNumber() {
        let reading = reading("400009015D025D0903B718")
        XCTAssertEqual(reading?.sequenceNumber, 9)
        XCTAssertEqual(reading?.values.map(\.name), ["battery", "temperature", "humidity"])
        XCTAssertEqual(reading?[.temperature]?.value, .number(23.97))
        XCTAssertNil(self.reading("400009"), "no values")
    }

    // MARK: Device information

    func testATriggerBasedDeviceIsRecognized() {
        XCTAssertEqual(reading("4404138A01")?.isTriggerBased, true)
        XCTAssertEqual(reading("4004138A01")?.isTriggerBased, false)
    }

    func testTheAddressInTheDataIsRead() {
        let reading = reading("42B2188D38C1A404138A01")
        XCTAssertEqual(reading?.address, BluetoothAddress("A4:C1:38:8D:18:B2"))
        XCTAssertEqual(reading?.values, [SensorValue(.pressure, .number(1008.83), unit: "hPa")])
        XCTAssertNil(self.reading("42B2188D38C1"), "too short for an address")
    }

    func testEncryptedDataIsReportedWithItsCounterAndWithoutValues() {
        XCTAssertEqual(
            reading("41E445F3C9962B332211006C7C4519"),
            SensorReading(format: "bthome_v2", sequenceNumber: 1_122_867, isEncrypted: true))
        XCTAssertEqual(
            reading("43A5808FE64854F196C06FFB49001122 33F08ECBDE"),
            SensorReading(
                format: "bthome_v2", sequenceNumber: 0x3322_1100, address: BluetoothAddress("54:48:E6:8F:80:A5"),
                isEncrypted: true))
        XCTAssertNil(reading("41BA0DB07AEEF600"), "too short for a counter and a check")
    }

    /// The key, the address and the data are those of <https://bthome.io/encryption>.
    func testEncryptedDataIsDecodedWithTheKeyOfItsSender() throws {
        let (key, address) = (bytes("231d39c1d7cc1ab1aee224cd096db932"), BluetoothAddress("54:48:E6:8F:80:A5"))
        func read(_ data: String, from address: BluetoothAddress?, isAuthentic: Bool = true) throws -> SensorReading? {
            let decoder = BTHomeDecoder(keys: [try XCTUnwrap(BluetoothAddress("54:48:E6:8F:80:A5")): key]) {
                XCTAssertEqual($0, bytes("E445F3C9962B"))
                XCTAssertEqual($1, bytes("6C7C4519"))
                XCTAssertEqual($2, bytes("5448E68F80A5 D2FC 41 33221100"))
                XCTAssertEqual($3, key)
                return isAuthentic ? bytes("02CA0903BF13") : nil
            }
            return decoder.reading(
                in: AdvertisementFields(address: address, serviceData: [CBUUID(0xFCD2): bytes(data)]))
        }
        let published = "41E445F3C9962B332211006C7C4519"
        let (encrypted, counter) = (
            SensorReading(format: "bthome_v2", sequenceNumber: 1_122_867, isEncrypted: true), 1_122_867
        )
        let reading = try read(published, from: address)
        XCTAssertEqual(reading?.values.map(\.value), [.number(25.06), .number(50.55)])
        XCTAssertEqual(reading?.sequenceNumber, UInt32(counter))
        XCTAssertEqual(reading?.isEncrypted, false)
        XCTAssertEqual(try read(published, from: address, isAuthentic: false), encrypted)
        XCTAssertEqual(try read(published, from: BluetoothAddress("54:48:E6:8F:80:A6")), encrypted)
        XCTAssertEqual(try read(published, from: nil), encrypted)
        XCTAssertEqual(try read("4002CA09", from: address)?[.temperature]?.value, .number(25.06), "not encrypted")
    }

    func testOtherVersionsAndServicesAreNotDecoded() {
        XCTAssertNil(reading(""))
        XCTAssertNil(reading("40"))
        XCTAssertNil(reading("2004138A01"), "version 1")
        XCTAssertNil(reading("E104138A01"), "version 7")
        XCTAssertNil(
            BTHomeDecoder().reading(in: AdvertisementFields(serviceData: [CBUUID(0x181C): bytes("4004138A01")])))
    }

    // MARK: Malformed data

    func testAnUnknownObjectEndsTheList() {
        check("015DFE5D0903B718", [SensorValue(.battery, .number(93), unit: "%")])
        XCTAssertNil(reading("40FECA09"))
    }

    func testAnObjectThatIsCutShortEndsTheList() {
        for object in ["02CA", "0401", "530548", "3C01", "3B0103", "F10001", "21", "3A", "53", "3B", "00"] {
            check("015D" + object, [SensorValue(.battery, .number(93), unit: "%")])
        }
    }
}

/// The bytes of hexadecimal digits, without the blanks between them.
func bytes(_ hexadecimal: String) -> Data {
    let digits = Array(hexadecimal.filter { $0 != " " })
    precondition(digits.count % 2 == 0, "a digit is missing in \(hexadecimal)")
    return Data(
        stride(from: 0, to: digits.count, by: 2).map { index in
            guard let byte = UInt8(String(digits[index...index + 1]), radix: 16) else {
                preconditionFailure("\(hexadecimal) is not hexadecimal")
            }
            return byte
        })
}
