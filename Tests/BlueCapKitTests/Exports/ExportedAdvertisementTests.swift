import BlueCapKit
import BlueCapDBus
import XCTest

/// What of an advertisement reaches `PeripheralAdvertisements` by way of `AdvertisingFlags` and `AdvertisingData`, which
/// BlueZ exports from 5.78 on, and before with `--experimental`.
final class ExportedAdvertisementTests: XCTestCase {
    private func advertisements(_ properties: [String: ScriptedDaemon.Value]) throws -> PeripheralAdvertisements {
        let daemon = ScriptedDaemon(device: properties)
        defer { withExtendedLifetime(daemon) {} }
        return try XCTUnwrap(daemon.found().first).advertisements
    }

    func testWhatBlueZDoesNotExportIsNil() throws {
        let advertisements = try advertisements([:])
        XCTAssertNil(advertisements.advertisingFlags)
        XCTAssertEqual(advertisements.dataByType, [:])
        XCTAssertNil(advertisements.solicitedServiceUUIDs)
        XCTAssertNil(advertisements.isConnectable)
        XCTAssertNil(advertisements.txPower)
        XCTAssertNil(advertisements.localName)
    }

    func testFlagsAndDataAreThoseThatBlueZExports() throws {
        let advertisements = try advertisements([
            "AdvertisingFlags": .bytes([0x06]),
            "AdvertisingData": .dataByType([0x24: [0x17, 0x2F], 0x26: [1, 1, 0]]),
        ])
        XCTAssertEqual(advertisements.advertisingFlags, 6)
        XCTAssertEqual(advertisements.dataByType, [0x24: Data([0x17, 0x2F]), 0x26: Data([1, 1, 0])])
        XCTAssertNil(advertisements.solicitedServiceUUIDs)
        XCTAssertNil(advertisements.isConnectable)
    }

    func testAPacketWithoutFlagsHasTheFlagsZero() throws {
        XCTAssertEqual(try advertisements(["AdvertisingFlags": .bytes([0])]).advertisingFlags, 0)
    }

    func testSolicitedServicesAreReadFromTheirThreeTypes() throws {
        let long: [UInt8] = [0x9E, 0xCA, 0xDC, 0x24, 0x0E, 0xE5, 0xA9, 0xE0, 0x93, 0xF3, 0xA3, 0xB5, 1, 0, 0x40, 0x6E]
        let advertisements = try advertisements([
            "AdvertisingData": .dataByType([0x14: [0x0D, 0x18, 0x0F, 0x18], 0x1F: [4, 3, 2, 1], 0x15: long])
        ])
        XCTAssertEqual(
            advertisements.solicitedServiceUUIDs,
            [
                CBUUID(string: "180D"), CBUUID(string: "180F"), CBUUID(string: "01020304"),
                CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"),
            ])
    }

    func testAnIncompleteSolicitedServiceIsLeftOut() throws {
        XCTAssertEqual(
            try advertisements(["AdvertisingData": .dataByType([0x14: [0x0D, 0x18, 0x0F]])]).solicitedServiceUUIDs,
            [CBUUID(string: "180D")])
        XCTAssertNil(
            try advertisements(["AdvertisingData": .dataByType([0x14: [0x0D], 0x15: []])]).solicitedServiceUUIDs)
    }
}
