import BlueZSimulator
import XCTest

/// A GATT server made with bluez-peripheral on one adapter and bleak on the other: two foreign programs that use the simulator
/// in place of BlueZ.
final class ForeignServerTests: XCTestCase {
    private static let meet = """
        import asyncio, json
        from bleak import BleakClient, BleakScanner
        from bleak.exc import BleakError
        from bluez_peripheral.adapter import Adapter
        from bluez_peripheral.advert import Advertisement
        from bluez_peripheral.gatt.characteristic import CharacteristicFlags as Flags, characteristic
        from bluez_peripheral.gatt.descriptor import DescriptorFlags, descriptor
        from bluez_peripheral.gatt.service import Service
        from bluez_peripheral.util import get_message_bus
        from dbus_fast import DBusError

        class Heart(Service):
            def __init__(self):
                self.written = bytearray()
                self.offsets = []
                super().__init__("180D", True)

            @characteristic("2A37", Flags.NOTIFY)
            def rate(self, options):
                pass

            @characteristic("2A38", Flags.READ)
            def place(self, options):
                self.offsets.append((options.offset, options.mtu, options.device))
                return bytes(range(256))[options.offset:]

            @characteristic("2A39", Flags.WRITE)
            def control(self, options):
                pass

            @control.setter
            def control(self, value, options):
                if bytes(value) == b"no":
                    raise DBusError("org.bluez.Error.Failed", "0x80")
                self.written[options.offset:] = value

            @descriptor("2901", control, DescriptorFlags.READ)
            def words(self, options):
                return b"Reset"

        async def main():
            bus = await get_message_bus()
            adapter = [a for a in await Adapter.get_all(bus) if (await a.get_address()).endswith("01")][0]
            heart = Heart()
            await heart.register(bus, adapter=adapter)
            advertisement = Advertisement("Foreign", ["180D"], appearance=0x0341, timeout=0)
            await advertisement.register(bus, adapter=adapter)

            device = await BleakScanner.find_device_by_name("Foreign", timeout=10, bluez={"adapter": "hci0"})
            async with BleakClient(device, bluez={"adapter": "hci0"}):
                await asyncio.sleep(1)
            values = []
            async with BleakClient(device, bluez={"adapter": "hci0"}) as client:
                tree = {s.uuid[4:8]: {c.uuid[4:8]: sorted(c.properties) for c in s.characteristics}
                        for s in client.services}
                place = await client.read_gatt_char("2a38")
                words = next(d for c in client.services.characteristics.values() for d in c.descriptors
                             if d.uuid.startswith("00002901"))
                text = await client.read_gatt_descriptor(words)
                await client.write_gatt_char("2a39", bytes(range(100)), response=True)
                try:
                    await client.write_gatt_char("2a39", b"no", response=True)
                    refusal = None
                except BleakError as error:
                    refusal = str(error)
                got = asyncio.Event()
                def received(_, data):
                    values.append(data.hex())
                    if len(values) == 20:
                        got.set()
                await client.start_notify("2a37", received, bluez={"use_start_notify": True})
                for number in range(20):
                    heart.rate.changed(bytes([0, number]))
                await asyncio.wait_for(got.wait(), 10)
                await client.stop_notify("2a37")
            await advertisement.unregister()
            await heart.unregister()
            print(json.dumps({
                "tree": tree, "place": place.hex(), "text": text.decode(), "written": heart.written.hex(),
                "refusal": refusal, "values": values, "offsets": [list(map(str, o)) for o in heart.offsets],
            }))

        asyncio.run(main())
        """

    private struct Outcome: Decodable {
        var tree: [String: [String: [String]]]
        var place: String
        var text: String
        var written: String
        var refusal: String?
        var values: [String]
        var offsets: [[String]]
    }

    func testAForeignServerAndAForeignCentralMeet() throws {
        let simulator = try Simulator.onPrivateBus(
            room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
        defer { simulator.end() }
        let run = try Foreign.run(Foreign.python(), ["-c", Self.meet], bus: simulator.address)
        XCTAssertEqual(run.status, 0, run.output)
        let line = try XCTUnwrap(run.output.split(separator: "\n").last)
        let outcome = try JSONDecoder().decode(Outcome.self, from: Data(line.utf8))

        XCTAssertEqual(outcome.tree["180d"], ["2a37": ["notify"], "2a38": ["read"], "2a39": ["write"]])
        XCTAssertEqual(outcome.place, (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
        XCTAssertEqual(outcome.offsets.first, ["0", "517", "/org/bluez/hci1/dev_00_AA_01_01_00_00"])
        XCTAssertEqual(outcome.text, "Reset")
        XCTAssertEqual(outcome.written, (0..<100).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
        XCTAssertEqual(outcome.refusal?.contains("0x80"), true, outcome.refusal ?? "was not refused")
        XCTAssertEqual(outcome.values, (0..<20).map { "00" + ($0 < 16 ? "0" : "") + String($0, radix: 16) })
        XCTAssertEqual(simulator.applications, [])
        XCTAssertEqual(simulator.advertisements, [])
        XCTAssertTrue(simulator.wait(until: { simulator.links.isEmpty }, limit: 10))
    }
}
