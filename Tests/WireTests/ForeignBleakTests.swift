import BlueZSimulator
import XCTest

/// bleak, the Python world's Bluetooth LE client, takes the simulator for BlueZ.
final class ForeignBleakTests: XCTestCase {
    private static let scan = """
        import asyncio, json
        from bleak import BleakScanner

        async def main():
            found = await BleakScanner.discover(timeout=2.5, return_adv=True)
            print(json.dumps({
                address: {
                    "name": advertisement.local_name, "rssi": advertisement.rssi,
                    "services": advertisement.service_uuids, "power": advertisement.tx_power,
                    "makers": {str(company): data.hex() for company, data in advertisement.manufacturer_data.items()},
                }
                for address, (device, advertisement) in found.items()
            }))

        asyncio.run(main())
        """

    private struct Seen: Decodable {
        var name: String?
        var rssi: Int
        var services: [String]
        var power: Int?
        var makers: [String: String]
    }

    func testItFindsTheRoomByNameStrengthServiceAndBytes() throws {
        let simulator = try Simulator.onPrivateBus()
        defer { simulator.end() }
        let outcome = try Foreign.run(Foreign.python(), ["-c", Self.scan], bus: simulator.address)
        XCTAssertEqual(outcome.status, 0, outcome.output)
        let seen = try JSONDecoder().decode([String: Seen].self, from: Data(outcome.output.utf8))

        let strap = try XCTUnwrap(seen["C0:5A:17:00:18:0D"], outcome.output)
        XCTAssertEqual(strap.name, "Pulse Strap 7F")
        XCTAssertTrue((-63 ... -49).contains(strap.rssi), "\(strap.rssi)")
        XCTAssertTrue(strap.services.contains("0000180d-0000-1000-8000-00805f9b34fb"))
        XCTAssertEqual(strap.power, 4)
        let beacon = try XCTUnwrap(seen["D4:F5:13:0B:EA:C0"], outcome.output)
        XCTAssertNil(beacon.name)
        XCTAssertEqual(beacon.makers["76"]?.hasPrefix("0215f7826da6"), true)
        XCTAssertNil(seen["DC:2C:26:0F:3A:52"], "what is only remembered was not found")

        XCTAssertTrue(
            simulator.wait(until: { simulator.discoverySessions.isEmpty }, limit: 5),
            "it has gone, and its session with it")
    }
}
