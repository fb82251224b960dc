import BlueCapKit
import BlueCapDBus
import BlueCapFutures
import XCTest

/// Attributes with incomplete objects: a service that BlueZ hides, an MTU that it does not export.
final class ExportedAttributeTests: XCTestCase {
    private let heartRate: [(String, ScriptedDaemon.Interfaces)] = [
        ("service0010", ScriptedDaemon.service("0000180d-0000-1000-8000-00805f9b34fb")),
        (
            "service0010/char0011",
            ScriptedDaemon.characteristic(
                "00002a39-0000-1000-8000-00805f9b34fb", of: "service0010", ["write", "write-without-response"])
        ),
    ]

    // MARK: C4

    func testABatteryServiceThatBlueZHidesIsVirtualAndReadOnly() throws {
        let daemon = ScriptedDaemon(battery: 85, attributes: heartRate)
        let peripheral = try daemon.connected()

        let service = try XCTUnwrap(peripheral.service(CBUUID(string: "180F")))
        let level = try XCTUnwrap(service.characteristic(CBUUID(string: "2A19")))
        XCTAssertTrue(service.isVirtual && level.isVirtual)
        XCTAssertEqual(peripheral.service(CBUUID(string: "180D"))?.isVirtual, false)
        let read: Future<Characteristic> = level.read()
        XCTAssertNil(daemon.error(of: read))
        XCTAssertEqual(level.dataValue, Data([85]))
        let write: Future<Characteristic> = level.write(data: Data([1]))
        XCTAssertEqual(daemon.error(of: write) as? CharacteristicError, .writeNotSupported)
        XCTAssertEqual(daemon.attributeCalls, [])
    }

    func testWithoutABatteryThereIsNoVirtualService() throws {
        let daemon = ScriptedDaemon(attributes: heartRate)
        let peripheral = try daemon.connected()
        XCTAssertEqual(peripheral.services.map(\.uuid.uuidString), ["180D"])
        withExtendedLifetime(daemon) {}
    }

    // MARK: E2, E5

    func testAnMTUThatBlueZDoesNotExportIsNilAndTwentyBytesFit() throws {
        let daemon = ScriptedDaemon(attributes: heartRate)
        let peripheral = try daemon.connected()
        XCTAssertNil(peripheral.mtu)
        XCTAssertEqual(peripheral.maximumWriteValueLength(for: .withoutResponse), 20)

        let control = try XCTUnwrap(
            peripheral.service(CBUUID(string: "180D"))?.characteristic(CBUUID(string: "2A39")))
        let long: Future<Characteristic> = control.write(data: Data(count: 21), type: .withoutResponse)
        XCTAssertEqual(
            daemon.error(of: long) as? CharacteristicError, .valueTooLong(count: 21, maximum: 20))
        XCTAssertEqual(daemon.attributeCalls, [])
        let short: Future<Characteristic> = control.write(data: Data(count: 20), type: .withoutResponse)
        XCTAssertNil(daemon.error(of: short))
        XCTAssertEqual(daemon.attributeCalls, ["WriteValue"])
    }
}
