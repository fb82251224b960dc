import BlueCapKit
import BlueCapFutures
import BlueCapReactor
import XCTest

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
