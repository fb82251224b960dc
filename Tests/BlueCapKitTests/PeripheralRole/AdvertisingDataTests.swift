import BlueCapKit
import XCTest

final class AdvertisingDataTests: XCTestCase {
    private let short = CBUUID(string: "180D")
    private let long = CBUUID(string: TISensorTag.AccelerometerService.uuid)

    private func excess(_ data: AdvertisingData) -> (AdvertisingField, Int)? {
        do {
            try data.check()
            return nil
        } catch PeripheralManagerError.advertisementTooLong(let field, let excess) {
            return (field, excess)
        } catch {
            XCTFail("\(error)")
            return nil
        }
    }

    private func assertTooLong(
        _ data: AdvertisingData, _ field: AdvertisingField, by count: Int, file: StaticString = #filePath,
        line: UInt = #line
    ) {
        let found = excess(data)
        XCTAssertEqual(found?.0, field, file: file, line: line)
        XCTAssertEqual(found?.1, count, file: file, line: line)
    }

    func testANameOf29BytesFits() {
        XCTAssertNil(excess(AdvertisingData(localName: String(repeating: "n", count: 29))))
        assertTooLong(AdvertisingData(localName: String(repeating: "n", count: 30)), .localName, by: 1)
        assertTooLong(AdvertisingData(localName: String(repeating: "ü", count: 20)), .localName, by: 11)
    }

    func testALongAndSomeShortServicesFit() {
        var data = AdvertisingData(serviceUUIDs: [long])
        XCTAssertEqual(data.byteCount, 3 + 18)
        data.serviceUUIDs += [short, short, short, short]
        XCTAssertEqual(data.byteCount, 3 + 18 + 2 + 8)
        XCTAssertNil(excess(data))
        data.serviceUUIDs.append(short)
        assertTooLong(data, .serviceUUIDs, by: 2)
    }

    /// BlueZ shortens it, also if the program has written all digits.
    func testAUUIDOfTheSIGGoesOutShortWhateverItsForm() {
        let full = CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")
        XCTAssertEqual(
            AdvertisingData(serviceUUIDs: [full]).byteCount, AdvertisingData(serviceUUIDs: [short]).byteCount)
    }

    func testUUIDsOf32BitsGoOutLong() {
        XCTAssertEqual(AdvertisingData(serviceUUIDs: [CBUUID(string: "0001180D")]).byteCount, 3 + 18)
    }

    func testManufacturerDataOf27BytesFitsWithoutFlags() {
        var data = AdvertisingData()
        data.isDiscoverable = false
        data.manufacturerData = [0xFFFF: Data(count: 27)]
        XCTAssertNil(excess(data))
        data.isDiscoverable = true
        assertTooLong(data, .manufacturerData, by: 3)
    }

    func testTheLongestFieldIsNamed() {
        var data = AdvertisingData(localName: "Kitchen", serviceUUIDs: [long])
        data.serviceData = [short: Data(count: 20)]
        assertTooLong(data, .serviceData, by: 3 + 18 + 24 - 31)
    }

    func testEveryPartHasItsSize() {
        var data = AdvertisingData()
        data.isDiscoverable = false
        XCTAssertEqual(data.byteCount, 0)
        data.solicitedServiceUUIDs = [short]
        XCTAssertEqual(data.byteCount, 4)
        data.appearance = 833
        XCTAssertEqual(data.byteCount, 8)
        data.includesTxPower = true
        XCTAssertEqual(data.byteCount, 11)
        data.serviceData = [long: Data([1])]
        XCTAssertEqual(data.byteCount, 11 + 19)
    }

    func testABroadcastHasNoFlags() {
        var data = AdvertisingData(serviceUUIDs: [short])
        data.kind = .broadcast
        XCTAssertEqual(data.byteCount, 4)
    }

    func testANameOnASecondaryChannelCountsWithTheRest() {
        var data = AdvertisingData(localName: "Kitchen", serviceUUIDs: [long])
        data.secondaryChannel = .twoMegabit
        XCTAssertEqual(data.byteCount, 3 + 18 + 9)
        XCTAssertEqual(data.scanResponseByteCount, 0)
    }

    func testWhatCannotBeIsSaid() {
        func problem(_ change: (inout AdvertisingData) -> Void) -> String? {
            var data = AdvertisingData()
            change(&data)
            do {
                try data.check()
                return nil
            } catch {
                return "\(error)"
            }
        }
        XCTAssertEqual(problem { $0.txPower = 30 }, "A transmission power is from -127 to 20 dBm, not 30.")
        XCTAssertEqual(
            problem { $0.interval = .milliseconds(10) ... .seconds(1) },
            "An interval is from 0.02 to 10.24 seconds, not 0.01 to 1.0.")
        func whole(_ name: String, _ time: String) -> String {
            "An advertisement's \(name) is a whole number of seconds from 1 to 65535, not \(time)."
        }
        XCTAssertEqual(problem { $0.timeout = .zero }, whole("timeout", "0.0 seconds"))
        XCTAssertEqual(problem { $0.timeout = .milliseconds(1_500) }, whole("timeout", "1.5 seconds"))
        XCTAssertEqual(problem { $0.duration = .seconds(70_000) }, whole("duration", "70000.0 seconds"))
        XCTAssertNil(problem { ($0.timeout, $0.duration) = (.seconds(65_535), .seconds(1)) })
        XCTAssertNotNil(problem { $0.interval = .milliseconds(20) ... .seconds(11) })
        XCTAssertNil(problem { $0.interval = .milliseconds(20) ... .milliseconds(10_240) })
        XCTAssertNotNil(problem { $0.localName = "" })
        XCTAssertNil(problem { $0.interval = .milliseconds(100) ... .milliseconds(200) })
    }

    func testBeaconsFit() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: "B9407F30-F5F8-466E-AFF9-25556B57FE6D"))
        let region = BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 2)
        let data = AdvertisingData(region.beacon)
        XCTAssertNil(excess(data))
        XCTAssertEqual(data.byteCount, 27)
        XCTAssertEqual(
            data.manufacturerData[0x004C].map { [UInt8]($0) },
            [
                0x02, 0x15, 0xB9, 0x40, 0x7F, 0x30, 0xF5, 0xF8, 0x46, 0x6E, 0xAF, 0xF9, 0x25, 0x55, 0x6B, 0x57, 0xFE,
                0x6D, 0x00, 0x01, 0x00, 0x02, 0xC5,
            ])
        XCTAssertNil(excess(AdvertisingData(AltBeacon(organization: uuid, number: 7))))
        let link = try XCTUnwrap(Eddystone.URL("https://www.bluetooth.com/"))
        XCTAssertNil(excess(AdvertisingData(link)))
    }
}
