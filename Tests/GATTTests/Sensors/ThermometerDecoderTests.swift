import TestBasics
import XCTest

@testable import BlueCapGATT

final class ThermometerDecoderTests: RandomTestCase {
    private func check(_ reading: SensorReading?, _ numbers: [String: Double], line: UInt = #line) {
        let found = (reading?.values ?? []).compactMap { value -> (String, Double)? in
            guard case .number(let number) = value.value else { return nil }
            return (value.name, number)
        }
        XCTAssertEqual(Dictionary(uniqueKeysWithValues: found), numbers, line: line)
    }

    // MARK: Govee, with captures in the tests of github.com/Bluetooth-Devices/govee-ble

    private func govee(_ company: UInt16, _ hexadecimal: String, name: String? = nil) -> SensorReading? {
        GoveeDecoder().reading(
            in: AdvertisementFields(localName: name, manufacturerData: [company: bytes(hexadecimal)]))
    }

    func testCapturesOfGoveeAreDecoded() {
        check(govee(0xEC88, "00034DB26400"), ["temperature": 21.6, "humidity": 49.8, "battery": 100])  // H5075
        check(govee(0xEC88, "00030FC93500"), ["temperature": 20, "humidity": 64.9, "battery": 53])  // H5075
        check(govee(0xEC88, "00E609BC126402"), ["temperature": 25.34, "humidity": 47.96, "battery": 100])  // H5074
        check(govee(0x8801, "EC0001010A0AA40664"), ["temperature": 25.7, "humidity": 17, "battery": 100])  // H5179
        check(
            govee(0x0001, "010103362664", name: "GVH5177_2EC8"), ["temperature": 21, "humidity": 47, "battery": 100])
        check(
            govee(0x0001, "0101033AED64", name: "GVH5105_7336"),
            ["temperature": 21.1, "humidity": 69.3, "battery": 100]
        )
        XCTAssertEqual(govee(0xEC88, "00034DB26400")?.format, "govee")
        XCTAssertEqual(govee(0xEC88, "00034DB26400")?[.temperature]?.unit, "°C")
    }

    func testATemperatureOfGoveeBelowZeroHasASignBit() {
        check(govee(0xEC88, "00800BB86400"), ["temperature": -0.3, "humidity": 0, "battery": 100])
        check(govee(0xEC88, "0018FCBC126402"), ["temperature": -10, "humidity": 47.96, "battery": 100])
    }

    func testAGoveeWithoutAMeasurementHasItsBatteryOnly() {
        check(govee(0xEC88, "004A00283B00"), ["battery": 59])  // 484.9 °C
        check(govee(0xEC88, "00BC00043E27"), ["battery": 62])  // -393.2 °C
        check(govee(0xEC88, "00034DB2E400"), ["battery": 100])  // the bit of an error
    }

    func testDataOfOthersAreNotGovees() {
        XCTAssertNil(govee(0x0001, "010103362664"), "the company is another one")
        XCTAssertNil(govee(0x0001, "010103362664", name: "Nokia 3310"))
        for count in [0, 1, 5, 8, 10, 30] { XCTAssertNil(govee(0xEC88, String(repeating: "00", count: count))) }
    }

    // MARK: MiBeacon, with captures in the tests of github.com/Bluetooth-Devices/xiaomi-ble

    private func miBeacon(_ hexadecimal: String) -> SensorReading? {
        MiBeaconDecoder().reading(in: AdvertisementFields(serviceData: [CBUUID(0xFE95): bytes(hexadecimal)]))
    }

    func testCapturesOfMiBeaconAreDecoded() {
        let reading = miBeacon("5020AA01A3BF2E3B342D580D1004B40095020A10013B")  // LYWSDCGQ
        check(reading, ["temperature": 18, "humidity": 66.1, "battery": 59])
        XCTAssertEqual(reading?.format, "mibeacon")
        XCTAssertEqual(reading?.sequenceNumber, 0xA3)
        XCTAssertEqual(reading?.address, BluetoothAddress("58:2D:34:3B:2E:BF"))
        check(miBeacon("50305B04034C94B438C1A40D10041001EA01"), ["temperature": 27.2, "humidity": 49])  // LYWSD02
        // With a byte of capabilities: HHCCJCY01.
        check(miBeacon("7120980012F34F6B8D7CC40D041002C400"), ["temperature": 19.6])
        check(miBeacon("71209800687A3E6A8D7CC40D0910025702"), ["conductivity": 599])
        check(miBeacon("71209800477A3E6A8D7CC40D08100140"), ["moisture": 64])
    }

    func testEncryptedMiBeaconsAreReportedWithTheirCounter() {
        XCTAssertEqual(
            miBeacon("5858480B685F1234 2D585A0B1841E2AA000E00A4964FB5"),  // CGG1
            SensorReading(
                format: "mibeacon", sequenceNumber: 0x68, address: BluetoothAddress("5A:58:2D:34:12:5F"),
                isEncrypted: true))
    }

    func testOtherDataOfXiaomiAreNotDecoded() {
        XCTAssertNil(miBeacon(""))
        XCTAssertNil(miBeacon("3020AA01A3BF2E3B342D58"), "no objects")
        XCTAssertNil(miBeacon("5020AA01A3BF2E3B34"), "the address is cut short")
        XCTAssertNil(miBeacon("D020AA01A3BF2E3B342D580D1004B4009502"), "of a mesh")
        XCTAssertNil(miBeacon("5010AA01A3BF2E3B342D580D1004B4009502"), "version 1")
        XCTAssertNil(miBeacon("5020AA01A3BF2E3B342D58041004B400"), "an object that is cut short")
        check(miBeacon("5020AA01A3BF2E3B342D58FF1001000410020A00"), ["temperature": 1])
    }

    // MARK: Service data

    private func services(_ data: [UInt32: String]) -> SensorReading? {
        let data = data.map { (CBUUID($0.key), bytes($0.value)) }
        return ServiceDataDecoder().reading(
            in: AdvertisementFields(serviceData: Dictionary(uniqueKeysWithValues: data)))
    }

    /// The formats are those of the GATT Specification Supplement; those of 180F and 1809 with one byte are in Espruino's reference
    /// of `NRF.setAdvertising`.
    func testServiceDataInTheFormOfCharacteristicsAreDecoded() {
        check(services([0x180F: "5F"]), ["battery": 95])
        check(services([0x2A19: "5F"]), ["battery": 95])
        check(services([0x1809: "16"]), ["temperature": 22])
        check(services([0x1809: "FB"]), ["temperature": -5])
        check(services([0x2A6E: "7EFB", 0x2A6F: "8813"]), ["temperature": -11.54, "humidity": 50])
        check(services([0x2A6F: "2E", 0x2A6D: "CD7A0F00"]), ["humidity": 46, "pressure": 1014.477])
        XCTAssertNil(services([0x2A6E: "0080", 0x2A6F: "FFFF"]), "not known")
        XCTAssertNil(services([0x180F: "", 0x1809: "0000", 0x2A6E: "00"]))
        XCTAssertNil(services([:]))
    }

    /// The captures are in the tests of github.com/Bluetooth-Devices/xiaomi-ble.
    func testCapturesOfXiaomisScalesAreDecoded() {
        let scale = services([0x181D: "229E43E507040B101301"])
        check(scale, ["mass": 86.55])
        XCTAssertEqual(scale?[.mass]?.unit, "kg")
        XCTAssertEqual(scale?[.stabilized]?.value, .flag(true))
        let removed = services([0x181D: "A22044B2070101 0A1A15"])
        check(removed, ["mass": 87.2])
        XCTAssertEqual(removed?[.stabilized]?.value, .flag(false))
        let body = services([0x181B: "0226B20705040F0201AC018642"])
        check(body, ["mass": 85.15, "impedance": 428])
        XCTAssertEqual(body?[.stabilized]?.value, .flag(true))
        XCTAssertEqual(
            services([0x181D: "239E43E507040B101301"])?[.mass], SensorValue(.mass, .number(173.1), unit: "lb"))
        XCTAssertNil(services([0x181D: "229E43"]))
    }

    // MARK: What devices advertise of themselves

    private func texts(_ reading: SensorReading?) -> [String]? {
        reading.map { reading in
            [reading.format]
                + reading.values.map { value in
                    guard case .text(let text) = value.value else { return "no text" }
                    return "\(value.name) \(text)"
                }
        }
    }

    private func device(_ company: UInt16, _ hexadecimal: String) -> [String]? {
        texts(
            NearbyDeviceDecoder().reading(in: AdvertisementFields(manufacturerData: [company: bytes(hexadecimal)])))
    }

    /// The messages are those of github.com/furiousMAC/continuity; that of Find My is of an AirTag's form, type 12 with 25 bytes.
    func testTheMessagesOfApplesDevicesHaveTheirNames() {
        XCTAssertEqual(device(0x004C, "1005031C839096"), ["apple_continuity", "message Nearby Info"])
        XCTAssertEqual(
            device(0x004C, "0C0E00495A30F28A1927BD62FD895B5A1005031C839096"),
            ["apple_continuity", "message_1 Handoff", "message_2 Nearby Info"])
        XCTAssertEqual(
            device(0x004C, "1219" + String(repeating: "10", count: 25)), ["apple_continuity", "message Find My"])
        XCTAssertEqual(
            device(0x004C, "0631" + String(repeating: "00", count: 17)), ["apple_continuity", "message HomeKit"])
        XCTAssertNil(device(0x004C, "0215" + String(repeating: "00", count: 21)), "an iBeacon")
        XCTAssertNil(device(0x004C, "1005"), "cut short")
        XCTAssertNil(device(0x004C, ""))
        XCTAssertNil(device(0x004D, "1005031C839096"))
    }

    /// The sections are those of Microsoft's page "Swift Pair"; the first is that of Nordic's `bt_le_adv_prov`.
    func testSwiftPairHasTheNameToDisplay() {
        XCTAssertEqual(device(0x0006, "030080"), ["swift_pair"])
        XCTAssertEqual(device(0x0006, "0300804D6F757365"), ["swift_pair", "text Mouse"])
        XCTAssertEqual(device(0x0006, "030280040424 4D6F757365"), ["swift_pair", "text Mouse"])
        XCTAssertEqual(device(0x0006, "030180112233445566040424 4D"), ["swift_pair", "text M"])
        XCTAssertEqual(device(0x0006, "030080FF"), ["swift_pair"], "no UTF-8")
        XCTAssertNil(device(0x0006, "0109200222"), "a computer")
        XCTAssertNil(device(0x0006, "0303"))
    }

    /// The payloads are those of developers.google.com/nearby/fast-pair/specifications/service/provider.
    func testFastPairHasTheModelOfADeviceInPairingMode() {
        func device(_ hexadecimal: String) -> [String]? {
            texts(
                NearbyDeviceDecoder().reading(
                    in: AdvertisementFields(serviceData: [CBUUID(0xFE2C): bytes(hexadecimal)])))
        }
        XCTAssertEqual(device("00000A"), ["fast_pair", "model_id 00000a"])
        XCTAssertEqual(device("00370A0B0C1801"), ["fast_pair", "model_id 0a0b0c"])
        XCTAssertEqual(device("00403142 0A421102"), ["fast_pair"])
        XCTAssertNil(device("0000"))
    }

    func testAllDecodersContainTheStandardOnes() {
        let phone = AdvertisementFields(
            manufacturerData: [0x004C: bytes("1005031C839096")], serviceData: [CBUUID(0x180F): Data([50])])
        XCTAssertEqual(AdvertisementDecoders.standard.readings(in: phone).map(\.format), ["service_data"])
        XCTAssertEqual(
            AdvertisementDecoders.all.readings(in: phone).map(\.format), ["service_data", "apple_continuity"])
    }

    func testAnyBytesAreDecodedOrRefusedAndNeverTrap() {
        var random = TestRandom(self)
        var formats: Set<String> = []
        for _ in 0..<20_000 {
            let first: [UInt8] = [0x03, 0x10, 0x50, 0x58, 0x70, random.bytes(1)[0]]
            func data() -> Data { Data([0, first[random.below(6)], 0x20] + random.bytes(random.below(30))) }
            let service = [0xFE95, 0xFE2C, 0x181D, 0x181B, 0x180F, 0x2A6E, 0x2A6F, 0x2A6D, 0x1809][random.below(9)]
            let advertisement = AdvertisementFields(
                localName: random.below(2) == 0 ? "GVH5101_0000" : nil,
                manufacturerData: [[0x0001, 0x0006, 0x004C, 0x8801, 0xEC88][random.below(5)]: data().dropFirst()],
                serviceData: [CBUUID(UInt32(service)): data().dropFirst()])
            for reading in AdvertisementDecoders.all.readings(in: advertisement) {
                formats.insert(reading.format)
                XCTAssertEqual(Set(reading.values.map(\.name)).count, reading.values.count, "\(reading)")
            }
        }
        XCTAssertTrue(formats.isSuperset(of: ["govee", "service_data", "fast_pair", "apple_continuity"]), "\(formats)")
    }
}
