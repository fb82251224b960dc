import BlueZSimulator
import XCTest

/// bleak connects to the simulator's peripherals, and discovers and uses their attributes.
final class ForeignBleakLinkTests: XCTestCase {
    private static let explore = """
        import asyncio, json
        from bleak import BleakClient, BleakScanner
        from bleak.exc import BleakError

        UART = "6e40000{}-b5a3-f393-e0a9-e50e24dcca9e"

        async def main():
            device = await BleakScanner.find_device_by_address("00:1A:7D:DA:71:13", timeout=10)
            values = []
            got = asyncio.Event()
            def received(_, data):
                values.append(data.hex())
                if len(values) == 20:
                    got.set()
            async with BleakClient(device) as client:
                tree = {
                    service.uuid[4:8] if service.uuid.startswith("0000") else service.uuid[:8]:
                        {c.uuid: sorted(c.properties) for c in service.characteristics}
                    for service in client.services
                }
                maker = await client.read_gatt_char("2a29")
                await client.start_notify(UART.format(3), received, **NOTIFY)
                for number in range(20):
                    await client.write_gatt_char(UART.format(2), bytes([number] * 20), response=number % 2 == 0)
                await asyncio.wait_for(got.wait(), 10)
                await client.stop_notify(UART.format(3))
                try:
                    await client.write_gatt_char("2a29", b"x", response=True)
                    refusal = None
                except BleakError as error:
                    refusal = str(error)
                await client._backend._acquire_mtu()
                mtu = client.mtu_size
            print(json.dumps({
                "tree": tree, "maker": maker.decode(), "values": values, "refusal": refusal, "mtu": mtu,
            }))

        asyncio.run(main())
        """

    private struct Outcome: Decodable {
        var tree: [String: [String: [String]]]
        var maker: String
        var values: [String]
        var refusal: String?
        var mtu: Int
    }

    private func explore(_ notify: String) throws {
        let simulator = try Simulator.onPrivateBus()
        defer { simulator.end() }
        let script = Self.explore.replacingOccurrences(of: "NOTIFY", with: notify)
        let run = try Foreign.run(Foreign.python(), ["-c", script], bus: simulator.address)
        XCTAssertEqual(run.status, 0, run.output)
        let line = try XCTUnwrap(run.output.split(separator: "\n").last)
        let outcome = try JSONDecoder().decode(Outcome.self, from: Data(line.utf8))

        XCTAssertEqual(outcome.tree.keys.sorted(), ["1800", "1801", "180a", "6e400001"])
        XCTAssertEqual(
            outcome.tree["6e400001"],
            [
                "6e400002-b5a3-f393-e0a9-e50e24dcca9e": ["write", "write-without-response"],
                "6e400003-b5a3-f393-e0a9-e50e24dcca9e": ["notify"],
            ])
        XCTAssertEqual(outcome.maker, "Shelf Audio")
        let sent = (0..<20).map { String(repeating: ($0 < 16 ? "0" : "") + String($0, radix: 16), count: 20) }
        XCTAssertEqual(outcome.values, sent)
        XCTAssertEqual(outcome.refusal?.contains("Write Not Permitted"), true, outcome.refusal ?? "was not refused")
        XCTAssertEqual(outcome.mtu, 247)
        XCTAssertTrue(simulator.wait(until: { simulator.links.isEmpty }, limit: 10), "it has disconnected")
    }

    /// The program of the guide.
    private func program() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let guide = try String(contentsOf: root.appendingPathComponent("Documentation/ComingFrom.md"), encoding: .utf8)
        let blocks = guide.components(separatedBy: "```python\n").dropFirst()
        XCTAssertEqual(blocks.count, 1)
        return try XCTUnwrap(blocks.first?.components(separatedBy: "```").first)
    }

    func testTheProgramOfTheGuideReadsAtItsFirstConnection() throws {
        let program = try program()
        for version in [BlueZVersion.v5_66, .v5_72, .v5_82, .v5_87] {
            let simulator = try Simulator.onPrivateBus(bluez: version)
            defer { simulator.end() }
            let run = try Foreign.run(Foreign.python(), ["-c", program], bus: simulator.address)
            XCTAssertEqual(run.status, 0, "\(version): \(run.output)")
            XCTAssertNotNil(UInt8(run.output.trimmingCharacters(in: .newlines)), "\(version): \(run.output)")
        }
    }

    /// bleak takes ServicesResolved for the end of the discovery (bleak#1489).
    func testItDoesNotFindLateObjectsAtItsFirstConnection() throws {
        let simulator = try Simulator.onPrivateBus()
        defer { simulator.end() }
        simulator.simulateLateObjects(by: 0.1, of: "C0:5A:17:00:18:0D")
        let run = try Foreign.run(Foreign.python(), ["-c", program()], bus: simulator.address)
        XCTAssertEqual(run.status, 1, run.output)
        XCTAssertTrue(run.output.contains("BleakCharacteristicNotFoundError"), run.output)
    }

    func testItExploresReadsWritesAndReceivesTheEchoOverTheBus() throws {
        try explore("{'bluez': {'use_start_notify': True}}")
    }

    func testItReceivesTheEchoOverAnAcquiredSocket() throws {
        try explore("{'bluez': {'use_start_notify': False}}")
    }
}
