import BlueCapDBus
import BlueCapFutures
import BlueCapKit
import BlueCapReactor
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

/// G1: the bus allows a connection 512 match rules.
final class MatchRuleCountTests: XCTestCase {
    private func ruleCount(others: Int) throws -> Int {
        let daemon = ScriptedDaemon(
            attributes: [
                ("service0010", ScriptedDaemon.service("0000180d-0000-1000-8000-00805f9b34fb")),
                (
                    "service0010/char0011",
                    ScriptedDaemon.characteristic(
                        "00002a37-0000-1000-8000-00805f9b34fb", of: "service0010", ["notify"])
                ),
            ], others: others)
        let peripheral = try daemon.connected()
        XCTAssertEqual(try XCTUnwrap(daemon.manager).peripherals.count, others + 1)
        let level = try XCTUnwrap(peripheral.services.first?.characteristics.first)
        let subscription: Future<Characteristic> = level.startNotifying()
        daemon.loop.advance(by: 1)
        withExtendedLifetime(subscription) {}
        return daemon.bus.matchRules.count
    }

    func testAThousandDevicesNeedNoMoreMatchRulesThanOne() throws {
        let count = try ruleCount(others: 0)
        XCTAssertEqual(try ruleCount(others: 1_000), count)
        XCTAssertLessThanOrEqual(count, 6)
    }
}

/// A bond changes the address of a device with a private one, and the path of its object stays.
final class ChangedAddressTests: XCTestCase {
    private let attributes: [(String, ScriptedDaemon.Interfaces)] = [
        ("service0010", ScriptedDaemon.service("0000180d-0000-1000-8000-00805f9b34fb")),
        (
            "service0010/char0011",
            ScriptedDaemon.characteristic("00002a38-0000-1000-8000-00805f9b34fb", of: "service0010", ["read"])
        ),
    ]
    private lazy var daemon = ScriptedDaemon(attributes: attributes)

    private func changeAddress() {
        daemon.change(["Address": .string("00:1B:DC:00:00:07")])
        daemon.change(["AddressType": .string("public")])
        daemon.change(["Bonded": .bool(true)])
        daemon.change(["Paired": .bool(true)])
    }

    func testThePeripheralStays() throws {
        let peripheral = try daemon.connected()
        let manager = try XCTUnwrap(daemon.manager)
        let identifier = peripheral.identifier
        changeAddress()
        daemon.change(["RSSI": .int16(-50)])
        XCTAssertEqual(manager.peripherals, [peripheral])
        XCTAssertEqual(peripheral.state, .connected)
        XCTAssertEqual(peripheral.rssi, -50)
        XCTAssertEqual(peripheral.address, "00:1B:DC:00:00:07")
        XCTAssertEqual(peripheral.addressType, .public)
        XCTAssertEqual(peripheral.identifier, identifier)
    }

    func testItsLinkIsFollowed() throws {
        let peripheral = try daemon.connected()
        changeAddress()
        let read: Future<Data> = peripheral.read(
            CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D")))
        XCTAssertNil(daemon.error(of: read))
        XCTAssertEqual(daemon.attributeCalls, ["ReadValue"])
        daemon.change(["Connected": .bool(false), "ServicesResolved": .bool(false)])
        XCTAssertEqual(peripheral.state, .disconnected)
        peripheral.connect()
        daemon.change(["Connected": .bool(true), "ServicesResolved": .bool(true)])
        XCTAssertTrue(daemon.loop.advance(until: { peripheral.state == .connected }, limit: 5))
    }

    func testItIsRetrievedWithBothIdentifiers() throws {
        let peripheral = try daemon.connected()
        let manager = try XCTUnwrap(daemon.manager)
        let first = peripheral.identifier
        changeAddress()
        let second = peripheral.bluetoothAddress.identifier(type: .public)
        XCTAssertNotEqual(first, second)
        XCTAssertEqual(manager.retrievePeripherals(withIdentifiers: [first]), [peripheral])
        XCTAssertEqual(manager.retrievePeripherals(withIdentifiers: [second]), [peripheral])
        XCTAssertEqual(manager.retrieveConnectedPeripherals(withServices: []), [peripheral])
    }

    /// A manager that begins later knows the device by its present address only.
    func testALaterManagerConnectsIt() throws {
        let daemon = ScriptedDaemon(
            device: ["Address": .string("00:1B:DC:00:00:07"), "AddressType": .string("public")],
            attributes: attributes)
        let peripheral = try XCTUnwrap(daemon.found().first)
        XCTAssertEqual(peripheral.address, "00:1B:DC:00:00:07")
        peripheral.connect()
        XCTAssertTrue(daemon.loop.advance(until: { peripheral.state == .connected }, limit: 5))
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        XCTAssertNil(daemon.error(of: services))
        XCTAssertEqual(peripheral.services.map(\.uuid.uuidString), ["180D"])
    }
}
