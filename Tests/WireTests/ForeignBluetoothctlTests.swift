import BlueZSimulator
import XCTest

/// BlueZ's own tool takes the simulator for BlueZ.
final class ForeignBluetoothctlTests: XCTestCase {
    private func bluetoothctl(_ arguments: String..., on simulator: Simulator) throws -> Foreign.Outcome {
        try Foreign.run(
            Foreign.program("bluetoothctl", package: "bluez"), arguments, bus: simulator.address)
    }

    func testItListsTheAdapter() throws {
        let simulator = try Simulator.onPrivateBus(adapters: [VirtualAdapter(name: "pretend")])
        defer { simulator.end() }
        let outcome = try bluetoothctl("list", on: simulator)
        XCTAssertEqual(outcome.status, 0, outcome.output)
        XCTAssertTrue(outcome.output.contains("Controller 00:AA:01:01:00:00 pretend [default]"), outcome.output)
    }

    func testItShowsTheAdapterWithItsRolesAndAdvertisingInstances() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let outcome = try bluetoothctl("show", on: simulator)
        for line in ["Powered: yes", "Discovering: no", "Roles: central", "Roles: peripheral", "ActiveInstances: 0x00"]
        {
            XCTAssertTrue(outcome.output.contains(line), outcome.output)
        }
    }

    func testItScansAndSeesWhatIsInTheRoom() throws {
        let simulator = try Simulator.onPrivateBus()
        defer { simulator.end() }
        let outcome = try bluetoothctl("--timeout", "3", "scan", "on", on: simulator)
        XCTAssertTrue(outcome.output.contains("Pulse Strap 7F"), outcome.output)
        XCTAssertTrue(outcome.output.contains("CC2650 SensorTag"), outcome.output)
        XCTAssertEqual(simulator.statistics.count(of: "StartDiscovery"), 1)
    }

    func testItConnectsToADeviceItKnowsAndDisconnects() throws {
        let bonded = VirtualPeripheral(
            "C0:00:00:00:18:0D", addressType: .random, name: "Bonded", isRemembered: true,
            services: [VirtualService("180D", characteristics: [VirtualCharacteristic("2A37", [.notify])])])
        let simulator = try Simulator.onPrivateBus(room: Room(peripherals: [bonded]))
        defer { simulator.end() }
        let connection = try bluetoothctl("connect", "C0:00:00:00:18:0D", on: simulator)
        XCTAssertTrue(connection.output.contains("Connection successful"), connection.output)
        let information = try bluetoothctl("info", "C0:00:00:00:18:0D", on: simulator)
        XCTAssertTrue(information.output.contains("Connected: yes"), information.output)
        let end = try bluetoothctl("disconnect", "C0:00:00:00:18:0D", on: simulator)
        XCTAssertTrue(end.output.contains("Successful disconnected"), end.output)
        XCTAssertEqual(simulator.links, [])
    }

    func testItSwitchesTheAdapterOffAndOn() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        XCTAssertTrue(try bluetoothctl("power", "off", on: simulator).output.contains("Changing power off succeeded"))
        XCTAssertEqual(simulator.adapters.map(\.isPowered), [false])
        XCTAssertTrue(try bluetoothctl("power", "on", on: simulator).output.contains("Changing power on succeeded"))
        XCTAssertEqual(simulator.adapters.map(\.isPowered), [true])
    }
}
